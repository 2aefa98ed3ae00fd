#!/usr/bin/env bash
# Assembles and signs an APK of what Maven compiled: d8, apk.py, apksigner.
#
#   apk.sh              the app: writes target/edgeinfinite.apk and target/apk/from-dex.jar
#   apk.sh executorch   the flavour with ExecuTorch: target/edgeinfinite-executorch.apk
#
# Run by ../build.sh after Maven; needs apksigner and enjarify. EDGEINFINITE_KEYSTORE, _KEYSTORE_PASSWORD and
# _KEY_ALIAS give the key to sign with; without them one is made on the spot, for trying out, not for a
# store. from-dex.jar holds the dex's classes again, for tests.
set -euo pipefail
cd "$(dirname "$0")"

flavour=${1:-onnx}
tools=target/tools
key=target/debug.keystore
work=target/apk
resources=target/resources/resources.apk
apk=target/edgeinfinite.apk
classes=(-C target/classes .)
if [[ $flavour == executorch ]]; then
  work=target/apk-executorch
  apk=target/edgeinfinite-executorch.apk
fi

mkdir -p "$work"
./natives.sh ../downloads "$tools"/fbjni-*.aar "$work/natives" "$flavour"

# The app's own classes, the libraries it needs (target/classpath.txt), the runtimes' classes.
rm -rf "$work/dex"
mkdir -p "$work/dex"
IFS=: read -r -a libraries <<<"$(<target/classpath.txt)"
more=(../downloads/pdfbox/classes.jar)
if [[ $flavour == executorch ]]; then
  rm -rf "$work/classes"
  cp -r target/classes "$work/classes"
  cp -r ../app-executorch/target/classes/. "$work/classes"
  classes=(-C "$work/classes" .)
  more+=("$PWD"/../runtime-executorch/target/edgeinfinite-executorch-*.jar "$tools"/nativeloader-*.jar)
  resources=$work/resources.apk
  ./resources.sh --flavour "$resources"
fi
jar --create --file "$work/app.jar" "${classes[@]}"
jars=("$work/app.jar" "${libraries[@]}" "$work"/natives/jars/*.jar "${more[@]}")
# Dexed for API 23, though the manifest says 26: older dex has no methods in interfaces, which enjarify
# can't write, and what is tested is to be what ships.
java -Xmx1500m -XX:+UseSerialGC -cp "$tools"/r8-*.jar com.android.tools.r8.D8 --release --min-api 23 \
  --lib "$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")" \
  --lib "$tools"/android-all-instrumented-*.jar --output "$work/dex" "${jars[@]}"

python3 apk.py "$resources" "$work/dex" "$work/natives/lib" "$work/unsigned.apk" "${jars[@]}"

if [[ -n ${EDGEINFINITE_KEYSTORE:-} ]]; then
  : "${EDGEINFINITE_KEYSTORE_PASSWORD:?set it to the password of EDGEINFINITE_KEYSTORE}"
  signing=(--ks "$EDGEINFINITE_KEYSTORE" --ks-pass env:EDGEINFINITE_KEYSTORE_PASSWORD)
  [[ -z ${EDGEINFINITE_KEY_ALIAS:-} ]] || signing+=(--ks-key-alias "$EDGEINFINITE_KEY_ALIAS")
else
  signing=(--ks "$key" --ks-pass pass:android)
  echo "apk.sh: signed with a key for trying out; EDGEINFINITE_KEYSTORE gives another"
fi
if [[ -z ${EDGEINFINITE_KEYSTORE:-} && ! -f $key ]]; then
  keytool -genkeypair -keystore "$key" -storepass android -keypass android -alias debug \
    -keyalg RSA -keysize 2048 -validity 10000 -dname "CN=EdgeInfinite debug" 2>/dev/null
fi
# Version 1 signatures are for systems before Android 7.
apksigner sign "${signing[@]}" --min-sdk-version 26 --v1-signing-enabled false --v4-signing-enabled false \
  --out "$apk" "$work/unsigned.apk"
[[ $flavour == executorch ]] || /usr/bin/python3 from_dex.py "$apk" "$work/from-dex.jar" >/dev/null
python3 check_apk.py "$apk" target/resources/aapt2 "$flavour"
