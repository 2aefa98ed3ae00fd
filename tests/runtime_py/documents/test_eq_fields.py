r"""Word's `EQ` fields, whose text stands in their instruction alone."""

from __future__ import annotations

import time

import pytest
from docx.oxml import parse_xml
from tiny_documents import saved, word

from edgeinfinite.runtime_py.documents.document import document_of
from edgeinfinite.runtime_py.documents.eq_fields import of_instruction

W = "xmlns:w='http://schemas.openxmlformats.org/wordprocessingml/2006/main'"


@pytest.mark.parametrize(
    ("instruction", "text"),
    [
        # Those of Microsoft's own page on the field.
        (r" EQ \a \al \co2 \vs3 \hs3(Axy,Bxy,A,B) ", "[Axy, Bxy; A, B]"),
        (r"EQ \b \bc\{ (\r(3,x))", "{x^(1/3)}"),
        (r"EQ \f(2,RateChange)", "2/RateChange"),
        (r"EQ \i \su(1,5,3)", "∑_1^5 3"),
        (r"EQ \a \co-99999999(A,B)", "[A; B]"),
        (r"EQ \l(A,B,C,D,E)", "A, B, C, D, E"),
        (r"EQ \r(3,x)", "x^(1/3)"),
        (r"EQ x\s\up8(UB)\s\do4(2) \* MERGEFORMAT", "x^UB_2"),
        (r"EQ \x \to \bo(5)", "5"),
        # Readings above words, as Word 97 wrote them; nesting; other separators; escapes.
        (r'EQ \* jc2 \* "Font:MS Mincho" \* hps10 \o\ad(\s\up 9(とうきょう),東京)', "東京"),
        (r"eq x = \f(-b ± \r(b\s\up8(2) - 4ac);2a)", "x = (-b ± √(b^2 - 4ac))/2a"),
        (r"EQ \f(1,5;2)", "(1,5)/2"),
        (r"EQ \f(f(a,b),2) \\ \(x\)", r"(f(a,b))/2 \ (x)"),
        (r"EQ \f((a+b),2", "(a+b)/2"),
        (r"EQ \i\fc\U(,,x)", "U x"),
    ],
)
def test_an_instruction_is_read_as_word_draws_it(instruction: str, text: str) -> None:
    assert of_instruction(instruction) == text


def test_other_fields_and_endless_nesting_end() -> None:
    assert of_instruction(" DATE ") is None and of_instruction("EQUAL") is None
    assert of_instruction("EQ " + r"\f(" * 10_000) is not None
    assert of_instruction("EQ " + "(" * 10_000) is not None


@pytest.mark.parametrize("piece", ["x", r"\f ", r"\r(x)", r"\s(2)", ",", "\\\\", "("])
def test_the_time_is_linear(piece: str) -> None:
    instruction = f"EQ {piece * 200_000}\\f({piece * 200_000};2)"
    start = time.perf_counter()
    of_instruction(instruction)
    # With one text that grew by each piece it took minutes.
    assert time.perf_counter() - start < 10


def field(instruction: str, result: str = "") -> str:
    sign = "<w:r><w:fldChar w:fldCharType='{}'/></w:r>"
    half = len(instruction) // 2
    pieces = "".join(
        f"<w:r><w:instrText xml:space='preserve'>{piece}</w:instrText></w:r>"
        for piece in (instruction[:half], instruction[half:])
    )
    shown = sign.format("separate") + (f"<w:r><w:t>{result}</w:t></w:r>" if result else "")
    return sign.format("begin") + pieces + shown + sign.format("end")


def test_a_document_keeps_the_formulas_of_its_fields() -> None:
    document = word()
    text = "<w:r><w:t xml:space='preserve'>{}</w:t></w:r>"
    for body in (
        text.format("Half is ") + field(r"EQ \f(1,2)") + text.format(" of it."),
        field(r"EQ \f(1,2)", "0.5") + text.format(" on ") + field("DATE", "Monday"),
        r"<w:fldSimple w:instr='EQ \r(2)'/>" + text.format(" is irrational."),
    ):
        document.element.body.insert(-1, parse_xml(f"<w:p {W}>{body}</w:p>"))
    read = document_of("a.docx", saved(document)).text
    assert read == "Half is 1/2 of it.\n\n0.5 on Monday\n\n√2 is irrational."
