"""Files that anybody could have written: they are read, or refused in one line. Nothing else.

Whole files of the corpus are changed at random: bits and bytes of binary ones, values of JSON.
`make fuzz` does it for hours.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from fuzz.changes import changed, changed_bytes
from fuzz.readers import CORPUS, READERS, refusal, session
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file

EXAMPLES = int(os.environ.get("EDGEINFINITE_FUZZ", "50"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
DICE = st.randoms(use_true_random=False)


def whole(reader: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / reader / "read").iterdir())]


@pytest.mark.parametrize("reader", READERS)
@FUZZ
@given(data=st.data(), dice=DICE)
def test_a_changed_file_is_read_or_refused_in_one_line(
    reader: str, data: st.DataObject, dice: random.Random
) -> None:
    file = data.draw(st.sampled_from(whole(reader)))
    refusal(READERS[reader], changed(reader, file, dice))


@FUZZ
@given(file=st.sampled_from(whole("session")), dice=DICE)
def test_the_checksum_of_a_session_finds_every_change(file: bytes, dice: random.Random) -> None:
    damaged = changed_bytes(file, dice)
    if damaged != file:
        assert refusal(session, damaged) is not None


PIECES = [
    *("{% for m in messages %}", "{% endfor %}", "{{ m.content }}", "{{ m['role'] }}"),
    *("{% if m %}", "{% endif %}", "{% set x = x ~ 'ab' %}", "{{ x * 9999999 }}"),
    *("{% set x = [x, x] %}", "{% for i in range(99999) %}", "{{ '%9999999d' % 3 }}"),
    *("{{ x|join(x) }}", "{{ ''.__class__ }}", "{% macro f(a) %}", "{% endmacro %}"),
    *("{{ f(f(1)) }}", "{{ 9 ** 9 ** 9 }}", "{{ x|tojson }}", "{%- else -%}", "{# ", " #}"),
    *("{{", "}}", "{%", "%}", "{{ x.y.z() }}", "{{ x[1:2] }}", "{{ raise_exception('no\n') }}"),
    *("{% set x = namespace(a=1) %}", "{% set x.a = x %}", "{{ x }}", "{% generation %}"),
    *("{% endgeneration %}", "{% include 'a' %}", "{{ strftime_now('%c') }}", "{% break %}"),
    *("{{ messages|map(attribute='content')|list }}", "{{ loop.cycle() }}", "\n"),
]


@FUZZ
@given(parts=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=12))
def test_a_chat_template_of_any_pieces(parts: list[str]) -> None:
    text = "".join(parts).encode("utf-8", "surrogatepass")
    refusal(READERS["chat_template"], text)


@FUZZ
@given(contents=st.binary(max_size=200))
def test_a_text_file(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(contents)
    try:
        read_text_file(path)
    except EdgeInfiniteError as error:
        assert str(error).isprintable()
