#!/usr/bin/env bash
# Builds ../sample against the libraries that `mvn install` put into the local repository, with the
# oldest Kotlin that they are for, and runs it: as it is, and shrunk by R8 with the AAR's own rules.
#
#   sample.sh FIXTURES        after ../build.sh's steps maven and apk
#
# onnxruntime-android isn't served as a Maven artifact here: the AAR of app/natives.sh, the same
# classes and libraries, stands in a repository of its own under its name.
set -euo pipefail
cd "$(dirname "$0")"

fixtures=$1
artifact=$fixtures/sessions/reencode/artifact
target=$PWD/../sample/target
version=$(sed -n 's:.*<onnxruntime.version>\(.*\)</.*:\1:p' pom.xml)
packages=(downloads/npm/com.github.asus4.onnxruntime-*.tgz)

repository=$target/repository
place=$repository/com/microsoft/onnxruntime/onnxruntime-android/$version
mkdir -p "$place"
tar -xzf "${packages[0]}" -O package/Plugins/Android/onnxruntime.aar >"$place/onnxruntime-android-$version.aar"
cat >"$place/onnxruntime-android-$version.pom" <<POM
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.microsoft.onnxruntime</groupId>
  <artifactId>onnxruntime-android</artifactId>
  <version>$version</version>
  <packaging>aar</packaging>
</project>
POM

mvn -B -ntp -q -Dstyle.color=never -f ../sample/pom.xml -Donnxruntime.repository="file://$repository" compile
# Another checkout may have installed its own meanwhile.
cmp "$target/aar/classes.jar" <(unzip -p onnx-android/target/edgeinfinite-onnx-android-*.aar classes.jar)

# As Gradle does, the jars go onto the class path and of the AARs only what is in them.
IFS=: read -r -a paths <<<"$(tr ':' '\n' <"$target/classpath.txt" | grep -v '\.aar$' | paste -sd:)"
answer() { # what is run; prints the line with the answer
    local output
    output=$("$@")
    grep -q '^answer: .' <<<"$output" || { echo "sample.sh: no answer from $*: $output" >&2; exit 1; }
    grep '^answer: ' <<<"$output"
}
classpath=$target/classes:$(IFS=:; echo "${paths[*]}")
answer java -cp "$classpath" ReaderKt "$artifact" "The keeper lit the lamp." "Who?" >/dev/null
answer java -cp "$classpath" JavaReader "$artifact" "Who?" >/dev/null
plain=$(java -cp "$classpath" JavaReader "$artifact" "Who?" | tail -1)
[[ $plain == "refused: INVALID_ARGUMENT" ]] || { echo "sample.sh: Java says '$plain'" >&2; exit 1; }

# Shrunk: what is found by name alone must be kept by rules that the libraries bring.
cat >"$target/main.pro" <<'RULES'
-keep class ReaderKt { public static void main(java.lang.String[]); }
-keep class JavaReader { public static void main(java.lang.String[]); }
-dontwarn **
RULES
jar --create --file "$target/sample.jar" -C "$target/classes" .
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
java -Xmx1500m -cp app/target/tools/r8-*.jar com.android.tools.r8.R8 --release --classfile --lib "$jdk" \
    --lib app/target/tools/android-all-instrumented-*.jar --pg-conf "$target/aar/proguard.txt" \
    --pg-conf "$target/main.pro" --output "$target/shrunk.jar" "$target/sample.jar" "${paths[@]}"
answer java -cp "$target/shrunk.jar" ReaderKt "$artifact" "The keeper lit the lamp." "Who?" >/dev/null
answer java -cp "$target/shrunk.jar" JavaReader "$artifact" "Who?" >/dev/null
echo "sample: Kotlin and Java read, answered and closed; shrunk from" \
    "$(du -ch "$target/sample.jar" "${paths[@]}" | tail -1 | cut -f1) to $(du -h "$target/shrunk.jar" | cut -f1)"
