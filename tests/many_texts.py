"""Short texts of every kind that tokenizers treat apart, from a seed."""

from __future__ import annotations

import random

WORDS = (
    *("the", "Hello", "WORLD", "don't", "DON'T", "we're", "WE'RE", "they'LL", "I'm", "he'D", "'s"),
    *("it’s", "'", "''tis", "'re", "'Ve", "naïve", "Straße", "ÄÖÜ", "ĳssel", "ǅungla", "élan"),
    *(
        "e\u0301a\u0300",
        "ñ",
        "\u0301",
        "a\u200bb",
        "\u00ad",
        "ſ'ſ",
        "K",
        "İi",
        "ﬁne",
        "Ⅷ",
        "½",
        "²",
    ),
    *(
        "中文",
        "漢字かな交じり",
        "カタカナ",
        "ｶﾅ",
        "한국어",
        "ㄱㄴ",
        "ㄅㄆ",
        "䶵",
        "𠀀𠀁",
        "豈",
        "〇",
        "、。",
    ),
    *("العربية", "١٢٣", "עברית", "हिन्दी", "१२३", "ไทย", "ລາວ", "မြန်မာ", "ខ្មែរ", "தமிழ்"),
    *("Ελληνικά", "Кириллица", "Ёж", "հայ", "ქართ", "Ꭰꭰ", "𐐀𐐨", "𞤀𞤢", "ᲀ", "ꧦꩠ"),
    *(
        "🙂",
        "👍🏽",
        "👨‍👩‍👧",
        "🇩🇪",
        "☃️",
        "→",
        "∑",
        "€",
        "№",
        "·",
        "…",
        "«»",
        "“”",
        "‘’",
        "—",
        "〜",
        "！？",
    ),
    *("def f(x):", "if (a != b) {", "i += 1;", "}", "//", "/*", "*/", "#!", "<br/>", "snake_case"),
    *(
        "CamelCase",
        "iPhone",
        "HTTPServer",
        "x==y",
        "$HOME",
        "a|b",
        "~",
        "^",
        "`code`",
        "\\n",
        "@me",
    ),
    *(
        "http://a.b/c?d=e&f",
        "<sentinel:12>",
        "IMGIMGABCZ",
        "IMGIMGAZ",
        "(a)",
        "[b]",
        "{c}",
        "a.b,c",
    ),
    *(
        "0",
        "7",
        "42",
        "123",
        "2024",
        "12345",
        "1234567",
        "1,234.56",
        "3.14",
        "0x1F",
        "1e-9",
        "v1.2",
    ),
    *("٣12", "12٣4", "½3", "１２３４", "1/2", "10^6", "1.", "2)", "#3", "a1b22c333"),
)
BLANKS = (
    *(" ", " ", " ", " ", " ", "", "", "  ", "   ", "    ", " " * 9, "\n", "\n", "\n\n", "\n\n\n"),
    *("\r\n", "\r", "\t", "\t\t", "\n\t", " \n", "\n ", "\n  \n", "\r\n\r\n", "\v", "\f", "\x85"),
    *("\xa0", " \xa0", "\xa0 ", "\u2003", "\u2028", "\u2029", "\u3000", "\u3000\u3000", "\u1680"),
    *(
        "\u202f",
        "\u205f",
        "\u200b",
        "\ufeff",
        "\x00",
        "\x01",
        "\x1b",
        "\x1c",
        "\x1f",
        "\x7f",
        "\x9f",
    ),
)


def many_texts(count: int, seed: int = 0) -> list[str]:
    """Texts of one to twelve words, blanks and runs; the last quarter has characters at random.

    Characters that came with Unicode 16 are left out: llama.cpp doesn't know their classes.
    """
    chance = random.Random(seed)
    texts = []
    for number in range(count):
        parts = []
        for _ in range(chance.randint(1, 12)):
            kind = chance.random()
            if number >= count * 3 // 4 and kind < 0.5:
                parts.append(_character(chance))
            elif kind < 0.85:
                parts.append(chance.choice(WORDS))
            else:
                parts.append(chance.choice("0123456789aA '\n\t.-") * chance.randint(1, 7))
            parts.append(chance.choice(BLANKS))
        texts.append("".join(parts))
    return texts


def _character(chance: random.Random) -> str:
    limit = chance.choice((0x100, 0x250, 0x3000, 0x10000, 0x1FB00, 0x2FA20))
    while True:
        point = chance.randrange(limit)
        if not 0xD800 <= point < 0xE000 and not any(a <= point <= b for a, b in NEW):
            return chr(point)


NEW = (
    *((0x897, 0x897), (0x1B4E, 0x1B4F), (0x1B7F, 0x1B7F), (0x1C89, 0x1C8A), (0x2427, 0x2429)),
    *((0x31E4, 0x31E5), (0xA7CB, 0xA7CD), (0xA7DA, 0xA7DC), (0x105C0, 0x105F3), (0x10D40, 0x10D8F)),
    *((0x10EC2, 0x10EC4), (0x10EFC, 0x10EFC), (0x11380, 0x113E2), (0x116D0, 0x116E3)),
    *((0x11BC0, 0x11BF9), (0x11F5A, 0x11F5A), (0x13460, 0x143FA), (0x16100, 0x16139)),
    *((0x16D40, 0x16D79), (0x18CFF, 0x18CFF), (0x1CC00, 0x1CEB3), (0x1E5D0, 0x1E5FF)),
    *((0x1F8B2, 0x1F8C1), (0x1FA89, 0x1FA8F), (0x1FABE, 0x1FABE), (0x1FAC6, 0x1FAC6)),
    *((0x1FADC, 0x1FADF), (0x1FAE9, 0x1FAE9), (0x1FBCB, 0x1FBEF)),
)
"""Ranges that Unicode 16 filled."""
