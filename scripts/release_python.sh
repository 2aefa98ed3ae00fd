#!/usr/bin/env bash
# Builds the sdist, and the wheel from it, into a folder; checks both with twine; runs the README's blocks in
# empty environments with the wheel (some minutes: one of them exports and verifies the demo's model).
#
#   release_python.sh OUTPUT
#
#   README_BLOCKS=0   leaves the README's blocks out
#   WHEELS=...        a folder of wheels to prefer (default: ../shared/wheels, if there)
set -euo pipefail
cd "$(dirname "$0")/.."
output=$1
WHEELS=${WHEELS-../shared/wheels}
python=$PWD/.venv/bin/python
work=build/release-python

rm -rf "$work" "$output"
mkdir -p "$work/tree" "$output"
# What is committed, as it stands now: nothing that lies around in the checkout gets in.
git ls-files -z | tar --create --null --files-from - | tar --extract --directory "$work/tree"
"$python" -m venv "$work/tools"
"$work/tools/bin/python" -m pip install --quiet --disable-pip-version-check build twine
"$work/tools/bin/python" -m build --outdir "$output" "$work/tree" >"$work/build.log" 2>&1 || {
    tail -n 20 "$work/build.log" >&2
    exit 1
}
"$work/tools/bin/python" -m twine check --strict "$output"/*
[[ ${README_BLOCKS:-1} != 0 ]] || exit 0

links=()
[[ -z $WHEELS || ! -d $WHEELS ]] || links=(--find-links "$WHEELS")
"$python" scripts/readme_blocks.py "$output"/*.whl "$work/readme" "${links[@]}" \
    --model smollm2-135m-instruct --with "$(sed -n 's/^DEMO_MODEL="\([^"]*\)".*/\1/p' scripts/setup.sh)" |
    tee "$work/readme.log"
