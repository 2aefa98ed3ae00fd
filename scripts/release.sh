#!/usr/bin/env bash
# Writes what a release carries into build/release: the signed app, the demo's artifact for both back ends as zip
# archives, the wheel and the sdist, the libraries as a bundle for a Maven repository, SHA256SUMS, and a page
# that says what to do with them. Takes half an hour: it exports, documents and tries what it packs.
#
#   RELEASE_PAGE=https://...            where the files will be; the app's "Get a model" opens it
#   EDGEINFINITE_KEYSTORE=FILE          the key to sign the app with, as for apksigner; and
#   EDGEINFINITE_KEYSTORE_PASSWORD=...  its password, and
#   EDGEINFINITE_KEY_ALIAS=...          the key's name in it (not needed if it holds one)
#   PROJECT_PAGE=https://...            the project's address, which Maven Central wants in every pom
#   EDGEINFINITE_GPG_KEY=ID             GnuPG's key to sign the libraries with, and
#   EDGEINFINITE_GPG_PASSPHRASE=...     its passphrase, if it has one that no agent knows
#   README_BLOCKS=0                     leaves out running the README's blocks with the wheel
#
# Without a key store the app is signed with a key that is made on the spot; without a key of GnuPG the
# libraries are unsigned.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/demo_artifact.sh

refuse() {
    echo "release: $*" >&2
    exit 2
}

output=build/release
parts=build/release-files
[[ -n ${RELEASE_PAGE:-} ]] || echo "release: RELEASE_PAGE isn't set, so the app has no \"Get a model\"" >&2
for name in RELEASE_PAGE PROJECT_PAGE; do
    [[ -z ${!name:-} || ${!name} == https://* ]] ||
        refuse "$name is ${!name}; give an address that begins with https://"
done
[[ -z ${EDGEINFINITE_KEYSTORE:-} || -f $EDGEINFINITE_KEYSTORE ]] ||
    refuse "EDGEINFINITE_KEYSTORE names $EDGEINFINITE_KEYSTORE, which isn't there; give a key store's file"
[[ -z ${EDGEINFINITE_KEYSTORE:-} || -n ${EDGEINFINITE_KEYSTORE_PASSWORD:-} ]] ||
    refuse "EDGEINFINITE_KEYSTORE_PASSWORD isn't set; set it to the key store's password"
[[ -z ${EDGEINFINITE_GPG_KEY:-} ]] || gpg --batch --list-secret-keys "$EDGEINFINITE_GPG_KEY" >/dev/null 2>&1 ||
    refuse "EDGEINFINITE_GPG_KEY is $EDGEINFINITE_GPG_KEY, of which gpg has no secret key; import it, or name another"

mkdir -p "$parts"
scripts/release_python.sh "$parts/python"
export_demo
export_demo_executorch
PYTHON=$PWD/.venv/bin/python android_demo/ci/build.sh package bundle
certificate=$(apksigner verify --print-certs android_demo/ci/app/target/edgeinfinite.apk |
    sed -n 's/.*certificate SHA-256 digest: //p' | head -1)
options=()
[[ -n ${EDGEINFINITE_KEYSTORE:-} ]] || options+=(--debug-key)
.venv/bin/python scripts/release.py android_demo/ci/app/target/edgeinfinite.apk build/demo "$output" \
    --executorch build/demo-executorch --python "$parts/python" \
    --bundle android_demo/ci/target/edgeinfinite-maven.zip --certificate "$certificate" "${options[@]}"
