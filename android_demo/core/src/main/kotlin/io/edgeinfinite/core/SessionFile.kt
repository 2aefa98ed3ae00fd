package io.edgeinfinite.core

import kotlinx.serialization.SerialName
import kotlinx.serialization.Serializable
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import java.io.File
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.ByteOrder

/**
 * A restored session and the caller's own metadata.
 *
 * @property session continues exactly where it was saved.
 * @property takenOver another artifact of the same model computed the state; the session goes on with
 *   this one's rounding.
 */
@EngineThreadApi
public data class RestoredSession(
    val session: Session,
    val extra: Map<String, String>,
    val takenOver: Boolean,
)

/**
 * Sessions on disk: one safetensors file each, in the Python runtime's format.
 *
 * Tensors: the state by name, caches cut to the slots in use, plus `residual` and `unread` (int64
 * token ids). Metadata `edgeinfinite`: a JSON object with the format's version, the fingerprint of
 * what the state belongs to, and the counters; [SessionChecksum.KEY] is the file's checksum; other
 * metadata is the caller's.
 */
@EngineThreadApi
public object SessionFile {
    /** The one format that this code reads. */
    public const val FORMAT_VERSION: Int = 2
    private const val KEY = "edgeinfinite"
    private const val LONGEST_REASON = 300
    private val json = Json {
        ignoreUnknownKeys = true
        encodeDefaults = true
        explicitNulls = false
    }

    /**
     * Writes a session; an older file is replaced only when the new one is complete.
     *
     * @param session between two calls of `append`.
     * @param extra the caller's own metadata, such as the conversation.
     * @throws EdgeInfiniteException the file can't be written.
     */
    public fun save(
        session: Session,
        file: File,
        extra: Map<String, String> = emptyMap(),
    ) {
        val engine = session.engine
        val header =
            Header(
                FORMAT_VERSION,
                engine.fingerprint,
                engine.geometry,
                session.tokensRead,
                session.compressions,
                engine.modelDigest,
                session.state.specs.filter { it.isCache }.associate { it.role to it.dims },
            )
        val state = session.state
        val tensors = LinkedHashMap<String, StoredTensor>()
        for (spec in state.specs) {
            val slots = inUse(spec, state)
            tensors[spec.name] = StoredTensor(spec.dtype, slots.shape, slots.views(state.buffer(spec.name)))
        }
        tensors["residual"] = tokenTensor(session.residual)
        tensors["unread"] = tokenTensor(session.unread)
        val unfinished = File(file.path + ".partial")
        try {
            val own = mapOf(KEY to json.encodeToString(header), SessionChecksum.KEY to SessionChecksum.NONE)
            Safetensors(tensors, extra + own).write(unfinished)
            SessionChecksum.seal(unfinished)
            if (!unfinished.renameTo(file)) throw IOException("it can't be renamed")
            file.absoluteFile.parentFile?.let(SessionChecksum::force)
        } catch (error: IOException) {
            throw EdgeInfiniteException(
                ErrorCode.STORAGE,
                "session file $file can't be written: ${error.message}",
                error,
            )
        } finally {
            unfinished.delete()
        }
    }

    /**
     * Restores a session.
     *
     * @param engine of the same artifact, or of any other one of the same model, gate, scorer and
     *   geometry: another back end, quantization or type of cache.
     * @param file written by [save] or by the Python runtime.
     * @param chunkLength as in [Session].
     * @throws EdgeInfiniteException the file is missing, damaged, of a newer format, holds NaN, or
     *   is of another model, gate, scorer or geometry.
     */
    public fun load(
        engine: Engine,
        file: File,
        chunkLength: Int? = null,
    ): RestoredSession {
        val (stored, header) = read(file)
        val own = header.belongsTo == engine.fingerprint
        val sameModel = own || header.model == engine.modelDigest
        if (!sameModel || header.geometry != engine.geometry) {
            throw EdgeInfiniteException(
                ErrorCode.SESSION_OF_ANOTHER_MODEL,
                "$file was made with another model, gate, scorer or geometry; open it with that artifact",
            )
        }
        val session = Session(engine, chunkLength)
        try {
            SessionChecksum.check(file, stored.metadata[SessionChecksum.KEY])
            restore(session, header, stored.tensors, if (own) null else ForeignState(header.cacheDims))
        } catch (error: EdgeInfiniteException) {
            session.close()
            throw error
        } catch (error: IOException) {
            session.close()
            throw notWhole(file, error)
        } catch (error: RuntimeException) { // wrong shapes, or counters that overflow
            session.close()
            throw notWhole(file, error)
        }
        return RestoredSession(session, stored.metadata - KEY - SessionChecksum.KEY, takenOver = !own)
    }

    /**
     * Whether the file's state goes on with an artifact, as far as its header tells.
     *
     * @throws EdgeInfiniteException the file is missing, no whole session file, or of another format.
     */
    public fun fits(
        file: File,
        manifest: Manifest,
    ): Boolean {
        val (_, header) = read(file)
        val sameModel = header.belongsTo == manifest.fingerprint || header.model == manifest.modelDigest
        return sameModel && header.geometry == manifest.geometry
    }

    private fun read(file: File): Pair<Safetensors, Header> {
        if (!file.isFile) throw EdgeInfiniteException(ErrorCode.SESSION_MISSING, "session file $file doesn't exist")
        val stored: Safetensors
        val header: Header
        try {
            stored = Safetensors.read(file)
            val text = requireNotNull(stored.metadata[KEY]) { "no session in it" }
            if (hasSlotsByHead(text)) {
                throw EdgeInfiniteException(
                    ErrorCode.SESSION_OLDER,
                    "$file has recall slots by head (geometry.caches), which this app doesn't read; " +
                        "export its artifact again and read the text anew",
                )
            }
            header = json.decodeFromString<Header>(text)
        } catch (error: IOException) {
            throw notWhole(file, error)
        } catch (error: SerializationException) {
            throw notWhole(file, error)
        } catch (error: EdgeInfiniteException) { // says more
            throw error
        } catch (error: RuntimeException) { // thrown for a malformed header
            throw notWhole(file, error)
        } catch (error: StackOverflowError) { // deeply nested JSON
            throw notWhole(file, error)
        }
        if (header.format > FORMAT_VERSION) {
            throw EdgeInfiniteException(
                ErrorCode.SESSION_NEWER,
                "$file has session format ${header.format}; update the app",
            )
        }
        if (header.format < FORMAT_VERSION) {
            throw EdgeInfiniteException(
                ErrorCode.SESSION_OLDER,
                "$file has session format ${header.format}, from an app before this one; start a new one",
            )
        }
        return stored to header
    }

    private fun restore(
        session: Session,
        header: Header,
        tensors: Map<String, StoredTensor>,
        foreign: ForeignState?,
    ) {
        val state = session.state
        session.tokensRead = header.tokensRead
        session.compressions = header.compressions
        session.residual.addLast(tokensOf("residual", tensors, session.engine.vocabulary))
        session.unread.addLast(tokensOf("unread", tensors, session.engine.vocabulary))
        val unknown = tensors.keys - state.specs.map { it.name }.toSet() - setOf("residual", "unread")
        require(unknown.isEmpty()) { "${unknown.first()} isn't a tensor of this artifact's sessions" }
        val (counters, others) = state.specs.partition { it.role == "length" || it.role == "has_memory" }
        restore(counters, state, tensors, foreign)
        checkCounters(session)
        restore(others, state, tensors, foreign)
    }

    private fun restore(
        specs: List<TensorSpec>,
        state: State,
        tensors: Map<String, StoredTensor>,
        foreign: ForeignState?,
    ) {
        for (spec in specs) {
            val slots = inUse(spec, state)
            val stored = requireNotNull(tensors[spec.name]) { "${spec.name} is missing" }
            val tensor = foreign?.converted(stored, spec, slots.shape) ?: stored
            require(tensor.dtype == spec.dtype && tensor.shape == slots.shape) {
                "${spec.name} is ${tensor.dtype}${tensor.shape}, expected ${spec.dtype}${slots.shape}"
            }
            require(isFinite(spec.dtype, tensor.data)) {
                "${spec.name} holds NaN or infinity"
            }
            slots.write(tensor.data, state.buffer(spec.name))
        }
    }

    /** A whole tensor, or a cache up to `length`. */
    private fun inUse(
        spec: TensorSpec,
        state: State,
    ): Slots {
        if (!spec.isCache) return Slots.all(spec)
        val used = state.lengthOf(requireNotNull(spec.layer))
        require(used in 0..Slots.all(spec).capacity) { "$used slots in use" }
        return Slots.of(spec, 0, used)
    }

    /** Checks every counter against the number of tokens, layer by layer. */
    private fun checkCounters(session: Session) {
        val geometry = session.engine.geometry
        val state = session.state
        require(session.compressions >= 0) { "${session.compressions} compressions" }
        val folded = Math.multiplyExact(session.compressions, geometry.segmentLength.toLong())
        val residual = session.residual.size
        val sinks = session.cached.coerceIn(0, geometry.sinkLength)
        val read = folded + sinks + residual
        for (layer in 0 until state.layers) {
            if (geometry.slides(layer)) {
                checkWindow(geometry, layer, state.lengthOf(layer), read)
                continue
            }
            val used = sinks + minOf(geometry.slotsOf(layer).toLong(), folded) + residual
            require(state.lengthOf(layer).toLong() == used && used <= geometry.capacity) {
                "layer $layer has ${state.lengthOf(layer)} slots in use, $residual tokens and " +
                    "${session.compressions} compressions make $used of ${geometry.capacity}"
            }
        }
        val hasMemory = session.engine.readsMemory && session.compressions > 0
        val flag = state.buffer("has_memory").asFloatBuffer().get(0)
        require(flag == (if (hasMemory) 1f else 0f)) { "has_memory is $flag" }
        require(session.tokensRead == read) { "${session.tokensRead} tokens read don't agree with the counters" }
    }

    /**
     * A layer with a sliding window holds it, as far as the text goes, and at most N tokens more.
     *
     * How many depends on when it was full; any number of these is a sound state.
     */
    private fun checkWindow(
        geometry: Geometry,
        layer: Int,
        length: Int,
        read: Long,
    ) {
        val kept = geometry.keptOf(layer).toLong()
        val held = minOf(kept, read)..minOf(kept + geometry.segmentLength, read)
        require(length in held) { "layer $layer has $length slots in use, its sliding window holds $held" }
    }

    private fun tokenTensor(tokens: TokenQueue): StoredTensor {
        val ids = tokens.toIntArray()
        val data = ByteBuffer.allocate(ids.size * Long.SIZE_BYTES).order(ByteOrder.LITTLE_ENDIAN)
        ids.forEachIndexed { index, id -> data.putLong(index * Long.SIZE_BYTES, id.toLong()) }
        return StoredTensor("int64", listOf(ids.size), listOf(data))
    }

    private fun tokensOf(
        name: String,
        tensors: Map<String, StoredTensor>,
        vocabulary: Int,
    ): IntArray {
        val tensor = requireNotNull(tensors[name]) { "$name is missing" }
        require(tensor.dtype == "int64" && tensor.shape.size == 1) { "$name holds no token ids" }
        val ids = tensor.data.asLongBuffer()
        return IntArray(tensor.shape[0]) { index ->
            val id = ids.get(index)
            require(id in 0 until vocabulary) { "$name holds the token $id, the vocabulary has $vocabulary" }
            id.toInt()
        }
    }

    private fun notWhole(
        file: File,
        cause: Throwable,
    ): EdgeInfiniteException {
        val reason = cause.message.orEmpty().lineSequence().first().take(LONGEST_REASON)
        return EdgeInfiniteException(
            ErrorCode.SESSION_DAMAGED,
            "$file is not a whole session file ($reason); start a new one",
            cause,
        )
    }

    @Serializable
    private data class Header(
        val format: Int,
        @SerialName("belongs_to") val belongsTo: String,
        val geometry: Geometry,
        @SerialName("tokens_read") val tokensRead: Long,
        val compressions: Long,
        val model: String = "",
        @SerialName("cache_dims") val cacheDims: Map<String, String> = emptyMap(),
    )
}
