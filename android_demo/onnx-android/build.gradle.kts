import org.jetbrains.kotlin.gradle.dsl.KotlinVersion

plugins {
    alias(libs.plugins.android.library)
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
}

android {
    namespace = "io.edgeinfinite.onnx.android"
    compileSdk = libs.versions.compileSdk.get().toInt()
    defaultConfig {
        minSdk = libs.versions.minSdk.get().toInt()
        consumerProguardFiles("consumer-rules.pro")
    }
    compileOptions {
        sourceCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
        targetCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
    }
    publishing {
        singleVariant("release")
    }
}

dependencies {
    api(project(":core"))
    api(project(":runtime-onnx"))
    api(libs.onnxruntime.android)
}

publishing {
    publications {
        register<MavenPublication>("maven") {
            artifactId = "edgeinfinite-onnx-android"
            afterEvaluate { from(components["release"]) }
        }
    }
}
