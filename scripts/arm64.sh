#!/usr/bin/env bash
# Reads a text with SmolLM2's artifacts on an emulated ARM64 CPU and compares with this machine's CPU:
# logits, state, loss and greedy tokens over three compressions, within the limits of
# tests/arm64/compare.py.
#   ARTIFACTS="int4-carry ..."   which (default: int4 and int8, both policies); executorch-int4-carry is
#                                ExecuTorch's, whose wheels for ARM64 bring 3.6 GB of CUDA libraries
#   CPU=max                      what qemu-aarch64 emulates
#   DEBIAN_MIRROR=URL            where Debian's packages are (default: this machine's own mirror)
# Everything lies in build/arm64; what is there is used again. Rows: build/arm64/rows.json.
set -euo pipefail
cd "$(dirname "$0")/.."

WORK=$PWD/build/arm64
SITE=$WORK/site
SYSROOT=$WORK/sysroot
CPU=${CPU:-max}
ARTIFACTS=${ARTIFACTS:-int4-carry int4-reencode int8-carry int8-reencode}
mirrors=$(sed -nE 's/^(URIs:|deb) *(\[[^]]*\])? *(http[^ ]*).*/\3/p' \
    /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true)
DEBIAN_MIRROR=${DEBIAN_MIRROR:-$(grep -m1 -E '/debian/?$' <<<"$mirrors" || true)}
TEXT=examples/draculas_guest.txt
SUITE=trixie  # Debian 13: qemu 10 (7.2, Debian 12's, crashes) and Python 3.13
PYTHON_VERSION=3.13

skip() {
    echo "arm64: skipped, $1"
    exit 0
}

apt_arm64() {
    local apt
    apt=$(realpath "$WORK/apt")
    apt-get -qq -o Dir::Etc::sourcelist="$apt/debian.sources" -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State="$apt" -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" \
        -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o APT::Architectures::=amd64 \
        -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"
}

# Debian's packages, downloaded and unpacked; nothing is installed on this machine.
get_system() {
    rm -rf "$WORK/apt" "$SYSROOT" "$WORK/qemu"
    mkdir -p "$WORK/apt/lists/partial" "$WORK/apt/cache/archives/partial" "$SYSROOT/usr" "$WORK/qemu"
    touch "$WORK/apt/status"
    printf '%s\n' "Types: deb" "URIs: $DEBIAN_MIRROR" "Suites: $SUITE" \
        "Components: main" "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg" \
        >"$WORK/apt/debian.sources"
    apt_arm64 update || return 1
    (cd "$WORK/apt" && apt_arm64 download qemu-user:amd64) || return 1
    apt_arm64 install -y --no-install-recommends --download-only \
        "python$PYTHON_VERSION-minimal" "libpython$PYTHON_VERSION-stdlib" libstdc++6 || return 1
    local package
    for folder in bin lib; do
        mkdir -p "$SYSROOT/usr/$folder"
        ln -s "usr/$folder" "$SYSROOT/$folder"
    done
    for package in "$WORK"/apt/cache/archives/*_arm64.deb; do
        dpkg-deb -x "$package" "$SYSROOT"
    done
    dpkg-deb -x "$WORK"/apt/qemu-user_*_amd64.deb "$WORK/qemu"
    rm -r "$WORK/apt"
    touch "$WORK/.system-done"
}

get_arm64_wheels() {
    local tag platforms=()
    for tag in {17..35}; do platforms+=(--platform "manylinux_2_${tag}_aarch64"); done
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --target "$SITE" \
        --only-binary=:all: --implementation cp --python-version "$PYTHON_VERSION" \
        "${platforms[@]}" --platform manylinux2014_aarch64 "$@"
}

# The same versions as in .venv, for ARM64.
get_wheels() {
    rm -rf "$SITE" "$WORK/.executorch-done"
    .venv/bin/python - >"$WORK/requirements.txt" <<'PYTHON'
from importlib.metadata import requires, version
from packaging.requirements import Requirement

for text in requires("edgeinfinite"):
    wanted = Requirement(text)
    if wanted.marker is None or wanted.marker.evaluate({"extra": "runtime"}):
        print(f"{wanted.name}=={version(wanted.name)}")
PYTHON
    get_arm64_wheels --requirement "$WORK/requirements.txt" || return 1
    touch "$WORK/.wheels-done"
}

# PyTorch's libraries, which ExecuTorch's ask for, want CUDA's.
get_executorch() {
    local versions
    versions=$(.venv/bin/python -c 'from importlib.metadata import version
print(*(f"{name}=={version(name).split(chr(43))[0]}" for name in ("torch", "executorch")))')
    echo "arm64: fetching PyTorch for ExecuTorch, 3.6 GB"
    get_arm64_wheels --upgrade "${versions% *}" || return 1
    get_arm64_wheels --upgrade --no-deps "${versions#* }" || return 1
    touch "$WORK/.executorch-done"
}

options_of() {
    case $1 in
        carry) echo --segment-length 64 --sink-length 16 --window-length 112 --recall-slots 64 ;;
        reencode) echo --policy reencode --segment-length 128 --sink-length 16 --window-length 32 ;;
    esac
}

emulated() {
    PYTHONPATH=$SITE ORT_DISABLE_TELEMETRY=1 OMP_NUM_THREADS=1 "$WORK/qemu/usr/bin/qemu-aarch64" \
        -cpu "$CPU" -L "$SYSROOT" "$SYSROOT/usr/bin/python$PYTHON_VERSION" "$@" \
        2> >(grep -v "Unknown CPU vendor" >&2)
}

[[ "$(uname -sm)" == "Linux x86_64" ]] || skip "it needs Linux on x86-64"
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || skip "it needs apt-get and dpkg-deb"
mkdir -p "$WORK"
[[ -e $WORK/.system-done || -n $DEBIAN_MIRROR ]] || skip "it needs a DEBIAN_MIRROR"
[[ -e $WORK/.system-done ]] || get_system || skip "Debian's packages can't be had"
[[ -e $WORK/.wheels-done ]] || get_wheels || skip "the wheels for ARM64 can't be had"
.venv/bin/python -m pip install --disable-pip-version-check --quiet --upgrade --no-deps \
    --target "$SITE" .

if [[ $ARTIFACTS == *executorch-* && ! -e $WORK/.executorch-done ]]; then
    if ! get_executorch; then
        echo "arm64: ExecuTorch's artifacts are skipped, its wheels for ARM64 can't be had"
        ARTIFACTS=$(tr ' ' '\n' <<<"$ARTIFACTS" | grep -v ^executorch- || true)
        [[ -n $ARTIFACTS ]] || exit 0
    fi
fi

rows=()
for name in $ARTIFACTS; do
    echo "arm64: $name"
    artifact=$WORK/$name record=$WORK/record-$name
    backend=onnx kind=${name#executorch-}
    [[ $kind == "$name" ]] || backend=executorch
    if [[ ! -e $artifact/manifest.json ]]; then
        # shellcheck disable=SC2046  # several words
        .venv/bin/edgeinfinite export --model smollm2-135m-instruct --backend "$backend" \
            --quantize "${kind%%-*}" $(options_of "${kind#*-}") --output "$artifact"
    fi
    rm -rf "$record"
    .venv/bin/python tests/arm64/read_text.py "$artifact" "$record" --record "$TEXT"
    emulated tests/arm64/read_text.py "$artifact" "$record" --repeat "$record/arm64.npz"
    rows+=("$name=$record")
done
.venv/bin/python tests/arm64/compare.py "${rows[@]}" --json "$WORK/rows.json"
