// The same project as pom.xml's, for Android. The plugin compiles Kotlin and Java; tests/android compares the
// versions with pom.xml's and the app's, which runs here.
plugins {
    id("com.android.application") version "9.1.1"
}

android {
    namespace = "io.edgeinfinite.sample"
    compileSdk = 36
    defaultConfig {
        applicationId = "io.edgeinfinite.sample"
        minSdk = 26
        targetSdk = 36
        versionCode = 1
        versionName = "1"
    }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_17
        targetCompatibility = JavaVersion.VERSION_17
    }
    buildTypes {
        release {
            // The library's AAR brings the rules that it needs.
            isMinifyEnabled = true
            proguardFiles(getDefaultProguardFile("proguard-android-optimize.txt"))
        }
    }
}

dependencies {
    implementation("io.edgeinfinite:edgeinfinite-onnx-android:0.1.0")
}
