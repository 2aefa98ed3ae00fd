#!/usr/bin/env bash
# Runs core's and runtime-onnx's tests again on the classes that are in the APK's dex.
#
#   dex_tests.sh        after apk.sh; run by ../build.sh
#
# from-dex.jar comes first on the class path, so the app's classes, Kotlin, coroutines, serialization
# and ONNX Runtime's Java classes are all the dex's; only its native library is the desktop's. The
# tests' own serializers go through d8 as well, since interfaces in the dex have no bodies to inherit.
set -euo pipefail
cd "$(dirname "$0")/.."

classes=$PWD/app/target/apk/from-dex.jar
console=(app/target/tools/junit-platform-console-standalone-*.jar)
[[ -f $classes ]] || { echo "dex_tests.sh: run apk.sh first" >&2; exit 1; }

# The test libraries are the same for both, but for ONNX Runtime with the desktop's native library.
list=$PWD/app/target/core-tests.txt
mvn -B -ntp -q -f core/pom.xml org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath \
  -DincludeScope=test -Dmdep.outputFile="$list"
IFS=: read -r -a paths <<<"$(<"$list"):$(echo app/target/tools/onnxruntime-*.jar)"
jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")

for module in core runtime-onnx; do
  tests=$PWD/app/target/$module-tests.jar
  (cd "$module/target/test-classes" && find . -name '*serializer.class') >"$tests.list"
  [[ ! -s $tests.list ]] || (cd "$module/target/test-classes" && jar --create --file "$tests.in.jar" "@$tests.list")
  if [[ -s $tests.list ]]; then
    libraries=()
    for path in "${paths[@]}" "$module/target/test-classes"; do libraries+=(--classpath "$path"); done
    java -cp app/target/tools/r8-*.jar com.android.tools.r8.D8 --classfile --min-api 23 --lib "$jdk" \
      "${libraries[@]}" --output "$tests" "$tests.in.jar"
  fi
  # The desktop's JIT makes frames of this code that are many times those of the same code from javac:
  # 2.7 KB where an interpreter needs 0.4, so ninety levels of recursion don't fit into 1 MB.
  java -Xmx1500m -Xss2m -Dedgeinfinite.fixtures="$PWD/fixtures" \
    -cp "$classes:$tests:$module/target/test-classes:${console[0]}:$(IFS=:; echo "${paths[*]}")" \
    org.junit.platform.console.ConsoleLauncher execute --disable-banner --details=summary \
    --fail-if-no-tests --config "junit.jupiter.execution.timeout.default=5 m" \
    --scan-class-path="$module/target/test-classes"
done
