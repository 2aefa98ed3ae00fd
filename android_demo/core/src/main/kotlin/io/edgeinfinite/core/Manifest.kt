package io.edgeinfinite.core

import kotlinx.serialization.KSerializer
import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.descriptors.PrimitiveKind
import kotlinx.serialization.descriptors.PrimitiveSerialDescriptor
import kotlinx.serialization.encoding.Decoder
import kotlinx.serialization.encoding.Encoder
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonDecoder
import kotlinx.serialization.json.int
import kotlinx.serialization.json.jsonPrimitive

/** `manifest.json`: what `edgeinfinite export` writes, what every runtime reads. */
public const val MANIFEST_FILE: String = "manifest.json"

/** The one schema that this code reads. */
public const val SCHEMA_VERSION: Int = 2

/** Names of the graphs. */
public const val PREFILL: String = "prefill_segment"
public const val DECODE: String = "decode_step"
public const val COMPRESS: String = "compress_memory"

/** Stands in a shape for a size that each call chooses (`T`). */
public const val DYNAMIC: Int = -1

private val DYNAMIC_SIZES = setOf("T", "U")

/**
 * One input or state tensor.
 *
 * @property name as in the graph: `tokens`, `length`, `k_cache_0`, `memory`, ...
 * @property dtype numpy's name, `float32`, `int64`, ...
 * @property shape sizes; [DYNAMIC] where each call chooses.
 * @property dims the axes' letters, `B K C D` (see [Geometry]): the layout.
 * @property role its content: `k_cache`, `scores`, `length`, ...
 * @property layer the layer's index, null for tensors that all layers share.
 */
@Serializable
public data class TensorSpec(
    val name: String,
    val dtype: String,
    val shape: List<
        @Serializable(SizeSerializer::class)
        Int,
        >,
    val dims: String,
    val role: String,
    val layer: Int? = null,
) {
    /** Bytes of one element. */
    val elementBytes: Int get() = elementBytesOf(dtype)

    /** Bytes of the whole tensor; its shape must be fixed. */
    val bytes: Long get() = shape.fold(elementBytes.toLong()) { bytes, size -> bytes * size }

    /** Whether it is a layer's K or V cache, of which only the slots in use count. */
    val isCache: Boolean get() = role == "k_cache" || role == "v_cache"
}

/**
 * One output.
 *
 * @property alias the state tensor whose own buffer this output must be bound to.
 * @property updates the state tensor that the host replaces with this output after the call.
 */
@Serializable
public data class OutputSpec(
    val name: String,
    val dtype: String,
    val shape: List<
        @Serializable(SizeSerializer::class)
        Int,
        >,
    val dims: String,
    val role: String,
    val layer: Int? = null,
    val alias: String? = null,
    val updates: String? = null,
)

/** One graph: the file (or the program that holds it as a method) and its tensors in order. */
@Serializable
public data class GraphSpec(
    val file: String,
    val inputs: List<TensorSpec>,
    val outputs: List<OutputSpec>,
)

/** A file of the artifact: sha256 in hexadecimal, size in bytes. */
@Serializable
public data class FileEntry(
    val sha256: String,
    val size: Long,
)

/**
 * The checkpoint an artifact was made from.
 *
 * @property layers those that hold a cache: others read the cache of an earlier one, or don't attend.
 * @property kvHeads K, the largest of any layer where they differ.
 * @property headDim D, likewise.
 * @property heads K and D of every layer; null where they are the same in all.
 */
@Serializable
public data class BackboneInfo(
    val name: String,
    val architecture: String,
    val layers: Int,
    @SerialName("query_heads") val queryHeads: Int,
    @SerialName("kv_heads") val kvHeads: Int,
    @SerialName("head_dim") val headDim: Int,
    val vocabulary: Int,
    @SerialName("max_positions") val maxPositions: Long,
    val parameters: Long,
    @SerialName("weights_sha256") val weightsSha256: String,
    val heads: List<List<Int>>? = null,
)

/** The memory gate: its source, rank, number of parameters and sha256. */
@Serializable
public data class GateInfo(
    val source: String,
    val rank: Int,
    val parameters: Long,
    val sha256: String,
)

/**
 * How scores rank pairs, see Python's `artifact.rank_rule`; the graph has it built in.
 *
 * @property rankedSlots number of slots of a layer that are always filled by rank.
 */
@Serializable
public data class RankRule(
    @SerialName("pooled_share") val pooledShare: Double,
    val neighbours: Int,
    @SerialName("neighbours_share") val neighboursShare: Double,
    val recency: Double,
    @SerialName("newest_share") val newestShare: Double,
    @SerialName("ranked_slots") val rankedSlots: Int,
)

/**
 * The retention scorer that fills the recall slots.
 *
 * @property sha256 over its tensors and the rank rule: scores of a saved state depend on both.
 */
@Serializable
public data class ScorerInfo(
    val source: String,
    val parameters: Long,
    val sha256: String,
    @SerialName("rank_rule") val rankRule: RankRule,
)

/**
 * How the weights were quantized; single weights' names and formats are for people.
 *
 * @property roundedSha256 over the weights as the artifact computes with them, if a size, a loss or a
 *   text chose them; null where checkpoint and recipe determine them.
 */
@Serializable
public data class QuantizationInfo(
    val recipe: String,
    val quantized: Map<String, String>,
    val unquantized: List<String>,
    @SerialName("rounded_sha256") val roundedSha256: String? = null,
)

/**
 * The graphs once more, compiled for one chip's NPU.
 *
 * @property soc the chip's name, such as `sm8650`.
 * @property binary the context binary, which holds the weights.
 * @property files by graph: the files that name its part of the binary; a runtime opens these.
 */
@Serializable
public data class NpuInfo(
    val soc: String,
    @SerialName("soc_model") val socModel: Int,
    @SerialName("htp_arch") val htpArch: Int,
    val binary: String,
    val files: Map<String, String>,
)

/**
 * What a runtime must know about an artifact.
 *
 * @property backend `onnx` or `executorch`.
 * @property target `cpu` or the accelerator it was compiled for.
 * @property state the state tensors, owned by the host, each of fixed shape.
 * @property scorer the recall slots' scorer; null if there are none.
 * @property graphs by name. [COMPRESS] exists under policy `carry`, whose window it moves; under
 *   `reencode` only with a gate, because without one nothing reads M and z.
 * @property files every file by name, without the manifest itself.
 * @property parity figures of the check against the checkpoint, for people.
 * @property npu null for an artifact for the CPU. The graphs' own files run on the CPU too.
 */
@Serializable
public data class Manifest(
    @SerialName("schema_version") val schemaVersion: Int,
    val backend: String,
    val target: String,
    val backbone: BackboneInfo,
    val geometry: Geometry,
    val gate: GateInfo?,
    val scorer: ScorerInfo?,
    val state: List<TensorSpec>,
    val graphs: Map<String, GraphSpec>,
    val quantization: QuantizationInfo,
    val files: Map<String, FileEntry>,
    val parity: Map<String, Double> = emptyMap(),
    val npu: NpuInfo? = null,
) {
    /** Bytes of all files that the manifest names. */
    val bytes: Long get() = files.values.sumOf { it.size }

    /** Bytes of one text's state. */
    val stateBytes: Long get() = state.sumOf { it.bytes }

    /** What a state is about: checkpoint, gate, scorer and rank rule, however they are rounded. */
    val modelDigest: String get() {
        val parts = listOf("model", backbone.weightsSha256, gate?.sha256 ?: "no gate", scorer?.sha256 ?: "no scorer")
        return sha256Of(parts.joinToString("\n").toByteArray())
    }

    /** What computed a state: weights, gate, scorer and rank rule, quantization, layout, rounding. */
    val fingerprint: String get() {
        val layouts = state.map { "${it.dims} ${it.dtype}" }.toSortedSet()
        val parts =
            listOf(
                backbone.weightsSha256,
                gate?.sha256 ?: "no gate",
                scorer?.sha256 ?: "no scorer",
                quantization.recipe,
            )
        val all = parts + layouts + listOfNotNull(quantization.roundedSha256)
        return sha256Of(all.joinToString("\n").toByteArray())
    }

    public companion object {
        private val json = Json { ignoreUnknownKeys = true }

        /**
         * Reads a manifest's text.
         *
         * @param where its name in errors.
         * @throws EdgeInfiniteException it can't be read, is of another schema, or one that no export
         *   writes ([ManifestCheck]).
         */
        @JvmStatic
        public fun parse(
            text: String,
            where: String,
        ): Manifest {
            unsafeJson(text)?.let {
                throw EdgeInfiniteException(ErrorCode.ARTIFACT_DAMAGED, "$where can't be read: $it; export it again")
            }
            val manifest =
                try {
                    Json.parseToJsonElement(text) // whole, also where fields are skipped below
                    val head = json.decodeFromString<Head>(text)
                    val version = head.schemaVersion
                    if (version > SCHEMA_VERSION) {
                        throw EdgeInfiniteException(
                            ErrorCode.ARTIFACT_NEWER,
                            "$where has schema version $version, this app reads up to " +
                                "$SCHEMA_VERSION; update the app",
                        )
                    }
                    if (version < SCHEMA_VERSION) {
                        throw EdgeInfiniteException(
                            ErrorCode.ARTIFACT_OLDER,
                            "$where has schema version $version, from an edgeinfinite before this app's " +
                                "($SCHEMA_VERSION); export it again",
                        )
                    }
                    if (head.ownSha256 != null && !isItsOwn(text, head.ownSha256)) {
                        throw EdgeInfiniteException(
                            ErrorCode.ARTIFACT_DAMAGED,
                            "$where differs from what was exported (own_sha256); copy the artifact again",
                        )
                    }
                    if (hasSlotsByHead(text)) {
                        throw EdgeInfiniteException(
                            ErrorCode.ARTIFACT_OLDER,
                            "$where has recall slots by head (geometry.caches), which this app doesn't read; " +
                                "export it again",
                        )
                    }
                    json.decodeFromString<Manifest>(text)
                } catch (error: IllegalArgumentException) { // SerializationException is one
                    val reason = error.message.orEmpty().lineSequence().first()
                    throw EdgeInfiniteException(
                        ErrorCode.ARTIFACT_DAMAGED,
                        "$where can't be read ($reason); export it again",
                        error,
                    )
                }
            manifest.check(where)
            return manifest
        }

        /** Whether [stated] is the sha256 of a manifest's [text], with zeros in its own place. */
        private fun isItsOwn(
            text: String,
            stated: String,
        ): Boolean =
            stated.length == SHA256_DIGITS &&
                sha256Of(text.replace(stated, "0".repeat(SHA256_DIGITS)).toByteArray()) == stated
    }

    private fun check(where: String) {
        geometry.check(backbone.layers)
        val problem = ManifestCheck(this).problem() ?: return
        throw EdgeInfiniteException(ErrorCode.ARTIFACT_DAMAGED, "$where can't be used: $problem; export it again")
    }
}

/** Whether a name stays in its folder on every system: no separators, no `..`, no drive. */
internal fun isPlainFileName(name: String): Boolean =
    name.isNotEmpty() && name != "." && name != ".." && name.none { it in "/\\:\u0000" }

/**
 * Bytes of one element of numpy's [dtype].
 *
 * @throws EdgeInfiniteException an unknown type.
 */
internal fun elementBytesOf(dtype: String): Int =
    when (dtype) {
        "int64", "uint64", "float64" -> 8
        "float32", "int32", "uint32" -> 4
        "float16", "int16", "uint16" -> 2
        "int8", "uint8", "bool" -> 1
        else -> throw EdgeInfiniteException(ErrorCode.ARTIFACT_NEWER, "unknown tensor type '$dtype'; update the app")
    }

private const val SHA256_DIGITS = 64

@Serializable
private class Head(
    @SerialName("schema_version") val schemaVersion: Int,
    @SerialName("own_sha256") val ownSha256: String? = null,
)

private object SizeSerializer : KSerializer<Int> {
    override val descriptor = PrimitiveSerialDescriptor("Size", PrimitiveKind.INT)

    override fun deserialize(decoder: Decoder): Int =
        (decoder as JsonDecoder).decodeJsonElement().jsonPrimitive.let { size ->
            when {
                !size.isString -> size.int
                size.content in DYNAMIC_SIZES -> DYNAMIC
                else -> throw SerializationException("a size is '${size.content}'")
            }
        }

    override fun serialize(
        encoder: Encoder,
        value: Int,
    ) = encoder.encodeInt(value)
}
