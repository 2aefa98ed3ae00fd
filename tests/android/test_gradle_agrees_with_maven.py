"""The Gradle files, which can't be run here, agree with the Maven build, which runs."""

from __future__ import annotations

import re
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2] / "android_demo"
MODULES = ("core", "runtime-onnx", "onnx-android", "runtime-executorch", "app")
ONLY_IN_MAVEN = {"app-executorch": "a flavour of app in Gradle", "api": "compares dumps"}
PUBLISHED = {
    "core": "edgeinfinite-core",
    "runtime-onnx": "edgeinfinite-onnx",
    "onnx-android": "edgeinfinite-onnx-android",
}
POM = "{http://maven.apache.org/POM/4.0.0}"
CATALOG: dict[str, Any] = tomllib.loads(
    (PROJECT / "gradle/libs.versions.toml").read_text(encoding="utf-8")
)


def pom(module: str = ".") -> ET.Element:
    return ET.parse(PROJECT / "ci" / module / "pom.xml").getroot()


def properties(project: ET.Element | None = None) -> dict[str, str]:
    """Of a pom; of the parent where none is given."""
    found = (pom() if project is None else project).find(f"{POM}properties")
    assert found is not None
    return {entry.tag.removeprefix(POM): (entry.text or "") for entry in found}


def text(path: str) -> str:
    return (PROJECT / path).read_text(encoding="utf-8")


def gradle(module: str) -> str:
    return text(f"{module}/build.gradle.kts")


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("kotlin", "kotlin.version"),
        ("kotlinLanguage", "kotlin.language"),
        ("kotlinStdlib", "kotlin.stdlib.version"),
        ("coroutines", "coroutines.version"),
        ("serialization", "serialization.version"),
        ("onnxruntime", "onnxruntime.version"),
        ("junit", "junit.version"),
        ("junitPlatform", "junit.platform.version"),
        ("junit4", "junit4.version"),
        ("robolectric", "robolectric.version"),
        ("djl", "djl.version"),
        ("pdfbox", "pdfbox.version"),
        ("jvmTarget", "jvmTarget"),
        ("minSdk", "minSdk"),
        ("targetSdk", "targetSdk"),
        ("compileSdk", "compileSdk"),
    ],
)
def test_versions_and_sdk_levels_are_the_same(version: str, name: str) -> None:
    assert CATALOG["versions"][version] == properties()[name]


@pytest.mark.parametrize("version", ["commonmark", "jsoup", "jspecify", "juniversalchardet"])
def test_versions_of_the_apps_own_libraries_are_the_same(version: str) -> None:
    own = pom("app").find(f"{POM}properties")
    assert own is not None
    assert CATALOG["versions"][version] == own.findtext(f"{POM}{version}.version")


def test_both_builds_have_the_same_modules() -> None:
    included = re.findall(r'":([\w-]+)"', text("settings.gradle.kts"))
    built = [module.text for module in pom().iter(f"{POM}module")]
    assert included == [module for module in built if module not in ONLY_IN_MAVEN] == list(MODULES)
    assert set(built) == {*MODULES, *ONLY_IN_MAVEN}


@pytest.mark.parametrize("module", MODULES)
def test_both_builds_compile_the_same_sources(module: str) -> None:
    """Gradle's own default, `src/main/kotlin` and `src/test/kotlin` of the module's folder."""
    assert "srcDir" not in gradle(module)
    build = pom(module).find(f"{POM}build")
    assert build is not None
    for tag, kind in (("sourceDirectory", "main"), ("testSourceDirectory", "test")):
        path = (build.findtext(f"{POM}{tag}") or "").replace(
            "${project.basedir}", str(PROJECT / "ci" / module)
        )
        assert Path(path).resolve() == (PROJECT / module / "src" / kind / "kotlin").resolve()


def _gradle_dependencies(module: str, kinds: str) -> set[str]:
    """`group:artifact` of what the module needs, without a platform's suffix."""
    declared = re.findall(rf"(?:{kinds})\(libs\.([\w.]+)\)", gradle(module))
    libraries = {name.replace("-", "."): entry for name, entry in CATALOG["libraries"].items()}
    return {_plain(libraries[name]["module"]) for name in declared}


def _maven_dependencies(module: str, *, test: bool) -> set[str]:
    managed = pom().find(f"{POM}dependencyManagement")
    assert managed is not None
    scopes = {_name(one): one.findtext(f"{POM}scope") for one in managed.iter(f"{POM}dependency")}
    found = set()
    dependencies = pom(module).find(f"{POM}dependencies")
    for one in dependencies if dependencies is not None else ():
        scope = one.findtext(f"{POM}scope") or scopes.get(_name(one))
        if (scope == "test") == test:
            found.add(_plain(_name(one)))
    return found


def _name(dependency: ET.Element) -> str:
    return f"{dependency.findtext(f'{POM}groupId')}:{dependency.findtext(f'{POM}artifactId')}"


def _plain(name: str) -> str:
    return name.removesuffix("-jvm").removesuffix("-android")


ONLY_MAVEN = {
    "io.edgeinfinite:edgeinfinite-core",
    "io.edgeinfinite:edgeinfinite-onnx",  # edgeinfinite-onnx-android, too: see _plain
    "io.edgeinfinite:edgeinfinite-executorch",
    "org.jetbrains.kotlin:kotlin-stdlib",  # Kotlin's Gradle plugin adds it
    "org.robolectric:android-all",  # the Android SDK
    "react-native-executorch:classes",  # org.pytorch:executorch-android's
}
ONLY_GRADLE = {
    "org.pytorch:executorch",
    "com.microsoft.onnxruntime:onnxruntime",  # the app's natives, put into the APK by ci/app
}


@pytest.mark.parametrize("module", MODULES)
def test_both_builds_need_the_same_libraries(module: str) -> None:
    ours = _gradle_dependencies(module, "api|implementation|compileOnly")
    theirs = _maven_dependencies(module, test=False)
    assert ours - theirs <= ONLY_GRADLE
    assert theirs - ours <= ONLY_MAVEN


@pytest.mark.parametrize("module", MODULES)
def test_both_builds_test_with_the_same_libraries(module: str) -> None:
    ours = _gradle_dependencies(module, "testImplementation")
    theirs = _maven_dependencies(module, test=True)
    # Maven's `provided` is there for tests as well.
    assert ours - theirs <= _maven_dependencies(module, test=False)
    assert theirs <= ours


@pytest.mark.parametrize("module", ("core", "runtime-onnx", "app"))
def test_gradle_tests_find_the_fixtures(module: str) -> None:
    assert '"edgeinfinite.fixtures", rootProject.file("ci/fixtures").path' in gradle(module)


@pytest.mark.parametrize("module", ("onnx-android", "runtime-executorch", "app"))
def test_android_modules_take_their_sdk_levels_from_the_catalog(module: str) -> None:
    script = gradle(module)
    assert "compileSdk = libs.versions.compileSdk.get().toInt()" in script
    assert "minSdk = libs.versions.minSdk.get().toInt()" in script


def test_the_app_is_for_both_abis_and_the_targeted_level() -> None:
    script = gradle("app")
    assert "targetSdk = libs.versions.targetSdk.get().toInt()" in script
    abis = re.search(r"abiFilters \+= listOf\((.*)\)", script)
    assert abis is not None
    filters = set(re.findall(r'"([\w-]+)"', abis[1]))
    packed = re.search(r"^ABIS=\((.*)\)$", text("ci/app/natives.sh"), re.MULTILINE)
    assert packed is not None
    assert filters == set(packed[1].split()) == {"arm64-v8a", "x86_64"}


def test_the_app_has_the_same_name_and_version() -> None:
    script = gradle("app")
    assert f'versionName = "{pom().findtext(f"{POM}version")}"' in script
    assert "--version-code 1 " in text("ci/app/resources.sh")
    assert "versionCode = 1\n" in script
    package = re.search(r"^package=(.*)$", text("ci/app/resources.sh"), re.MULTILINE)
    assert package is not None
    assert f'applicationId = "{package[1]}"' in script
    assert f'namespace = "{package[1]}"' in script


@pytest.mark.parametrize(("module", "artifact"), PUBLISHED.items())
def test_libraries_are_published_under_the_same_names(module: str, artifact: str) -> None:
    script = gradle(module)
    assert pom(module).findtext(f"{POM}artifactId") == artifact
    assert f'artifactId = "{artifact}"' in script
    assert f'group = "{pom().findtext(f"{POM}groupId")}"' in script
    assert "version = libs.versions.edgeinfinite.get()" in script
    assert CATALOG["versions"]["edgeinfinite"] == pom().findtext(f"{POM}version")


@pytest.mark.parametrize("module", PUBLISHED)
def test_libraries_are_compiled_alike(module: str) -> None:
    """Explicit API, and a Kotlin that older apps can read."""
    script = gradle(module)
    assert "explicitApi()" in script
    assert "coreLibrariesVersion = libs.versions.kotlinStdlib.get()" in script
    assert script.count("KotlinVersion.fromVersion(libs.versions.kotlinLanguage.get())") == 2
    chosen = {
        entry.tag.removeprefix(POM): entry.text for entry in pom(module).find(f"{POM}properties")
    }
    assert chosen["explicitApi"] == "strict"
    for kind in ("languageVersion", "apiVersion"):
        assert chosen[f"kotlin.compiler.{kind}"] == "${kotlin.language}"


def test_the_library_says_its_own_version() -> None:
    source = text("core/src/main/kotlin/io/edgeinfinite/core/Library.kt")
    assert f'get() = "{CATALOG["versions"]["edgeinfinite"]}"' in source


def test_the_aar_brings_what_gradle_would_bring() -> None:
    """Its pom is a template, as Maven can't resolve onnxruntime-android here."""
    template = ET.parse(PROJECT / "ci/onnx-android/aar-pom.xml").getroot()
    needed = {_name(one) for one in template.iter(f"{POM}dependency")}
    projects = re.findall(r'api\(project\(":([\w-]+)"\)\)', gradle("onnx-android"))
    libraries = {f"io.edgeinfinite:{PUBLISHED[project]}" for project in projects}
    assert needed == libraries | {"com.microsoft.onnxruntime:onnxruntime-android"}
    assert template.findtext(f"{POM}packaging") == "aar"


def test_the_sample_uses_these_libraries_with_the_oldest_kotlin() -> None:
    chosen = properties(ET.parse(PROJECT / "sample/pom.xml").getroot())
    assert chosen["edgeinfinite.version"] == CATALOG["versions"]["edgeinfinite"]
    assert chosen["kotlin.version"].startswith(CATALOG["versions"]["kotlinLanguage"] + ".")
    for name in ("onnxruntime.version", "android.version"):
        assert chosen[name] == properties()[name]


def test_the_samples_gradle_build_is_its_maven_build_for_android() -> None:
    script = text("sample/build.gradle.kts")
    versions = CATALOG["versions"]
    assert f'id("com.android.application") version "{versions["agp"]}"' in script
    for name in ("compileSdk", "minSdk", "targetSdk"):
        assert f"{name} = {versions[name]}\n" in script
    needed = re.findall(r'^ +\w+\("(.*)"\)$', script.partition("dependencies {")[2], re.MULTILINE)
    sample = ET.parse(PROJECT / "sample/pom.xml").getroot()
    wanted = next(one for one in sample.iter(f"{POM}dependency") if "onnx" in _name(one))
    assert needed == [f"{_name(wanted)}:{versions['edgeinfinite']}"]
    assert "srcDir" not in script and (PROJECT / "sample/src/main/kotlin").is_dir()


def test_executorch_is_in_a_flavour_of_its_own() -> None:
    script = gradle("app")
    assert 'create("executorch")' in script
    assert '"executorchImplementation"(project(":runtime-executorch"))' in script
    assert script.count('project(":runtime-executorch")') == 1
    needed = _maven_dependencies("app", test=False)
    assert "io.edgeinfinite:edgeinfinite-executorch" not in needed
    assert re.search(r"includeInApk = false\s+includeInBundle = false", script)


def test_every_library_of_the_catalog_is_used() -> None:
    used = "".join(map(gradle, MODULES))
    for name in CATALOG["libraries"]:
        assert f"(libs.{name.replace('-', '.')})" in used, name


def test_the_versions_of_the_issue_are_named() -> None:
    versions = CATALOG["versions"]
    assert (versions["minSdk"], versions["targetSdk"]) == ("26", "36")
