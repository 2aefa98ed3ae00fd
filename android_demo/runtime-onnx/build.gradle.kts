plugins {
    alias(libs.plugins.kotlin.jvm)
}

kotlin {
    jvmToolchain(libs.versions.jvmTarget.get().toInt())
}

dependencies {
    api(project(":core"))
    // The same classes on the JVM and on Android; the app brings onnxruntime-android.
    compileOnly(libs.onnxruntime.jvm)
    testImplementation(libs.onnxruntime.jvm)
    testImplementation(libs.junit.jupiter)
}

tasks.test {
    useJUnitPlatform()
}
