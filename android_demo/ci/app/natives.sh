#!/usr/bin/env bash
# Fetches the runtimes' Android parts into OUTPUT: ABI folders of libraries, and jars of classes.
#
#   natives.sh DOWNLOADS FBJNI_AAR OUTPUT [executorch]
#
# ONNX Runtime's AAR comes from npm (onnxruntime-android isn't on Maven Central), ExecuTorch's
# classes and library too, fbjni from Maven Central; the last two for the flavour with ExecuTorch.
# Everything is compared with the sums here.
set -euo pipefail

downloads=$1 fbjni=$2 output=$3 flavour=${4:-onnx}
ABIS=(arm64-v8a x86_64)
ORT_PACKAGE=com.github.asus4.onnxruntime ORT_VERSION=0.4.9
ORT_SHA256=e59788788818fdde1b2e522e766a21ba0f7d8391de55737abf81e32cc801785d
ET_PACKAGE=react-native-executorch ET_VERSION=0.9.3
ET_SHA256=70a20a865b82f47ac46c82711d93c2038cf99eccbb9b287494219063f2217622
FBJNI_SHA256=7e319ae110ac5e5ef18904170aea5c3e753e915d196699d7fd39d36c8e1dfe36

check() {
  echo "$2  $1" | sha256sum --check --quiet - || { echo "natives.sh: $1 isn't what was expected" >&2; exit 1; }
}

npm_package() {
  mkdir -p "$downloads/npm"
  local file=$downloads/npm/$1-$2.tgz
  [[ -f $file ]] || (cd "$downloads/npm" && npm pack --silent "$1@$2" >/dev/null)
  check "$file" "$3"
}

unzip_file() { # archive, entry, target
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' "$1" "$2" >"$3"
}

npm_package "$ORT_PACKAGE" "$ORT_VERSION" "$ORT_SHA256"
if [[ $flavour == executorch ]]; then
  npm_package "$ET_PACKAGE" "$ET_VERSION" "$ET_SHA256"
  check "$fbjni" "$FBJNI_SHA256"
fi

stamp=$output/natives.stamp
[[ -f $stamp && $stamp -nt $0 ]] && exit 0
rm -rf "$output"
mkdir -p "$output/jars" "$output/unpacked"
tar -xzf "$downloads/npm/$ORT_PACKAGE-$ORT_VERSION.tgz" -C "$output/unpacked" package/Plugins/Android/onnxruntime.aar
aar=$output/unpacked/package/Plugins/Android/onnxruntime.aar
unzip_file "$aar" classes.jar "$output/jars/onnxruntime.jar"
for abi in "${ABIS[@]}"; do
  mkdir -p "$output/lib/$abi"
  for library in libonnxruntime libonnxruntime4j_jni; do
    unzip_file "$aar" "jni/$abi/$library.so" "$output/lib/$abi/$library.so"
  done
done
if [[ $flavour == executorch ]]; then
  unzip_file "$fbjni" classes.jar "$output/jars/fbjni.jar"
  tar -xzf "$downloads/npm/$ET_PACKAGE-$ET_VERSION.tgz" -C "$output/unpacked" \
    package/android/libs/classes.jar "${ABIS[@]/#/package/third-party/android/libs/executorch/}"
  cp "$output/unpacked/package/android/libs/classes.jar" "$output/jars/executorch.jar"
  for abi in "${ABIS[@]}"; do
    for library in libfbjni libc++_shared; do
      unzip_file "$fbjni" "jni/$abi/$library.so" "$output/lib/$abi/$library.so"
    done
    cp "$output/unpacked/package/third-party/android/libs/executorch/$abi/libexecutorch.so" "$output/lib/$abi/"
  done
fi
rm -rf "$output/unpacked"
touch "$stamp"
