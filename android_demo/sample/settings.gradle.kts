pluginManagement {
    repositories {
        google()
        mavenCentral()
    }
}

dependencyResolutionManagement {
    repositoriesMode.set(RepositoriesMode.FAIL_ON_PROJECT_REPOS)
    repositories {
        google()
        mavenCentral()
        // A release's Maven bundle, unpacked: -Pedgeinfinite.repository=FOLDER. Else what was installed here.
        val bundle = providers.gradleProperty("edgeinfinite.repository")
        exclusiveContent {
            forRepository {
                if (bundle.isPresent) maven(uri(file(bundle.get()))) else mavenLocal()
            }
            filter { includeGroup("io.edgeinfinite") }
        }
    }
}

rootProject.name = "sample"
