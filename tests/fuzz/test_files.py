"""Files that anybody could have written: they are read, or refused in one line. Nothing else.

Each test changes real files at random: bits and bytes of binary ones, values of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_artifact import tiny_artifact

from edgeinfinite.artifact.manifest import read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py import chat_template
from edgeinfinite.runtime_py.chat_template import ChatTemplate
from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.saved_session import load_session, save_session
from edgeinfinite.runtime_py.session import Session
from edgeinfinite.runtime_py.tokenizer import load_tokenizer

EXAMPLES = int(os.environ.get("EDGEINFINITE_FUZZ", "100"))
FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=EXAMPLES <= 100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "a", "..", "/etc/passwd", "\x00", "é" * 9, "x" * 5000, [], {}, [[]], {"a": 1}, [None]),
]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("fuzz") / "artifact")


def _refused_at_most(read: Callable[[], Any]) -> None:
    """Whatever it reads is all right, and so is one line."""
    try:
        read()
    except EdgeInfiniteError as error:
        assert str(error) and "\n" not in str(error), repr(str(error))


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something can be changed in JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    places = []
    for key, inner in items:
        places.append((*at, key))
        if isinstance(inner, dict | list):
            places += _places(inner, (*at, key))
    return places


def _change(document: Any, place: tuple[Any, ...], value: Any, *, lose: bool) -> None:
    for key in place[:-1]:
        document = document[key]
    if lose:
        del document[place[-1]]
    else:
        document[place[-1]] = value


@st.composite
def changed_json(draw: st.DrawFn, text: str) -> str:
    """The document with one to three values lost or replaced."""
    document = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if places:
            place = places[draw(st.integers(0, len(places) - 1))]
            _change(document, place, draw(st.sampled_from(ODD)), lose=draw(st.booleans()))
    return json.dumps(document)


@st.composite
def changed_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """The file with bytes changed, cut off, doubled or put in, mostly near its start."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        reach = min(len(changed), draw(st.sampled_from([16, 200, 4000, 10**9])))
        at = draw(st.integers(0, max(0, reach - 1)))
        kind = draw(st.sampled_from(["set", "flip", "cut", "double", "insert"]))
        if kind == "insert" or not changed:
            changed[at:at] = draw(st.binary(max_size=20))
        elif kind == "set":
            changed[at] = draw(st.integers(0, 255))
        elif kind == "flip":
            changed[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del changed[at : at + draw(st.sampled_from([1, 8, 10**9]))]
        else:
            changed[at:at] = changed[at : at + 64]
    return bytes(changed)


@FUZZ
@given(data=st.data())
def test_a_manifest(artifact: Path, tmp_path: Path, data: st.DataObject) -> None:
    text = (artifact / "manifest.json").read_text(encoding="utf-8")
    (tmp_path / "manifest.json").write_text(data.draw(changed_json(text)))
    _refused_at_most(lambda: read_manifest(tmp_path))


@FUZZ
@given(data=st.data())
def test_a_manifest_s_bytes(artifact: Path, tmp_path: Path, data: st.DataObject) -> None:
    contents = (artifact / "manifest.json").read_bytes()
    (tmp_path / "manifest.json").write_bytes(data.draw(changed_bytes(contents)))
    _refused_at_most(lambda: read_manifest(tmp_path))


TEXT_FILES = ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]


@pytest.mark.parametrize("name", TEXT_FILES)
@FUZZ
@given(data=st.data())
def test_the_tokenizer_s_files(
    artifact: Path, tmp_path: Path, name: str, data: st.DataObject
) -> None:
    for file in [*TEXT_FILES, "chat_template.jinja"]:
        shutil.copyfile(artifact / file, tmp_path / file)
    contents = (artifact / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(data.draw(changed_json(contents)))

    def read() -> None:
        tokenizer = load_tokenizer(tmp_path, vocabulary=258)
        ids = tokenizer.encode_chat([{"role": "user", "content": "a <|im_end|> b"}])
        tokenizer.decode(ids)

    _refused_at_most(read)


PIECES = [
    *(
        "{% for m in messages %}",
        "{% endfor %}",
        "{{ m.content }}",
        "{{ m['role'] }}",
        "{% if m %}",
    ),
    *("{% endif %}", "{% set x = x ~ 'ab' %}", "{{ x * 9999999 }}", "{% set x = [x, x] %}"),
    *(
        "{% for i in range(99999) %}",
        "{{ '%9999999d' % 3 }}",
        "{{ x|join(x) }}",
        "{{ ''.__class__ }}",
    ),
    *("{% macro f(a) %}", "{% endmacro %}", "{{ f(f(1)) }}", "{{ 9 ** 9 ** 9 }}", "{{ x|tojson }}"),
    *("{%- else -%}", "{# ", " #}", "{{", "}}", "{%", "%}", "{{ x.y.z() }}", "{{ x[1:2] }}"),
    *(
        "{{ raise_exception('no\n') }}",
        "{% set x = namespace(a=1) %}",
        "{% set x.a = x %}",
        "{{ x }}",
    ),
    *("{% generation %}", "{% endgeneration %}", "{% include 'a' %}", "{{ strftime_now('%c') }}"),
    *("{{ messages|map(attribute='content')|list }}", "{% break %}", "{{ loop.cycle() }}", "\n"),
]


@FUZZ
@given(parts=st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=12))
def test_a_chat_template(parts: list[str]) -> None:
    seconds, chat_template.SECONDS = chat_template.SECONDS, 0.05
    try:
        _refused_at_most(
            lambda: ChatTemplate("".join(parts), {"bos_token": "<s>"}).render(
                [{"role": "user", "content": "Hi"}]
            )
        )
    finally:
        chat_template.SECONDS = seconds


@FUZZ
@given(data=st.data())
def test_a_session_file(artifact: Path, tmp_path: Path, data: st.DataObject) -> None:
    engine = load_engine(artifact)
    session = Session(engine)
    session.append(list(range(3, 60)))
    path = tmp_path / "a.session"
    save_session(session, path, extra={"note": "x"})
    whole = path.read_bytes()
    changed = data.draw(changed_bytes(whole))
    path.write_bytes(changed)
    if changed != whole:  # the checksum finds every change
        with pytest.raises(EdgeInfiniteError) as caught:
            load_session(engine, path)
        assert "\n" not in str(caught.value)


@FUZZ
@given(contents=st.binary(max_size=200))
def test_a_document(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(contents)
    _refused_at_most(lambda: read_text_file(path))
