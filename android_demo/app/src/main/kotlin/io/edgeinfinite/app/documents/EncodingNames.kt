package io.edgeinfinite.app.documents

import java.nio.charset.Charset

/** What pages say of their own encoding, and the encodings by all their names; as Python's `encoding.py`. */
internal object EncodingNames {
    private const val HEAD = 4096
    private const val COMMONEST = "windows-1252"
    private val COMMENT = Regex("<!--.*?(?:-->|$)", RegexOption.DOT_MATCHES_ALL)

    /** What only looks like tags inside. */
    private val RAW =
        Regex(
            "<(script|style|textarea|title|noscript)\\b.*?(?:</\\1|$)",
            setOf(RegexOption.DOT_MATCHES_ALL, RegexOption.IGNORE_CASE),
        )
    private val META = Regex("<meta\\b((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)", RegexOption.IGNORE_CASE)
    private val ATTRIBUTE = Regex("([\\w-]+)\\s*=\\s*(?:\"([^\"]*)\"|'([^']*)'|([^\\s\"'>]+))")
    private val CHARSET = Regex("charset\\s*=\\s*[\"']?\\s*([\\w.:-]+)", RegexOption.IGNORE_CASE)
    private val XML = Regex("^\\s*<\\?xml\\b[^<>]*?\\bencoding\\s*=\\s*[\"']([\\w.:-]+)", RegexOption.IGNORE_CASE)
    private val BY_NUMBER = Regex("(?:windows|win|dos|ibm|cp)-?(\\d{3,5})")

    /** What pages that state one encoding are written in: its larger relative. */
    private val AS_BROWSERS =
        mapOf(
            "ISO-8859-1" to COMMONEST,
            "US-ASCII" to COMMONEST,
            "GB2312" to "GB18030",
            "GBK" to "GB18030",
            "Shift_JIS" to "windows-31j",
            "EUC-KR" to "x-windows-949",
            "ISO-8859-9" to "windows-1254",
            "TIS-620" to "x-windows-874",
            "Big5" to "Big5-HKSCS",
        )
    private val OTHER_NAMES =
        listOf("csiso88598e", "csiso88598i", "iso-8859-8-e", "logical", "visual").associateWith { "iso-8859-8" } +
            mapOf("iso-8859-6-e" to "iso-8859-6", "koi" to "koi8-r", "koi8" to "koi8-r", "koi8-ru" to "koi8-u") +
            mapOf("x-mac-ukrainian" to "x-maccyrillic", "x-mac-cyrillic" to "x-maccyrillic") +
            mapOf("x-mac-roman" to "x-macroman", "macintosh" to "x-macroman", "unicode-1-1-utf-8" to "utf-8")

    /** What a page says of its own encoding, null if nothing. */
    fun stated(bytes: ByteArray): String? {
        val head = String(bytes, 0, minOf(bytes.size, HEAD), Charsets.ISO_8859_1)
        XML.find(head)?.let { return it.groupValues[1] }
        return META.findAll(head.replace(COMMENT, "").replace(RAW, "")).firstNotNullOfOrNull {
            saidIn(it.groupValues[1])
        }
    }

    private fun saidIn(attributes: String): String? {
        val given =
            ATTRIBUTE.findAll(attributes).associate { one ->
                one.groupValues[1].lowercase() to one.groupValues.drop(2).joinToString("")
            }
        given["charset"]?.trim()?.takeIf { it.isNotEmpty() }?.let { return it }
        return given["content"]?.takeIf { "http-equiv" in given }?.let { CHARSET.find(it) }?.groupValues?.get(1)
    }

    /** The encoding by any name that pages have for it, or its larger relative; null if nobody knows it. */
    fun known(stated: String): String? {
        var label = stated.lowercase().let { OTHER_NAMES[it] ?: it }
        charsetOf(label)?.let { return it }
        while (label.startsWith("x-")) label = label.removePrefix("x-")
        val number = BY_NUMBER.matchEntire(label)?.groupValues?.get(1)
        val names = listOf(label, "windows-$number", "x-windows-$number", "cp$number", label.removeSuffix("-i"))
        return names.firstNotNullOfOrNull(::charsetOf)
    }

    private fun charsetOf(name: String): String? =
        try {
            Charset.forName(name).name().let { found ->
                AS_BROWSERS[found]?.takeIf(Charset::isSupported) ?: found
            }
        } catch (_: IllegalArgumentException) {
            null
        }
}
