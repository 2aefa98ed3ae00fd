"""One decoder: a mark, what is stated, UTF-8, nearly UTF-8, and last a guess that is said."""

from __future__ import annotations

import pytest
from tiny_documents import archive, epub

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.documents.document import document_of

TEXTS = {
    "zh": "《红楼梦》第一回，甄士隐梦幻识通灵。",
    "fr": "L'été à Brüssel, déjà vu. ",
    "de": "Die Straße führt über die Brücke. ",
    "en": "It’s a “plain” English text. ",
    "ru": "Все счастливые семьи похожи друг на друга. ",
}


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("name", ["a.txt", "a.html"])
def test_utf_8_with_one_bad_byte_is_read_as_utf_8_and_told(language: str, name: str) -> None:
    text = TEXTS[language] * 50
    for bad in (b"\xff", b"\xe9", b"\xc3"):
        document = document_of(name, text.encode() + bad + text.encode())
        assert document.text.replace("\ufffd", "").split() == (text + text).split()
        assert document.text.count("\ufffd") == 1
        assert "is no right UTF-8 in one place" in document.notes[0]


@pytest.mark.parametrize("language", TEXTS)
def test_utf_8_that_is_cut_within_a_character_is_read_as_utf_8(language: str) -> None:
    text = TEXTS[language] * 50
    for end in ("schö", "schön’", "世", "\U0001f98a"):
        document = document_of("a.txt", (text + end).encode()[:-1])
        assert document.text.startswith(text) and document.notes


@pytest.mark.parametrize("place", ["start", "end"])
def test_text_of_utf_16_without_a_mark_is_read(place: str) -> None:
    encoding = "utf-16-le" if place == "start" else "utf-16-be"
    document = document_of("a.txt", "Grüße aus Köln\n".encode(encoding))
    assert document.text == "Grüße aus Köln\n"
    assert "which is a guess" in document.notes[0]


def test_utf_16_with_one_bad_unit_is_read_and_told() -> None:
    data = "Grüße aus Köln".encode("utf-16")
    document = document_of("a.txt", data + b"x")
    assert document.text == "Grüße aus Köln\ufffd"
    assert "UTF-16-LE in one place" in document.notes[0]


@pytest.mark.parametrize(
    "head",
    ["", '<?xml version="1.0"?>', "<!DOCTYPE html>", '<meta name="a" content="b">'],
)
def test_a_page_that_states_no_encoding_is_utf_8(head: str) -> None:
    body = "<p>It was the captain’s ship.</p>"
    assert document_of("a.html", (head + body).encode()).text == "It was the captain’s ship."
    document = document_of("a.epub", epub(body))
    assert (document.text, document.notes) == ("It was the captain’s ship.", ())


def test_a_chapter_that_states_no_encoding_is_utf_8() -> None:
    chapter = "<html><head><title/></head><body><p>It was the captain’s ship.</p></body></html>"
    document = document_of("a.epub", _book(chapter.encode()))
    assert (document.text, document.notes) == ("It was the captain’s ship.", ())


@pytest.mark.parametrize(
    ("stated", "written"),
    [
        ("koi8-r", "koi8_r"),
        ("windows-1251", "cp1251"),
        ("iso-8859-5", "iso8859_5"),
        ("utf-8", "utf-8"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_states(stated: str, written: str) -> None:
    html = f"<html><head><meta http-equiv=x content='text/html; charset={stated}'>{TEXTS['ru']}"
    assert document_of("a.html", html.encode(written)).text == TEXTS["ru"].strip()
    xml = f"<?xml version='1.0' encoding='{stated}'?><p>{TEXTS['ru']}</p>"
    assert document_of("a.html", xml.encode(written)).text == TEXTS["ru"].strip()


def test_a_page_of_latin_1_is_read_as_browsers_do() -> None:
    html = "<meta charset=iso-8859-1><p>It’s “quoted” – 5 €</p>".encode("cp1252")
    assert document_of("a.html", html).text == "It’s “quoted” – 5 €"


def test_a_page_that_states_what_it_is_not_is_read_and_told() -> None:
    text = "Ángel ve la Ópera"
    document = document_of("a.html", f"<meta charset=iso-8859-1><p>{text}</p>".encode())
    assert document.text == text
    assert "states iso-8859-1, but is UTF-8" in document.notes[0]


def test_a_page_that_could_be_both_is_read_as_it_states_and_told() -> None:
    document = document_of("a.html", "<meta charset=windows-1252><p>schön</p>".encode())
    assert document.text == "schÃ¶n" and "it could be UTF-8, too" in document.notes[0]


def test_an_encoding_that_nobody_knows_is_passed_over() -> None:
    for name in ("x-none", "idna", "punycode", "rot13", "undefined", "unicode_escape", "utf-7"):
        page = f"<meta charset={name}><p>schön</p>".encode()
        assert document_of("a.html", page).text == "schön"


@pytest.mark.parametrize("lead", ["", "x" * 3_000_000])
def test_a_file_with_many_nul_bytes_is_no_text_wherever_they_are(lead: str) -> None:
    data = lead.encode() + b"ab\0cd\0\1\2" * (1 + len(lead) // 1000)
    for name in ("a.txt", "a.md", "a.html", "a"):
        with pytest.raises(EdgeInfiniteError, match="neither text nor a document"):
            document_of(name, data)


def test_a_stray_nul_byte_is_left_out_and_told() -> None:
    document = document_of("a.log", b"line\n" * 1000 + b"\0" + b"line\n" * 1000)
    assert document.text == "line\n" * 2000
    assert "1 NUL byte" in document.notes[0]


def _book(chapter: bytes) -> bytes:
    whole = epub("<p>x</p>")
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(whole)) as book:
        members: dict[str, str | bytes] = {n: book.read(n) for n in book.namelist()}
    return archive(members | {"OEBPS/chapter 0.xhtml": chapter})


LONGER = {
    "ru": "Москва — столица России, город федерального значения. Через город протекает река, "
    "и по её берегам стоят старые дома, в которых когда-то жили купцы и ремесленники. Эта улица "
    "ведёт к площади, где каждое воскресенье открывается большой рынок. Там продают яблоки и мёд.",
    "fr": "L'été dernier, nous avons traversé la forêt où coule une rivière très étroite. Élodie "
    "a préféré le chemin près du château, car là-bas les fenêtres étaient déjà éclairées. À la "
    "fin, le garçon répéta: « c'est ça, la vérité! », et personne ne répondit à l'étranger.",
    "pl": "Wczesną wiosną wędrowaliśmy wąską ścieżką wśród łąk, gdzie śpiewały ptaki. Książka "
    "leżała na ławce, a obok niej stała żółta filiżanka. Później przyszła sąsiadka i zaśpiewała "
    "pieśń o dzieciństwie, więc wszyscy się uśmiechnęli i poszli dalej w stronę źródła.",
}


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        *(("ru", name) for name in ("cp1251", "koi8_r", "mac_cyrillic", "cp866", "iso8859_5")),
        *(("fr", name) for name in ("cp1252", "mac_roman")),
        ("pl", "cp1250"),
    ],
)
def test_a_guess_is_right_and_said(language: str, encoding: str) -> None:
    text = LONGER[language].encode(encoding, "ignore").decode(encoding)
    document = document_of("a.txt", (text * 2).encode(encoding))
    assert document.text == text * 2
    assert "which is a guess" in document.notes[0]


@pytest.mark.parametrize(
    "text", ["Все счастливые семьи похожи. ", "日本語 の文、です。\n", "Γειά σου \n"]
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_of_other_scripts_is_known_by_its_spaces(text: str, encoding: str) -> None:
    document = document_of("a.txt", (text * 9).encode(encoding))
    assert document.text == text * 9
    assert "which is a guess" in document.notes[0]


def test_characters_in_two_halves_are_whole_and_told() -> None:
    halves = "\ud83d\ude00".encode("utf-8", "surrogatepass")
    document = document_of("a.txt", b"Smile " + halves + b" please")
    assert document.text == "Smile \U0001f600 please"
    assert "CESU-8" in document.notes[0]


def test_a_buffer_that_is_filled_up_is_text() -> None:
    document = document_of("a.txt", b"Some text." + b"\0" * 4000)
    assert document.text == "Some text." and "4,000 NUL bytes" in document.notes[0]


JAPANESE = "これは日本語のテキストです。今日は天気がいいですね。"


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso2022_jp", JAPANESE),
        ("iso2022_kr", "안녕하세요. 오늘 날씨가 좋네요."),
        ("cp874", "สวัสดีชาวโลก นี่คือข้อความภาษาไทย\n" * 3),
    ],
)
def test_texts_in_seven_bits_and_of_thailand_are_read_and_told(encoding: str, text: str) -> None:
    document = document_of("a.txt", text.encode(encoding))
    assert document.text == text and encoding in document.notes[0]


def test_escapes_of_a_terminal_are_no_encoding() -> None:
    text = "\x1b[31mred\x1b[0m costs 5$\x1b$ and more\n"
    assert document_of("a.txt", text.encode()).text == text


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("x-mac-roman", "mac_roman", "Straße"),
        ("iso-8859-8-i", "iso8859-8", "שלום עולם"),
        ("x-x-big5", "big5", "今天天氣很好"),
        ("x-sjis", "cp932", JAPANESE),
        ("win-1251", "cp1251", "Привет"),
        ("windows-874", "cp874", "สวัสดี"),
        ("x-cp1250", "cp1250", "Žluťoučký"),
    ],
)
def test_encodings_have_the_names_that_pages_give_them(label: str, codec: str, text: str) -> None:
    page = f"<meta charset={label}><p>{text}</p>".encode(codec)
    document = document_of("a.html", page)
    assert (document.text, document.notes) == (text, ())


@pytest.mark.parametrize(
    "head",
    [
        "<script>var s = '<meta charset=\"windows-1251\">';</script>",
        "<style>/* <meta charset=koi8-r> */</style>",
        '<meta name="description" content="on charset=windows-1251">',
        '<meta name=a content="<meta charset=koi8-r>"><meta charset="utf-8">',
    ],
)
def test_what_only_looks_like_a_statement_states_nothing(head: str) -> None:
    document = document_of("a.html", f"<html><head>{head}</head><p>Straße</p>".encode())
    assert (document.text, document.notes) == ("Straße", ())


def test_halves_of_characters_leave_the_rest_utf_8() -> None:
    text = "Hallöchen \ud83d und \ud83d\ude00 so"
    document = document_of("a.txt", text.encode("utf-8", "surrogatepass"))
    assert document.text == "Hallöchen \ufffd und 😀 so"
    assert "no right UTF-8 in one place" in document.notes[0]


def test_a_plain_text_of_xml_is_in_the_encoding_that_it_states() -> None:
    text = '<?xml version="1.0" encoding="koi8-r"?><p>Привет</p>'
    document = document_of("a.fb2", text.encode("koi8-r"))
    assert (document.text, document.notes) == (text, ())


def test_the_end_sign_of_old_texts_is_no_text() -> None:
    assert document_of("a.txt", b"an old text\r\n\x1a").text == "an old text\n"


def test_hz_is_known_by_its_escapes_and_nothing_else_is_taken_for_it() -> None:
    text = "第一行，己所不欲，勿施于人。中文 and English ~ mixed"
    for name, whole in (("a.txt", text), ("a.html", f"<html><p>{text}</p></html>")):
        read = document_of(name, whole.encode("hz"))
        assert read.text == text and read.notes[0].endswith(
            "read as hz: it has the escapes of that"
        )
    for other in ('(format t "~{~a~}" list)', "Fig.~{abc} here~}", "~{abcd~} x", "~{foo~}", "~{Ab"):
        plain = document_of("a.txt", other.encode())
        assert (plain.text, plain.notes) == (other, ())
