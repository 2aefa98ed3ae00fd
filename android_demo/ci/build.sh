#!/usr/bin/env bash
# Builds and tests the Android project without the Android SDK, with Maven and the desktop's JVM:
# style, fixtures from Python, core and the runtimes, the app, the signed APK and the classes in it,
# session files back in Python.
#
#   build.sh [STEP...]      steps: style fixtures kernels downloads maven apk sample dex sessions (default: all of them)
#   build.sh api            writes the dumps of the libraries' public API anew
#   build.sh package        the APK without any test, for a release (scripts/release.sh)
#   build.sh bundle         the libraries for a Maven repository: target/edgeinfinite-maven.zip
#   build.sh executorch     packs the app's flavour with ExecuTorch (after maven)
#   build.sh screenshots ARTIFACT TEXT [QUESTION...]  the README's pictures, of a real model (after maven)
#
#   PYTHON=...   an interpreter with edgeinfinite[onnx] installed (default: the repository's .venv)
#   PROJECT_PAGE=https://...   of bundle: the project's address, for url and scm of the poms
#   EDGEINFINITE_GPG_KEY=ID    of bundle: GnuPG's key to sign with (EDGEINFINITE_GPG_PASSPHRASE)
#
# Debian's packages that it needs and installs when they are missing (as root): see PACKAGES.
set -euo pipefail
# Paths are the caller's.
if [[ ${1:-} == screenshots && $# -ge 3 ]]; then
    set -- "$1" "$(realpath -m "$2")" "$(realpath -m "$3")" "${@:4}"
fi
cd "$(dirname "$0")"

# Program and the package that has it.
PACKAGES=(
    javac:openjdk-17-jdk-headless mvn:maven npm:npm apksigner:apksigner enjarify:enjarify
)
STEPS=(style fixtures kernels downloads maven apk sample dex sessions)
EXECUTORCH=react-native-executorch
repository=$(cd ../.. && pwd)
PYTHON=${PYTHON:-$repository/.venv/bin/python}
fixtures=$PWD/fixtures

install_packages() {
    local entry missing=()
    for entry in "${PACKAGES[@]}"; do
        command -v "${entry%%:*}" >/dev/null || missing+=("${entry#*:}")
    done
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "build.sh: install ${missing[*]} first" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

property() {
    sed -n "s:.*<$1>\(.*\)</.*:\1:p" pom.xml
}

maven() {
    MAVEN_OPTS=${MAVEN_OPTS:--XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=160m} mvn -B -ntp -Dstyle.color=never "$@"
}

# The official Kotlin style, in every Kotlin file.
step_style() {
    local version
    version=$(property ktlint.version)
    local ktlint=downloads/ktlint/ktlint-cli-$version-all.jar
    if [[ ! -f $ktlint ]]; then
        maven -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="com.pinterest.ktlint:ktlint-cli:$version:jar:all" \
            -DoutputDirectory="$PWD/downloads/ktlint" -N
    fi
    (cd .. && java -jar "ci/$ktlint" --relative '**/*.kt' '**/*.kts' '!**/target/**' '!**/build/**')
    echo "style: ktlint $version found nothing"
}

# The classes of ExecuTorch's AAR, which Maven doesn't serve, and the parts of PdfBox's, which it can't use.
step_downloads() {
    download_pdfbox
    local version
    version=$(property executorch.npm.version)
    mkdir -p downloads/npm downloads/executorch
    local package=downloads/npm/$EXECUTORCH-$version.tgz
    if [[ ! -f $package ]]; then
        (cd downloads/npm && npm pack --silent "$EXECUTORCH@$version")
    fi
    if [[ ! -f downloads/executorch/classes.jar || $package -nt downloads/executorch/classes.jar ]]; then
        tar -xzmf "$package" -C downloads/executorch --strip-components=3 package/android/libs/classes.jar
    fi
}

# Without BouncyCastle, which only PDFs that are encrypted for certificates need.
download_pdfbox() {
    local version
    version=$(property pdfbox.version)
    local aar=downloads/pdfbox/pdfbox-android-$version.aar
    if [[ ! -f $aar ]]; then
        maven -q org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy -Dartifact="com.tom-roush:pdfbox-android:$version:aar" \
            -DoutputDirectory="$PWD/downloads/pdfbox" -N
    fi
    if [[ ! -f downloads/pdfbox/classes.jar || $aar -nt downloads/pdfbox/classes.jar ]]; then
        (cd downloads/pdfbox && rm -rf assets && jar --extract --file "${aar##*/}" classes.jar assets && touch classes.jar)
    fi
}

step_fixtures() {
    "$PYTHON" "$repository/tests/android/write_fixtures.py" "$fixtures"
    "$PYTHON" app/fixtures.py "$fixtures"
}

# ONNX Runtime's kernels of a CPU with AVX2 and no AVX-512, VNNI or bfloat16.
step_kernels() {
    if [[ $(uname -m) == x86_64 && $(id -u) == 0 ]] && ! command -v qemu-x86_64 >/dev/null; then
        PACKAGES=(qemu-x86_64:qemu-user)
        install_packages || true
    fi
    if [[ $(uname -m) != x86_64 ]] || ! command -v qemu-x86_64 >/dev/null; then
        echo "kernels: skipped, they need an x86-64 machine with qemu-x86_64 (Debian's qemu-user)"
        return
    fi
    qemu-x86_64 -cpu Haswell "$PYTHON" "$repository/tests/android/check_kernels.py" "$fixtures" \
        2> >(grep -v "TCG doesn't support" >&2)
}

step_maven() {
    # Installs the libraries, too; sample.sh uses them.
    maven install
}

# The dumps of the libraries' API, written anew; without it the build compares them.
step_api() {
    maven -pl api -am -DupdateApi=true -Dtest=PublicApiTest -Dsurefire.failIfNoSpecifiedTests=false test
}

# The APK alone; its key by the environment, see app/apk.sh.
step_package() {
    step_downloads
    maven package -Dmaven.test.skip=true
    step_apk
}

# The libraries with sources, documentation, sums and signatures. Maven then takes each from the bundle into an
# empty repository, and refuses it if a sum isn't right.
step_bundle() {
    local bundle=target/edgeinfinite-maven.zip library version
    version=$(sed -n 's:^  <version>\(.*\)</version>:\1:p' pom.xml)
    maven -Pbundle -pl core,runtime-onnx,onnx-android package -Dmaven.test.skip=true
    python3 bundle.py "$bundle" ${PROJECT_PAGE:+--page "$PROJECT_PAGE"} ${EDGEINFINITE_GPG_KEY:+--key "$EDGEINFINITE_GPG_KEY"}
    rm -rf target/bundle target/resolved
    mkdir -p target/bundle
    (cd target/bundle && jar --extract --file "../../$bundle")
    # onnxruntime-android isn't everywhere: the AAR without what it needs.
    for library in "edgeinfinite-onnx:$version" "edgeinfinite-onnx-android:$version:aar -Dtransitive=false"; do
        # shellcheck disable=SC2086
        maven -q --strict-checksums -N -Dmaven.repo.local="$PWD/target/resolved" \
            org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get \
            -DremoteRepositories="bundle::default::file://$PWD/target/bundle" -Dartifact="io.edgeinfinite:"$library
    done
    rm -rf target/resolved
    echo "bundle: Maven takes the libraries from it"
}

# The flavour with ExecuTorch: nobody has run it on a device.
step_executorch() {
    app/apk.sh executorch
}

# A project in Kotlin and Java that uses what was installed.
step_sample() {
    ./sample.sh "$fixtures"
}

step_apk() {
    app/apk.sh
}

# The tests of core and runtime-onnx once more, on the classes that the APK ships.
step_dex() {
    app/dex_tests.sh
}

# Python opens what the Kotlin tests wrote.
step_sessions() {
    "$PYTHON" "$repository/tests/android/check_kotlin_sessions.py" "$fixtures"
}

screenshots() {
    local artifact text
    artifact=$1 text=$2
    maven -pl app -am test -Dtest=ScreenshotTest -Dsurefire.failIfNoSpecifiedTests=false \
        -Dedgeinfinite.screenshots.model="$artifact" -Dedgeinfinite.screenshots.text="$text" \
        ${3:+-Dedgeinfinite.screenshots.questions="$(printf '%s\n' "${@:3}")"}
    mkdir -p ../screenshots
    cp app/target/screenshots/*.png ../screenshots/
}

usage() {
    echo "usage: build.sh [${STEPS[*]}] | api | bundle | executorch | package | screenshots ARTIFACT TEXT [QUESTION...]" >&2
    exit 2
}

if [[ ${1:-} == screenshots ]]; then
    [[ $# -ge 3 && -d $2 && -f $3 ]] || usage
    install_packages
    screenshots "${@:2}"
    exit
fi
[[ $# -gt 0 ]] || set -- "${STEPS[@]}"
for step in "$@"; do
    [[ " ${STEPS[*]} api bundle executorch package " == *" $step "* ]] || usage
done
install_packages
# An emulated CPU keeps one core busy for more than a minute; what comes after it doesn't wait.
beside=
for step in "$@"; do
    echo "== $step ($SECONDS s)"
    if [[ $step == kernels && ${*: -1} != kernels ]]; then
        found=$(mktemp)
        step_kernels >"$found" 2>&1 &
        beside=$!
        trap 'pkill -P "$beside" 2>/dev/null || true; rm -f "$found"' EXIT
    else
        "step_$step"
    fi
done
if [[ -n $beside ]]; then
    status=0
    wait "$beside" || status=$?
    echo "== kernels, what they found ($SECONDS s)"
    cat "$found"
    [[ $status == 0 ]] || exit "$status"
fi
echo "== done ($SECONDS s)"
