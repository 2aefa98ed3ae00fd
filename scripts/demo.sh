#!/usr/bin/env bash
# Exports SmolLM2-135M-Instruct to int4 ONNX twice (once each): with recall slots, the default, and
# as StreamingLLM with as many slots. Then both read a long text and answer questions about it.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo_artifact.sh

export_demo
export_once build/demo-streaming "the same as StreamingLLM, to compare (about a minute)" \
    onnx --window-length 1984 --recall-slots 0

echo
.venv/bin/python scripts/demo.py build/demo build/demo-streaming
