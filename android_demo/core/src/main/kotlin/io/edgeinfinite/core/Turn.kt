package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable

/**
 * One entry of a conversation's history.
 *
 * @property text the message; for a document its name.
 */
@Serializable
public data class Turn(
    val kind: Kind,
    val text: String,
) {
    /** Who or what. */
    @Serializable
    public enum class Kind {
        @SerialName("user")
        USER,

        @SerialName("assistant")
        ASSISTANT,

        @SerialName("document")
        DOCUMENT,
    }
}
