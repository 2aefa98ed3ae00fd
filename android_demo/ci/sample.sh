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

export MAVEN_OPTS=${MAVEN_OPTS:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}
libraries=(onnx-android/target/edgeinfinite-onnx-android-*.aar)
aar=$(basename "${libraries[0]}")
number=${aar#edgeinfinite-onnx-android-}
mvn -B -ntp -q -f ../sample/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \
    -Dartifact="io.edgeinfinite:edgeinfinite-onnx-android:${number%.aar}:aar" -DoutputDirectory="$target/aar" \
    -Dmdep.overWriteReleases=true
cmp "$target/aar/$aar" "${libraries[0]}" || {
    echo "sample.sh: another checkout has installed its own libraries meanwhile; run maven again" >&2
    exit 1
}
(cd "$target/aar" && jar --extract --file "$aar")
mvn -B -ntp -q -f ../sample/pom.xml -Donnxruntime.repository="file://$repository" compile

# As with Gradle, the jars go onto the class path, and of the AARs the classes in them.
IFS=: read -r -a paths <<<"$target/aar/classes.jar:$(tr ':' '\n' <"$target/classpath.txt" | grep -v '\.aar$' | paste -sd:)"

run() { # what must be printed, the program
    local expected=$1 output
    shift
    if ! output=$("$@" | tr -d '\000') || ! grep -q "$expected" <<<"$output"; then
        echo "sample.sh: no '$expected' from $*: $output" >&2
        exit 1
    fi
}

run_both() { # class path
    run '^\([0-9]*\) of \1 tokens read$' java -cp "$1" ReaderKt "$artifact" "The keeper lit the lamp." "Who?"
    run '^answer: ' java -cp "$1" ReaderKt "$artifact" "The keeper lit the lamp." "Who?"
    run '^answer: ' java -cp "$1" JavaReader "$artifact" "Who?"
}
run_both "$target/classes:$(IFS=:; echo "${paths[*]}")"
run '^refused: INVALID_ARGUMENT$' java -cp "$target/classes:$(IFS=:; echo "${paths[*]}")" JavaReader "$artifact" "Who?"

# Shrunk: what is found by name alone must be kept by rules that the libraries bring; R8 reads those in
# the jars by itself.
cat >"$target/main.pro" <<'RULES'
-keep class ReaderKt { public static void main(java.lang.String[]); }
-keep class JavaReader { public static void main(java.lang.String[]); }
-dontwarn **
RULES
jar --create --file "$target/sample.jar" -C "$target/classes" .
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
java -Xmx1500m -XX:+UseSerialGC -cp app/target/tools/r8-*.jar com.android.tools.r8.R8 --release --classfile --lib "$jdk" \
    --lib app/target/tools/android-all-instrumented-*.jar --pg-conf "$target/aar/proguard.txt" \
    --pg-conf "$target/main.pro" --output "$target/shrunk.jar" "$target/sample.jar" "${paths[@]}" 2> >(grep -v "already exists\|does not match\|^Info in\|^[ }-]" >&2)
run_both "$target/shrunk.jar"
echo "sample: Kotlin and Java read, answered and closed, also shrunk by R8"
