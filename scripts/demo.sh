#!/usr/bin/env bash
# Exports SmolLM2-135M-Instruct to int4 ONNX twice (once each): with recall slots, the default, and
# as StreamingLLM with as many slots. Then both read a long text and answer questions about it.
set -euo pipefail
cd "$(dirname "$0")/.."

edgeinfinite=.venv/bin/edgeinfinite

# A whole artifact (every file's sha256 is compared) is used again.
whole='import sys, pathlib; from edgeinfinite.artifact.manifest import load_manifest as load
load(pathlib.Path(sys.argv[1]))'
export_once() {  # FOLDER WHAT OPTIONS...
    local folder=$1 what=$2
    shift 2
    if ! .venv/bin/python -c "$whole" "$folder" 2>/dev/null; then
        echo "Exporting $what (about a minute) ..."
        "$edgeinfinite" export --model smollm2-135m-instruct --backend onnx --quantize int4 \
            --output "$folder" "$@"
    fi
}

export_once build/demo "SmolLM2-135M-Instruct with recall slots"
export_once build/demo-streaming "the same as StreamingLLM, to compare" \
    --window-length 960 --recall-slots 0

echo
.venv/bin/python scripts/demo.py build/demo build/demo-streaming
