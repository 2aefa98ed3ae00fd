#!/usr/bin/env bash
# Builds and tests the Android project without the Android SDK, with Maven and the desktop's JVM:
# fixtures from Python, core and the runtimes, the app, session files back in Python.
#
#   PYTHON=...   an interpreter with edgeinfinite[onnx] installed (default: the repository's .venv)
#   build.sh fixtures | downloads | maven | all     (default: all)
#
# Debian's packages that it needs and installs when they are missing (as root): see PACKAGES.
set -euo pipefail
cd "$(dirname "$0")"

PACKAGES=(openjdk-17-jdk-headless maven npm)
EXECUTORCH=react-native-executorch
repository=$(cd ../.. && pwd)
PYTHON=${PYTHON:-$repository/.venv/bin/python}
fixtures=$PWD/fixtures

install_packages() {
    if command -v javac >/dev/null && command -v mvn >/dev/null && command -v npm >/dev/null; then
        return
    fi
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        echo "build.sh: install ${PACKAGES[*]} first (JDK 17, Maven, npm)" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}"
}

# The classes of ExecuTorch's AAR, which Maven doesn't serve.
downloads() {
    local version
    version=$(sed -n 's:.*<executorch.npm.version>\(.*\)</.*:\1:p' pom.xml)
    mkdir -p downloads/npm downloads/executorch
    local package=downloads/npm/$EXECUTORCH-$version.tgz
    if [[ ! -f $package ]]; then
        (cd downloads/npm && npm pack --silent "$EXECUTORCH@$version")
    fi
    if [[ ! -f downloads/executorch/classes.jar || $package -nt downloads/executorch/classes.jar ]]; then
        tar -xzmf "$package" -C downloads/executorch --strip-components=3 package/android/libs/classes.jar
    fi
}

write_fixtures() {
    "$PYTHON" "$repository/tests/android/write_fixtures.py" "$fixtures"
    if [[ -f app/fixtures.py ]]; then
        "$PYTHON" app/fixtures.py "$fixtures"
    fi
}

maven() {
    mvn -B -ntp -Dstyle.color=never "$@"
}

check_sessions() {
    "$PYTHON" "$repository/tests/android/check_kotlin_sessions.py" "$fixtures"
}

install_packages
case ${1:-all} in
fixtures) write_fixtures ;;
downloads) downloads ;;
maven)
    downloads
    maven verify
    ;;
all)
    downloads
    write_fixtures
    maven verify
    check_sessions
    ;;
*)
    echo "usage: build.sh [fixtures | downloads | maven | all]" >&2
    exit 2
    ;;
esac
