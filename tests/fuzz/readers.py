"""Files that anybody could have written: for each kind, one function that reads it as we do.

Each takes a file's bytes. It returns if the file is read, and raises one of `REFUSALS` if it isn't;
anything else is a defect. The tests, atheris and the replay of the corpus all call these functions
(docs/develop/trust.md).
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path

import msgspec
import pytest
import transformers
from fuzz.state_only import StateOnly
from torch import nn
from transformers import LlamaConfig

from edgeinfinite.artifact.manifest import cache_type_of, fingerprint, read_manifest, soc_of
from edgeinfinite.artifact.session_file import read_session_header
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.loading import load_backbone
from edgeinfinite.models.memory.feature_map import FeatureMap
from edgeinfinite.models.memory.gate import MemoryGate
from edgeinfinite.models.memory.gate_file import load_gate
from edgeinfinite.models.recall.scorer_file import load_scorers, read_rank_rule
from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling
from edgeinfinite.runtime_py.documents.document import document_of
from edgeinfinite.runtime_py.server.anthropic_messages import routes as messages
from edgeinfinite.runtime_py.server.anthropic_messages.request import parse_message
from edgeinfinite.runtime_py.server.ask import Talk
from edgeinfinite.runtime_py.server.openai_responses import routes as responses
from edgeinfinite.runtime_py.server.openai_responses.request import parse_response
from edgeinfinite.runtime_py.server.problems import ApiProblem
from edgeinfinite.runtime_py.server.requests import (
    ChatRequest,
    Settings,
    parse_chat,
    parse_completion,
)
from edgeinfinite.runtime_py.session.notes import notes_of
from edgeinfinite.runtime_py.session.saved_session import load_session
from edgeinfinite.runtime_py.text import answer_ends, chat_template
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer, load_tokenizer
from edgeinfinite.runtime_py.tools.forms import HERMES
from edgeinfinite.runtime_py.tools.grammar import tool_grammar

CORPUS = Path(__file__).parent / "corpus"
"""`READER/read` holds files that are read, `READER/refused` others."""

VOCABULARY, LAYERS, HEADS, KV_HEADS, HEAD_DIM = 258, 1, 2, 1, 8
"""Of the tiny model that all files in the corpus belong to."""

REFUSALS = (EdgeInfiniteError, ApiProblem)
MOST_SECONDS = ContextVar("seconds", default=1.0)
"""For a chat template here; users wait longer."""

REFUSED_SECONDS = 0.1
"""For one that the corpus has as refused: half of those have no end."""

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "a <|im_end|> b\u00e9\U0001f98a"},
]
TOKENIZER_FILES = {
    "tokenizer": "tokenizer.json",
    "tokenizer_config": "tokenizer_config.json",
    "generation_config": "generation_config.json",
    "chat_template": "chat_template.jinja",
}

Reader = Callable[[bytes], None]


def refusal(reader: Reader, data: bytes) -> str | None:
    """Reads a file; the refusal's one line, or None if it is read.

    Raises:
        BaseException: a defect: an error of another kind, or a refusal that isn't one line of
            printable characters.
    """
    try:
        reader(data)
    except REFUSALS as error:
        line = str(error)
        assert line and len(line) < 2000, f"a refusal of {len(line)} characters"
        assert line.isprintable(), repr(line)
        return line
    return None


def refusal_of_corpus(path: Path) -> str | None:
    """`refusal` of a file of the corpus, by its place there.

    Args:
        path: `READER/read/NAME` or `READER/refused/NAME`.
    """
    reader, known, _ = path.parts
    before = MOST_SECONDS.set(REFUSED_SECONDS if known == "refused" else MOST_SECONDS.get())
    try:
        return refusal(READERS[reader], (CORPUS / path).read_bytes())
    finally:
        MOST_SECONDS.reset(before)


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="edgeinfinite-fuzz-")


def _folder(name: str) -> Path:
    folder = Path(_scratch().name) / name
    folder.mkdir(exist_ok=True)
    return folder


def _written(folder: str, name: str, data: bytes) -> Path:
    path = _folder(folder) / name
    path.write_bytes(data)
    return path


def manifest(data: bytes) -> None:
    """An artifact's `manifest.json`."""
    read = read_manifest(_written("manifest", "manifest.json", data).parent)
    fingerprint(read), cache_type_of(read), soc_of(read)


@functools.cache
def engines() -> list[StateOnly]:
    """Of the corpus' artifacts; the first one is for sessions of any other."""
    found = []
    for file in sorted((CORPUS / "manifest" / "read").glob("artifact-*.json")):
        folder = _written("engine", "manifest.json", file.read_bytes()).parent
        found.append(StateOnly(read_manifest(folder)))
    return found


def session(data: bytes) -> None:
    """A session file, opened with the artifact of the corpus that it belongs to."""
    path = _written("session", "a.session", data)
    header, metadata = read_session_header(path)
    notes_of(path, metadata)
    own = [engine for engine in engines() if engine.fingerprint == header.belongs_to]
    load_session((own or engines())[0], path)


def _tokenizer_folder(name: str) -> Path:
    """A folder of its own with whole files, one of which is going to be replaced."""
    folder = _folder(name)
    for kind, file in TOKENIZER_FILES.items():
        if not (folder / file).exists():
            source = next((CORPUS / kind / "read").glob("artifact-*"))
            shutil.copyfile(source, folder / file)
    return folder


def _used(tokenizer: TextTokenizer) -> None:
    tokenizer.encode_text("Two words, d\u00e9j\u00e0 vu.\n")
    ids = tokenizer.encode_chat(CONVERSATION)
    stream = tokenizer.stream()
    streamed = "".join(stream.push(token) for token in ids) + stream.flush()
    tokenizer.decode(ids), len(streamed)
    tokenizer.encode_turn("More? <|im_start|>")


def _tokenizer_part(kind: str, data: bytes) -> None:
    folder = _tokenizer_folder(kind)
    (folder / TOKENIZER_FILES[kind]).write_bytes(data)
    with pytest.MonkeyPatch.context() as patched:
        if kind == "chat_template":
            patched.setattr(chat_template, "SECONDS", MOST_SECONDS.get())
            patched.setattr(answer_ends, "_SECONDS", MOST_SECONDS.get())
        tokenizer = load_tokenizer(folder, vocabulary=VOCABULARY)
        SamplingOptions(**conversation_sampling(folder))
        _used(tokenizer)


def _gate() -> nn.Module:
    layer = nn.Module()
    form = FeatureMap("elu", KV_HEADS, HEAD_DIM)
    layer.memory_gate = MemoryGate(HEADS, HEAD_DIM, 4, form, "constant")
    return layer


def gate(data: bytes) -> None:
    """A trained memory gate."""
    load_gate(_written("gate", "gate.safetensors", data), [_gate() for _ in range(LAYERS)])


def scorer(data: bytes) -> None:
    """A trained retention scorer."""
    path = _written("scorer", "scorer.safetensors", data)
    load_scorers(path, LAYERS, KV_HEADS, HEAD_DIM)
    read_rank_rule(path)


@functools.cache
def _checkpoint() -> Path:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = _tokenizer_folder("checkpoint")
    LlamaConfig(
        vocab_size=16,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=1,
        architectures=["LlamaForCausalLM"],
        tie_word_embeddings=True,
    ).to_json_file(folder / "config.json")
    return folder


def weights(data: bytes) -> None:
    """A checkpoint's `model.safetensors`."""
    folder = _checkpoint()
    (folder / "model.safetensors").write_bytes(data)
    load_backbone(str(folder))


def gguf(data: bytes) -> None:
    """A checkpoint as one GGUF file."""
    _checkpoint()  # quiet
    backbone = load_backbone(str(_written("gguf", "model.gguf", data)))
    backbone.integers  # noqa: B018


def document(data: bytes) -> None:
    """PDF, EPUB and Word by their contents; all else as a page and as text."""
    kind = "pdf" if b"%PDF-" in data[:1024] else "zip" if data.startswith(b"PK") else ""
    if kind:
        document_of(f"a.{kind}", data)
        return
    refused = []
    for name in ("a.html", "a.txt"):
        try:
            document_of(name, data)
        except EdgeInfiniteError as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]


@functools.cache
def _guidance() -> Guidance:
    return Guidance(load_tokenizer(_tokenizer_folder("guidance")), VOCABULARY)


def request(data: bytes) -> None:
    """The body of a request to the server: for a conversation, and for a text."""
    refused = []
    for parse in (parse_chat, parse_completion):
        try:
            _asked(parse(data))
        except REFUSALS as error:
            refused.append(error)
    if len(refused) == 2:
        raise refused[0]


def _asked(asked: Settings) -> None:
    """What a route makes of a request before it computes."""
    asked.sampling(SamplingOptions(temperature=0.5)).check_vocabulary(VOCABULARY)
    len(asked.stops)
    schema = getattr(asked, "schema", None)
    if schema is not None:
        _guidance().json_schema(schema).allowed()
    if isinstance(asked, ChatRequest):
        _encoded(
            Talk(
                tuple(asked.plain_messages),
                continues=asked.continues,
                tools=asked.declared,
                effort=asked.reasoning_effort,
                switches=asked.chat_template_kwargs,
            )
        )


def _encoded(talk: Talk) -> None:
    """The prompt, and the grammar of its tools."""
    tokenizer = load_tokenizer(_tokenizer_folder("guidance"))
    msgspec.json.encode(talk.encode(tokenizer))
    if talk.tools.all:
        tool_grammar(_guidance(), HERMES, talk.tools, special=tokenizer.special_tokens).allowed()


def response(data: bytes) -> None:
    """The body of a request to `/v1/responses`."""
    asked = parse_response(data)
    asked.sampling(SamplingOptions(temperature=0.5)).check_vocabulary(VOCABULARY)
    _encoded(responses.talk_of(asked, None)[0])
    if asked.schema is not None:
        _guidance().json_schema(asked.schema).allowed()


def message(data: bytes) -> None:
    """The body of a request to `/v1/messages`."""
    asked = parse_message(data)
    asked.sampling(SamplingOptions(temperature=0.5)).check_vocabulary(VOCABULARY)
    len(asked.stops)
    _encoded(messages.talk_of(asked))
    if asked.schema is not None:
        _guidance().json_schema(asked.schema).allowed()


READERS: dict[str, Reader] = {
    "manifest": manifest,
    "session": session,
    **{kind: functools.partial(_tokenizer_part, kind) for kind in TOKENIZER_FILES},
    "gate": gate,
    "scorer": scorer,
    "weights": weights,
    "gguf": gguf,
    "document": document,
    "request": request,
    "response": response,
    "message": message,
}
