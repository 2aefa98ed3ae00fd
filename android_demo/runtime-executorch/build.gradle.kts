plugins {
    alias(libs.plugins.android.library)
}

kotlin {
    explicitApi()
    compilerOptions {
        optIn.add("io.edgeinfinite.core.EngineThreadApi")
    }
}

android {
    namespace = "io.edgeinfinite.executorch"
    compileSdk = libs.versions.compileSdk.get().toInt()
    defaultConfig {
        minSdk = libs.versions.minSdk.get().toInt()
    }
    compileOptions {
        sourceCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
        targetCompatibility = JavaVersion.toVersion(libs.versions.jvmTarget.get())
    }
}

dependencies {
    api(project(":core"))
    implementation(libs.executorch.android)
}
