#!/usr/bin/env bash
# Assembles and signs the APK of what Maven compiled: d8, apk.py, apksigner.
#
#   apk.sh        writes target/edgeinfinite.apk and target/apk/from-dex.jar
#
# Run by ../build.sh after Maven's `verify`; needs apksigner and enjarify. The key is made on the spot: this APK is
# for trying out, not for a store. from-dex.jar holds the dex's classes again, for tests.
set -euo pipefail
cd "$(dirname "$0")"

tools=target/tools
work=target/apk
key=target/debug.keystore

mkdir -p "$work"
./natives.sh ../downloads "$tools"/fbjni-*.aar "$work/natives"

# The app's own classes, the libraries it needs (target/classpath.txt), the runtimes' classes.
rm -rf "$work/dex"
mkdir -p "$work/dex"
jar --create --file "$work/app.jar" -C target/classes .
IFS=: read -r -a libraries <<<"$(<target/classpath.txt)"
jars=("$work/app.jar" "${libraries[@]}" "$work"/natives/jars/*.jar "$tools"/nativeloader-*.jar)
# Dexed for API 23, though the manifest says 26: older dex has no methods in interfaces, which enjarify
# can't write, and what is tested is to be what ships.
java -Xmx1500m -cp "$tools"/r8-*.jar com.android.tools.r8.D8 --release --min-api 23 \
  --lib "$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")" \
  --lib "$tools"/android-all-instrumented-*.jar --output "$work/dex" "${jars[@]}"

python3 apk.py target/resources/resources.apk "$work/dex" "$work/natives/lib" "$work/unsigned.apk" "${jars[@]}"

if [[ ! -f $key ]]; then
  keytool -genkeypair -keystore "$key" -storepass android -keypass android -alias debug \
    -keyalg RSA -keysize 2048 -validity 10000 -dname "CN=EdgeInfinite debug" 2>/dev/null
fi
# Version 1 signatures are for systems before Android 7.
apksigner sign --ks "$key" --ks-pass pass:android --min-sdk-version 26 --v1-signing-enabled false --v4-signing-enabled false \
  --out target/edgeinfinite.apk "$work/unsigned.apk"
/usr/bin/python3 from_dex.py target/edgeinfinite.apk "$work/from-dex.jar" >/dev/null
python3 check_apk.py target/edgeinfinite.apk target/resources/aapt2
