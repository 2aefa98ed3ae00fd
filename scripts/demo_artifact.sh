# shellcheck shell=bash
# For demo.sh and release.sh, from the repository's root: the demo's artifact, exported once.

whole='import sys, pathlib; from edgeinfinite.artifact.manifest import load_manifest as load
load(pathlib.Path(sys.argv[1]))'
# A whole artifact (every file's sha256 is compared) is used again.
export_once() {  # FOLDER WHAT BACKEND OPTIONS...
    local folder=$1 what=$2 backend=$3
    shift 3
    if ! .venv/bin/python -c "$whole" "$folder" 2>/dev/null; then
        echo "Exporting $what ..."
        .venv/bin/edgeinfinite export --model smollm2-135m-instruct --backend "$backend" --quantize int4 \
            --output "$folder" "$@"
    fi
}

export_demo() {
    export_once build/demo "SmolLM2-135M-Instruct with recall slots (about a minute)" onnx
}

export_demo_executorch() {
    export_once build/demo-executorch "the same for ExecuTorch (some minutes)" executorch
}
