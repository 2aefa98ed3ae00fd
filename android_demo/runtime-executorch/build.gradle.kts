plugins {
    alias(libs.plugins.android.library)
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
