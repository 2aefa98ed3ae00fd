#!/usr/bin/env bash
# Exports SmolLM2-135M-Instruct to int4 ONNX (once), then reads a long text with it and answers a
# question about it. Options after the script's name go to `generate`.
set -euo pipefail
cd "$(dirname "$0")/.."

edgeinfinite=.venv/bin/edgeinfinite
artifact=build/demo
prompt=examples/dogs_prompt.txt

# Exported once: a whole artifact (every file's sha256 is compared) is used again.
whole='import sys, pathlib; from edgeinfinite.artifact.manifest import load_manifest as load
load(pathlib.Path(sys.argv[1]))'
if ! .venv/bin/python -c "$whole" "$artifact" 2>/dev/null; then
    "$edgeinfinite" export --model smollm2-135m-instruct --backend onnx --quantize int4 \
        --output "$artifact"
fi

echo
echo "Reading $prompt ($(wc -w <"$prompt") words). It ends with:"
tail -n 1 "$prompt"
echo
echo
"$edgeinfinite" generate "$artifact" --prompt-file "$prompt" --max-new-tokens 64 --stats "$@"
