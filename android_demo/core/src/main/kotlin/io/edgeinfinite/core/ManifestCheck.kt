package io.edgeinfinite.core

/** What a manifest may say, checked before any file that it names is opened: as `artifact/manifest_check.py`. */
internal class ManifestCheck(
    private val manifest: Manifest,
) {
    private val backbone = manifest.backbone
    private val geometry = manifest.geometry
    private val state = manifest.state.associateBy { it.name }

    /** The first thing that is wrong; null for what an export writes. */
    fun problem(): String? = files() ?: sizes() ?: state() ?: graphs()

    private fun files(): String? {
        val names = manifest.files.keys + manifest.graphs.values.map { it.file }
        names.find { !isPlainFileName(it) }?.let { return "file name '$it' points outside the artifact" }
        manifest.files.entries.find { it.value.size !in 0 until MOST_SIZE }?.let {
            return "${it.key} has ${it.value.size} bytes"
        }
        val unlisted = manifest.graphs.values.find { it.file !in manifest.files }
        if (unlisted != null) return "${unlisted.file} isn't among its files"
        val compiled = manifest.npu?.run { files.values + binary }.orEmpty()
        val missing = compiled.find { it !in manifest.files } ?: return null
        return "$missing was compiled, but isn't among its files"
    }

    private fun sizes(): String? {
        val sizes =
            mapOf(
                "layers" to backbone.layers,
                "query_heads" to backbone.queryHeads,
                "kv_heads" to backbone.kvHeads,
                "head_dim" to backbone.headDim,
                "vocabulary" to backbone.vocabulary,
            )
        sizes.entries.find { it.value < 1 }?.let { return "the backbone has ${it.value} ${it.key}" }
        if (backbone.layers > MOST_LAYERS) return "the backbone has ${backbone.layers} layers"
        return backbone.heads?.let { heads(it) }
    }

    /** What is wrong with the KV heads and dimensions of each layer, where they differ. */
    private fun heads(heads: List<List<Int>>): String? {
        if (heads.size != backbone.layers) {
            return "it names the heads of ${heads.size} layers, the backbone has ${backbone.layers}"
        }
        val most = listOf(backbone.kvHeads, backbone.headDim)
        val wrong =
            heads.indexOfFirst { of ->
                of.size != most.size || of.zip(most).any { (size, limit) -> size !in 1..limit } ||
                    backbone.queryHeads % of.first() != 0
            }
        return if (wrong < 0) null else "layer $wrong has the heads ${heads[wrong]}"
    }

    private fun state(): String? {
        for (name in listOf("length", "has_memory")) {
            if (name !in state) return "it has no state tensor '$name'"
        }
        if (state.size < manifest.state.size) return "two state tensors have the same name"
        val caches = manifest.state.filter { it.isCache }.map { it.role to it.layer }
        val wanted = listOf("k_cache", "v_cache").flatMap { role -> (0 until backbone.layers).map { role to it } }
        if (caches.size != wanted.size || caches.toSet() != wanted.toSet()) {
            return "its state doesn't have one K and one V cache for each of ${backbone.layers} layers"
        }
        for (spec in manifest.state) {
            tensor(spec.name, spec.dtype, spec.dims, spec.shape, spec.role, spec.layer)?.let { return it }
            val ofRole = if (spec.layer == null) spec.role else "${spec.role}_${spec.layer}"
            if (spec.name != ofRole) return "state tensor ${spec.name} has the role ${spec.role} of layer ${spec.layer}"
            if (DYNAMIC in spec.shape) return "${spec.name} has no fixed shape"
        }
        val bytes = manifest.state.sumOf { it.bytes.toDouble() }
        return if (bytes > MOST_BYTES) "its state would take ${bytes.toLong()} bytes" else null
    }

    private fun graphs(): String? {
        val compresses = geometry.policy == "carry" || manifest.gate != null
        val wanted = listOf(PREFILL, DECODE) + if (compresses) listOf(COMPRESS) else emptyList()
        wanted.find { it !in manifest.graphs }?.let { return "a graph is missing: $it" }
        return manifest.graphs.firstNotNullOfOrNull { (name, graph) -> graph(graph)?.let { "graph $name: $it" } }
            ?: standsStill()
    }

    private fun graph(graph: GraphSpec): String? {
        for (spec in graph.inputs) {
            if (spec.name !in CALLS_OWN && spec.name !in state) return "input ${spec.name} isn't a state tensor"
            tensor(spec.name, spec.dtype, spec.dims, spec.shape, spec.role, spec.layer)?.let { return it }
        }
        for (output in graph.outputs) {
            if (DYNAMIC in output.shape) return "output ${output.name} has no fixed shape"
            for (name in listOfNotNull(output.alias, output.updates)) {
                val target = state[name] ?: return "output ${output.name} goes to $name, which isn't a state tensor"
                if (output.dtype != target.dtype || output.shape != target.shape) {
                    return "output ${output.name} hasn't the shape and type of $name"
                }
            }
            val (name, dtype, shape, dims, role, layer) = output
            tensor(name, dtype, dims, shape, role, layer)?.let { return it }
        }
        return null
    }

    private fun tensor(
        name: String,
        dtype: String,
        dims: String,
        shape: List<Int>,
        role: String,
        layer: Int?,
    ): String? {
        if (role !in ROLES) return "$name has the unknown role '$role'"
        elementBytesOf(dtype)
        if (role in RECURRENT_DIMS) return recurrent(name, dtype, dims, shape, layer, role)
        val letters = dims.split(' ')
        if (letters.size != shape.size) return "$name has ${shape.size} axes, its layout says '$dims'"
        if (layer != null && layer !in 0 until backbone.layers) return "$name is of layer $layer"
        for ((letter, size) in letters.zip(shape)) {
            val wanted = sizeOf(letter, layer)
            when {
                size == DYNAMIC -> if (letter != "T" && letter != "C") return "$name has no size on the axis $letter"
                size < 0 -> return "$name has the shape $shape"
                letter == "T" -> Unit
                wanted == null -> return "$name has an axis '$letter'"
                size.toLong() != wanted -> return "$name has $size on the axis $letter, it must be $wanted"
            }
        }
        return null
    }

    /** What is wrong with a state of a layer that doesn't attend: its own sizes are free. */
    private fun recurrent(
        name: String,
        dtype: String,
        dims: String,
        shape: List<Int>,
        layer: Int?,
        role: String,
    ): String? =
        when {
            layer == null || layer !in 0 until MOST_LAYERS -> "$name is of layer $layer"
            dims != RECURRENT_DIMS[role] || dims.split(' ').size != shape.size -> "$name has the layout '$dims'"
            dtype != "float32" -> "$name can't be of the type $dtype"
            shape.any { it < 1 } -> "$name has the shape $shape"
            else -> null
        }

    /** A state that layers read and no graph renews would stand still, in silence. */
    private fun standsStill(): String? {
        val held = manifest.state.filter { it.role in RECURRENT_DIMS }.map { it.name }.toSet()
        return listOf(PREFILL, DECODE).firstNotNullOfOrNull { name ->
            val graph = manifest.graphs.getValue(name)
            val renewed = graph.outputs.mapNotNull { it.updates }.toSet()
            val carried = renewed intersect graph.inputs.map { it.name }.toSet()
            (held - carried).minOrNull()?.let { "graph $name doesn't carry on $it" }
        }
    }

    /** The size of an axis by its letter, see [Geometry]; null for one that isn't known. */
    private fun sizeOf(
        letter: String,
        layer: Int?,
    ): Long? =
        when (letter) {
            "1", "B" -> 1L
            "L" -> backbone.layers.toLong()
            "K" -> (layer?.let { backbone.heads?.get(it)?.first() } ?: backbone.kvHeads).toLong()
            "D" -> (layer?.let { backbone.heads?.get(it)?.last() } ?: backbone.headDim).toLong()
            "V" -> backbone.vocabulary.toLong()
            "W" -> if (slides(layer)) keptOf(layer) else geometry.windowLength.toLong()
            "G" -> layer?.let { geometry.slotsOf(it).toLong() }
            "C" ->
                when {
                    slides(layer) -> keptOf(layer) + geometry.segmentLength
                    else -> layer?.let { fixedSlots + geometry.slotsOf(it) }
                }
            else -> null
        }

    private fun slides(layer: Int?) = layer != null && geometry.slides(layer)

    /** What a compression leaves in a layer with a sliding window. */
    private fun keptOf(layer: Int?) = geometry.keptOf(checkNotNull(layer)).toLong()

    private val fixedSlots =
        geometry.sinkLength.toLong() + geometry.segmentLength + geometry.windowLength

    private companion object {
        const val MOST_SIZE = 1L shl 40
        const val MOST_LAYERS = 1_000

        /** Inputs that each call brings. */
        val CALLS_OWN = setOf("tokens", "count")

        /** Of states of layers that don't attend, by role. */
        val RECURRENT_DIMS = mapOf("conv_state" to "B E R", "recurrent_state" to "B U I J")
        val ROLES =
            setOf("tokens", "logits", "length", "has_memory", "k_cache", "v_cache", "scores", "memory") +
                setOf("memory_norm", "k_recall", "v_recall", "k_window", "v_window", "count", "k_new", "v_new") +
                RECURRENT_DIMS.keys
        const val MOST_BYTES = 68_719_476_736.0 // 64 GiB; a phone's state has megabytes
    }
}
