// Versions stand in gradle/libs.versions.toml; ci/pom.xml repeats them for the build without the
// Android SDK, and tests/android/test_gradle_agrees_with_maven.py compares the two.
plugins {
    alias(libs.plugins.android.application) apply false
    alias(libs.plugins.android.library) apply false
    alias(libs.plugins.kotlin.jvm) apply false
    alias(libs.plugins.kotlin.serialization) apply false
}
