package io.edgeinfinite.app.documents

/**
 * What the signs of Word's fonts for symbols are in Unicode; the table is written by
 * tests/android/word_symbols.py, don't edit it.
 *
 * From code 32 on: a code point in hexadecimal, with `+` and how many follow it if those after it
 * do; `-` and a number for so many codes that stand for nothing.
 */
internal object WordSymbols {
    private const val FIRST = 32
    private const val HEX = 16

    /** Fonts' own codes, where Unicode has them for private use. */
    private const val PRIVATE = 0xf000

    /**
     * @param font that the sign is of.
     * @param code of the sign there, in hexadecimal.
     * @return "" if nobody knows it.
     */
    fun of(
        font: String,
        code: String,
    ): String {
        val stated = code.toIntOrNull(HEX) ?: return ""
        val at = (if (stated >= PRIVATE) stated - PRIVATE else stated) - FIRST
        val point = FONTS[font]?.value?.getOrNull(at) ?: return ""
        return String(Character.toChars(point))
    }

    /** A text of a run in a font: signs of these fonts as Unicode's, all others as they stand. */
    fun shown(
        text: String,
        font: String?,
    ): String {
        if (font !in FONTS) return text
        return buildString(text.length) {
            for (sign in text) {
                val found = if (sign == ' ') "" else of(font.orEmpty(), sign.code.toString(HEX))
                append(found.ifEmpty { "$sign" })
            }
        }
    }

    private fun table(written: String): Lazy<List<Int?>> =
        lazy {
            written.split(' ').flatMap { run ->
                if (run.startsWith('-')) {
                    List(run.drop(1).toInt()) { null }
                } else {
                    val start = run.substringBefore('+').toInt(HEX)
                    List(1 + run.substringAfter('+', "0").toInt()) { start + it }
                }
            }
        }

    private val FONTS =
        mapOf(
            "Symbol" to
                table(
                    "20+1 2200 23 2203 25+1 220d 28+4 2212 2e+17 2245 391+1 3a7 394+1 3a6 393 397 399 3d1 " +
                        "39a+3 39f+1 398 3a1 3a3+2 3c2 3a9 39e 3a8 396 5b 2234 5d 22a5 5f 203e 3b1+1 3c7 3b4+1 " +
                        "3c6 3b3 3b7 3b9 3d5 3ba+3 3bf+1 3b8 3c1 3c3+2 3d6 3c9 3be 3c8 3b6 7b+3 -33 20ac 3d2 2032 " +
                        "2264 2044 221e 192 2663 2666 2665 2660 2194 2190+3 b0+1 2033 2265 d7 221d 2202 2022 f7 " +
                        "2260+1 2248 2026 23d0 23af 21b5 2135 2111 211c 2118 2297 2295 2205 2229+1 2283 2287 2284 " +
                        "2282 2286 2208+1 2220 2207 ae a9 2122 220f 221a 22c5 ac 2227+1 21d4 21d0+3 25ca 3008 ae " +
                        "a9 2122 2211 239b+2 23a1+2 23a7+3 f8ff 3009 222b 2320 23ae 2321 239e+2 23a4+2 23ab+2 -1",
                ),
            "Webdings" to
                table(
                    "20 1f577+1 1f572 1f576 1f3c6 1f396 1f587 1f5e8+1 1f5f0+1 1f336 1f397 1f67e 1f67c 1f5d5+2 " +
                        "23f4+3 23ea 23e9 23ee 23ed 23f8+2 1f5da 1f5f3 1f6e0 1f3d7+3 1f3dc 1f3ed 1f3db 1f3e0 " +
                        "1f3d6 1f3dd 1f6e3 1f50d 1f3d4 1f441+1 1f3de 1f3d5 1f6e4 1f3df 1f6f3 1f56c 1f56b 1f568 " +
                        "1f508 1f394+1 1f5ec 1f67d 1f5ed 1f5ea+1 2b94 2714 1f6b2 2b1c 1f6e1 1f4e6 1f6f1 2b1b " +
                        "1f691 1f6c8 1f6e9 1f6f0 1f7c8 1f574 2b24 1f6e5 1f694 1f5d8+1 2753 1f6f2 1f687 1f68d 26f3 " +
                        "29b8 2296 1f6ad 1f5ee 23d0 1f5ef 1f5f2 -1 1f6b9+1 1f6c9+1 1f6bc 1f47d 1f3cb 26f7 1f3c2 " +
                        "1f3cc 1f3ca 1f3c4 1f3cd+1 1f698 1f5e0 1f6e2 1f4b0 1f3f7 1f4b3 1f46a 1f5e1+2 272f 1f584+1 " +
                        "1f583 1f586 1f5b9+2 1f575 1f570 1f5bd+1 1f4cb 1f5d2+1 1f56e 1f4da 1f5de+1 1f5c3 1f5c2 " +
                        "1f5bc 1f3ad 1f39c 1f398+1 1f3a7 1f4bf 1f39e 1f4f7 1f39f 1f3ac 1f4fd 1f4f9 1f4fe 1f4fb " +
                        "1f39a+1 1f4fa 1f4bb 1f5a5+2 1f579 1f3ae 1f57b+1 1f4df 1f581 1f580 1f5a8+1 1f5bf 1f5aa " +
                        "1f5dc 1f512+1 1f5dd 1f4e5 1f4e4 1f573 1f323+3 2601 1f328 1f327 1f329+1 1f32c 1f32b 1f31c " +
                        "1f321 1f6cb 1f6cf 1f37d 1f378 1f6ce 1f6cd 24c5 267f 1f6c6 1f588 1f393 1f5e4+3 1f6ea " +
                        "1f43f 1f426 1f41f 1f415 1f408 1f66c 1f66e 1f66d 1f66f 1f5fa 1f30d 1f30f 1f30e 1f54a",
                ),
            "Wingdings" to
                table(
                    "20 1f589 2702 2701 1f453 1f56d+2 1f57f 2706 1f582+1 1f4ea+3 1f5c0+1 1f5ce+2 1f5c4 231b " +
                        "1f5ae 1f5b0 1f5b2+2 1f5ab+1 2707 270d 1f58e 270c 1f58f 1f44d+1 261c 261e 261d 261f 1f590 " +
                        "263a 1f610 2639 1f4a3 1f571 1f3f3 1f3f1 2708 263c 1f322 2744 1f546 271e 1f548 2720+1 " +
                        "262a 262f 1f549 2638 2648+11 1f670 1f675 26ab 1f53e 25fc 1f78f+1 2751+1 1f79f 29eb 25c6 " +
                        "2756 2b29 2327 2bb9 2318 1f3f5+1 1f676+1 25af 1f10b 2780+9 1f10c 278a+9 1f662 1f660+1 " +
                        "1f663 1f65e 1f65c+1 1f65f 2219 2022 2b1d 2b58 1f786 1f788 1f78a+1 1f53f 25aa 1f78e 1f7c1 " +
                        "1f7c5 2605 1f7cb 1f7cf 1f7d3 1f7d1 2bd0 2316 2bce+1 2bd1 272a 2730 1f550+11 2bb0+7 " +
                        "1f66a+1 1f655 1f654 1f657 1f656 1f650+3 232b 2326 2b98 2b9a 2b99 2b9b 2b88 2b8a 2b89 " +
                        "2b8b 1f868 1f86a 1f869 1f86b+2 1f86f 1f86e 1f878 1f87a 1f879 1f87b+2 1f87f 1f87e 21e6 " +
                        "21e8 21e7 21e9 2b04 21f3 2b01 2b00 2b03 2b02 1f8ac+1 1f5f6 2713 1f5f7 1f5f9 -1",
                ),
            "Wingdings 2" to
                table(
                    "20 1f58a+3 2704 2700 1f57e 1f57d 1f5c5+8 1f4cb 1f5d1 1f5d4 1f5b5+3 1f5ad 1f5af 1f5b1 " +
                        "1f592+1 1f598+3 1f448+1 1f59c+5 1f446+1 1f5a2+1 1f591 1f5f4 1f5f8 1f5f5 2611 2bbd 2612 " +
                        "2bbe+1 1f6c7 29b8 1f671 1f674 1f672+1 203d 1f679+2 1f666 1f664+1 1f667 1f65a 1f658+1 " +
                        "1f65b 24ea 2460+9 24ff 2776+9 -1 2609 1f315 263d+1 2e3f 271d 1f547 1f55c+11 1f668+1 22c5 " +
                        "1f784 2981 25cf 25cb 1f785 1f787 1f789 2299 29bf 1f78c+1 25fe 25a0+1 1f791+3 25a3 " +
                        "1f795+3 2b29 2b25 25c7 1f79a 25c8 1f79b+3 2b2a 2b27 25ca 1f7a0 25d6+1 2bca+1 2bc0+1 2b1f " +
                        "2bc2 2b23 2b22 2bc3+1 1f7a1+31 1f7c2 1f7c4 1f7c6 1f7c9+1 2736 1f7cc 1f7ce 1f7d0 1f7d2 " +
                        "2739 1f7c3 1f7c7 272f 1f7cd 1f7d4 2bcc+1 203b 2042 -6",
                ),
            "Wingdings 3" to
                table(
                    "20 2b60 2b62 2b61 2b63 2b66+1 2b69 2b68 2b70 2b72 2b71 2b73 2b76 2b78 2b7b 2b7d 2b64+1 " +
                        "2b6a 2b6c 2b6b 2b6d 2b4d 2ba0+7 2b90+3 2b80 2b83 2b7e+1 2b84 2b86 2b85 2b87 2b8f 2b8d+1 " +
                        "2b8c 2b6e+1 238b 2324 2303 2325 2423 237d 21ea 2bb8 1f8a0+11 1f850 1f852 1f851 1f853+2 " +
                        "1f857 1f856 1f858+1 25b2 25bc 25b3 25bd 25c0 25b6 25c1 25b7 25e3 25e2 25e4+1 1f780 1f782 " +
                        "1f781 -1 1f783 2bc5+3 2b9c 2b9e 2b9d 2b9f 1f810 1f812 1f811 1f813+1 1f816 1f815 1f817+1 " +
                        "1f81a 1f819 1f81b+1 1f81e 1f81d 1f81f 1f800 1f802 1f801 1f803+1 1f806 1f805 1f807+1 " +
                        "1f80a 1f809 1f80b 1f820 1f822 1f824 1f826 1f828 1f82a 1f82c 1f89c+3 1f82e 1f830 1f832 " +
                        "1f834 1f836 1f838 1f83a 1f839 1f83b 1f898 1f89a 1f899 1f89b 1f83c 1f83e 1f83d 1f83f+1 " +
                        "1f842 1f841 1f843+1 1f846 1f845 1f847 2ba8+7 1f860 1f862 1f861 1f863+2 1f867 1f866 1f870 " +
                        "1f872 1f871 1f873+2 1f877 1f876 1f880 1f882 1f881 1f883+2 1f887 1f886 1f890 1f892 1f891 " +
                        "1f893+1 1f896 1f895 1f897 -15",
                ),
        )
}
