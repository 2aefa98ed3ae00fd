import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.kotlin.jvm)
    alias(libs.plugins.kotlin.serialization)
    `maven-publish`
}

group = "io.edgeinfinite"
version = libs.versions.edgeinfinite.get()

kotlin {
    explicitApi()
    coreLibrariesVersion = libs.versions.kotlinStdlib.get()
    compilerOptions {
        languageVersion.set(KotlinVersion.fromVersion(libs.versions.kotlinLanguage.get()))
        apiVersion.set(KotlinVersion.fromVersion(libs.versions.kotlinLanguage.get()))
        optIn.add("io.edgeinfinite.core.EngineThreadApi")
    }
    jvmToolchain(libs.versions.jvmTarget.get().toInt())
}

dependencies {
    api(libs.coroutines.core)
    implementation(libs.serialization.json)
    testImplementation(libs.junit.jupiter)
    testImplementation(libs.djl.tokenizers)
    testRuntimeOnly(libs.junit.launcher)
}

tasks.test {
    useJUnitPlatform()
    // What ci/build.sh fixtures writes.
    systemProperty("edgeinfinite.fixtures", rootProject.file("ci/fixtures").path)
}

publishing {
    publications {
        register<MavenPublication>("maven") {
            artifactId = "edgeinfinite-core"
            from(components["java"])
        }
    }
}
