package io.edgeinfinite.core

/** This library: its own version, and the versions of the files that it reads. */
public object Library {
    /**
     * Of `edgeinfinite-core` and of the runtimes beside it: major.minor.patch. It says what changed
     * for callers; artifacts and session files have numbers of their own.
     */
    public val version: String get() = "0.1.0"

    /** The schema of the artifacts that it opens. */
    public val artifactSchema: Int get() = SCHEMA_VERSION

    /** The format of the session files that it reads and writes. */
    public val sessionFormat: Int get() = SessionFile.FORMAT_VERSION
}
