#!/usr/bin/env bash
# Links the app's resources and manifest with aapt2, as the Android Gradle plugin would.
#
# resources.sh AAPT2_JAR FRAMEWORK_JAR MIN_SDK TARGET_SDK VERSION OUTPUT
#   RELEASE_PAGE in the environment is the web page that "Get a model" opens; without it there is no such button.
# resources.sh --flavour APK
#   the same once more under the name of the flavour with ExecuTorch, into APK.
#
#   OUTPUT gets resources.apk (manifest, resources), gen/ (R.java) and AndroidManifest.xml.
set -euo pipefail

package=io.edgeinfinite.app
if [ "$1" = --flavour ]; then
  # shellcheck disable=SC1091 # what the first form left
  . "$(dirname "$0")/target/resources/link.sh"
  link --rename-manifest-package "$package.executorch" -o "$2"
  exit
fi

aapt2_jar=$1 framework=$2 min_sdk=$3 target_sdk=$4 version=$5 output=$6
sources=$(cd "$(dirname "$0")/../../app/src/main" && pwd)
assets=$(cd "$(dirname "$0")/../downloads/pdfbox/assets" && pwd)

mkdir -p "$output"
aapt2=$output/aapt2
if [ ! -x "$aapt2" ]; then
  python3 -c 'import sys, zipfile; sys.stdout.buffer.write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
    "$aapt2_jar" prebuilt/linux/aapt2 >"$aapt2"
  chmod +x "$aapt2"
fi

# Nothing to do when nothing changed.
stamp=$output/resources.stamp
if [ -f "$stamp" ] && [ "$(<"$stamp")" = "${RELEASE_PAGE:-}" ] && [ -z "$(find "$sources/res" "$sources/AndroidManifest.xml" "$0" -newer "$stamp")" ]; then
  exit 0
fi

# Gradle takes the package from `namespace`; aapt2 wants it in the manifest.
sed "s/<manifest /<manifest package=\"$package\" /" "$sources/AndroidManifest.xml" >"$output/AndroidManifest.xml"
"$aapt2" compile --dir "$sources/res" -o "$output/compiled.zip"
mkdir -p "$output/release/values"
if [ -n "${RELEASE_PAGE:-}" ]; then
  python3 -c 'import sys, xml.sax.saxutils as xml
print(f"<resources><string name=\"release_page\" translatable=\"false\">{xml.escape(sys.argv[1])}</string></resources>")' \
    "$RELEASE_PAGE" >"$output/release/values/release.xml"
else
  cp "$sources/res/values/release.xml" "$output/release/values/release.xml"
fi
"$aapt2" compile --dir "$output/release" -o "$output/release.zip"
cat >"$output/link.sh" <<LINK
link() {
  "$aapt2" link -I "$framework" --manifest "$output/AndroidManifest.xml" \\
    --min-sdk-version "$min_sdk" --target-sdk-version "$target_sdk" \\
    --version-code 1 --version-name "$version" -A "$assets" "\$@" -R "$output/release.zip" "$output/compiled.zip"
}
LINK
. "$output/link.sh"
link --java "$output/gen" -o "$output/resources.apk"
echo "${RELEASE_PAGE:-}" >"$stamp"
