package io.edgeinfinite.core

/**
 * What kind of thing went wrong, for programs: an app has a text of its own for each, in its users'
 * language. Names are stable; a later version may add some, so have a text for the others.
 */
public enum class ErrorCode {
    /** The folder or archive holds no artifact. */
    NO_ARTIFACT,

    /** A file of the artifact is missing, cut short or altered: copy or export it again. */
    ARTIFACT_DAMAGED,

    /** The artifact needs what a later version of this library has: update the app. */
    ARTIFACT_NEWER,

    /** An older exporter wrote the artifact: export it again. */
    ARTIFACT_OLDER,

    /** There is an artifact of this name already. */
    NAME_TAKEN,

    /** The archive is not a zip file, is cut short, or holds what no artifact holds. */
    BAD_ARCHIVE,

    /** The file to copy can't be read: pick it again. */
    UNREADABLE_SOURCE,

    /** A file can't be written: the storage may be full. */
    STORAGE,

    /** No engine that is built in opens the artifact's back end. */
    NO_ENGINE,

    /** The runtime refuses the artifact or fails while it computes. */
    ENGINE_FAILED,

    /** The model computes no usable numbers: check the artifact with `edgeinfinite verify`. */
    BROKEN_MODEL,

    /** There is no memory for the state. */
    OUT_OF_MEMORY,

    /** The artifact has no chat template; it only continues text. */
    NO_CHAT_TEMPLATE,

    /** The artifact's chat template doesn't work, or not for these messages. */
    CHAT_TEMPLATE,

    /** The session file doesn't exist. */
    SESSION_MISSING,

    /** The session file is not whole: start a new one. */
    SESSION_DAMAGED,

    /** A later version wrote the session file: update the app. */
    SESSION_NEWER,

    /** An earlier version wrote the session file: start a new one. */
    SESSION_OLDER,

    /** The session is of another model, gate, scorer or geometry. */
    SESSION_OF_ANOTHER_MODEL,

    /** There is nothing in the question or the document. */
    EMPTY_TEXT,

    /** A value is out of range. */
    INVALID_ARGUMENT,

    /** The model or the conversation was closed before. */
    CLOSED,

    /** The error is a caller's own, not this library's. */
    OTHER,
}
