#!/usr/bin/env bash
# Writes what a release carries into build/release: the signed app, the demo's artifact as a zip archive
# for it, SHA256SUMS, and a page that says what to do with them.
#
#   RELEASE_PAGE=https://...            where the files will be; the app's "Get a model" opens it
#   EDGEINFINITE_KEYSTORE=FILE          the key to sign the app with, as for apksigner; and
#   EDGEINFINITE_KEYSTORE_PASSWORD=...  its password, and
#   EDGEINFINITE_KEY_ALIAS=...          the key's name in it (not needed if it holds one)
#
# Without a key the app is signed with one that is made on the spot.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo_artifact.sh

output=build/release
if [[ -z ${RELEASE_PAGE:-} ]]; then
    echo "release: RELEASE_PAGE isn't set, so the app has no \"Get a model\"" >&2
elif [[ $RELEASE_PAGE != https://* ]]; then
    echo "release: RELEASE_PAGE is $RELEASE_PAGE; give an address that begins with https://" >&2
    exit 2
fi
if [[ -n ${EDGEINFINITE_KEYSTORE:-} && ! -f $EDGEINFINITE_KEYSTORE ]]; then
    echo "release: EDGEINFINITE_KEYSTORE names $EDGEINFINITE_KEYSTORE, which isn't there; give a key store's file" >&2
    exit 2
fi
if [[ -n ${EDGEINFINITE_KEYSTORE:-} && -z ${EDGEINFINITE_KEYSTORE_PASSWORD:-} ]]; then
    echo "release: EDGEINFINITE_KEYSTORE_PASSWORD isn't set; set it to the key store's password" >&2
    exit 2
fi

mkdir -p build
export_demo
PYTHON=$PWD/.venv/bin/python android_demo/ci/build.sh package
certificate=$(apksigner verify --print-certs android_demo/ci/app/target/edgeinfinite.apk |
    sed -n 's/.*certificate SHA-256 digest: //p' | head -1)
options=()
[[ -n ${EDGEINFINITE_KEYSTORE:-} ]] || options+=(--debug-key)
.venv/bin/python scripts/release.py android_demo/ci/app/target/edgeinfinite.apk build/demo "$output" \
    --certificate "$certificate" "${options[@]}"
