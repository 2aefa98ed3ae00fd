plugins {
    alias(libs.plugins.android.application)
    alias(libs.plugins.kotlin.serialization)
}

kotlin {
    compilerOptions {
        optIn.add("io.edgeinfinite.core.EngineThreadApi")
    }
}

android {
    namespace = "io.edgeinfinite.app"
    compileSdk = libs.versions.compileSdk.get().toInt()
    defaultConfig {
        applicationId = "io.edgeinfinite.app"
        minSdk = libs.versions.minSdk.get().toInt()
        targetSdk = libs.versions.targetSdk.get().toInt()
        versionCode = 1
        versionName = "0.1.0"
        ndk {
            abiFilters += listOf("arm64-v8a", "x86_64")
        }
    }
    compileOptions {
        sourceCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
        targetCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
    }
    flavorDimensions += "engines"
    productFlavors {
        create("onnx") {
            isDefault = true
        }
        // An app beside the other one.
        create("executorch") {
            applicationIdSuffix = ".executorch"
        }
    }
    dependenciesInfo {
        // An encrypted block that only one store can read; F-Droid refuses it.
        includeInApk = false
        includeInBundle = false
    }
    testOptions {
        unitTests {
            isIncludeAndroidResources = true
            // What ci/build.sh fixtures writes.
            all { it.systemProperty("edgeinfinite.fixtures", rootProject.file("ci/fixtures").path) }
        }
    }
    packaging {
        // fbjni and the runtimes may each bring the same C++ library.
        jniLibs.pickFirsts += "**/libc++_shared.so"
    }
}

dependencies {
    implementation(project(":core"))
    implementation(project(":onnx-android"))
    "executorchImplementation"(project(":runtime-executorch"))
    implementation(libs.coroutines.android)
    implementation(libs.serialization.json)
    implementation(libs.commonmark)
    implementation(libs.jsoup)
    implementation(libs.juniversalchardet)
    // Which only PDFs that are encrypted for certificates need.
    implementation(libs.pdfbox.android) { exclude(group = "org.bouncycastle") }
    // jsoup's annotations, which Kotlin's compiler reads.
    compileOnly(libs.jspecify)
    // Answers on the desktop, inside Robolectric's tests.
    testImplementation(libs.onnxruntime.jvm)
    testImplementation(libs.junit4)
    testImplementation(libs.robolectric)
}
