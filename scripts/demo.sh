#!/usr/bin/env bash
# Exports SmolLM2-135M-Instruct to int4 ONNX at the paper's lengths (once), then reads a long text
# with it and answers a question about it. Options after the script's name go to `generate`.
set -euo pipefail
cd "$(dirname "$0")/.."

edgeinfinite=.venv/bin/edgeinfinite
artifact=build/demo
prompt=examples/dogs_prompt.txt

# An artifact of an older version of the code, or a damaged one, is made again.
if ! "$edgeinfinite" verify "$artifact" >build/demo-verify.log 2>&1; then
    "$edgeinfinite" export --model smollm2-135m-instruct --backend onnx --quantize int4 \
        --policy reencode --segment-length 2048 --sink-length 300 --window-length 200 \
        --output "$artifact"
fi

echo
echo "Reading $prompt ($(wc -w <"$prompt") words). It ends with:"
tail -n 1 "$prompt"
echo
echo
"$edgeinfinite" generate "$artifact" --prompt-file "$prompt" --max-new-tokens 64 --stats "$@"
