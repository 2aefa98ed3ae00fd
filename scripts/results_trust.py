"""Tables of other CPUs, of sessions that go from engine to engine, of clients and documents."""

from __future__ import annotations

import re
from collections import Counter
from statistics import fmean

from results_tables import Cell, Grid, Line, Row, count, mean, one, rows_of

_NAMES = {"int4": "ONNX int4", "int8": "ONNX int8", "executorch-int4": "ExecuTorch int4"}
_BACKENDS = {"onnx": "ONNX", "executorch": "ExecuTorch"}
_POLICIES = ("carry", "reencode")


def _from_to() -> tuple[Line, ...]:
    return tuple(
        Line(
            (f"`{policy}`", _NAMES[reader], _NAMES[taker]),
            f"trust/cross-engine-{policy}.json",
            {"reader": f"{reader}-{policy}", "taker": f"{taker}-{policy}"},
        )
        for policy in _POLICIES
        for reader in _NAMES
        for taker in _NAMES
        if reader != taker
    )


CROSS_ENGINE = Grid(
    ("policy", "read by", "goes on in"),
    (
        ("its loss", mean("nats", "{:.3f}")),
        ("had the second one read all", mean("nats_taker", "{:.3f}")),
        ("had the first one gone on", mean("nats_reader", "{:.3f}")),
    ),
    _from_to(),
)


def _state(rows: list[Row]) -> str:
    (row,) = rows
    return ", ".join(f"{100 * row['state'][name]:.1f} %" for name in ("k_cache", "v_cache"))


def _greedy(rows: list[Row]) -> str:
    (row,) = rows
    alike = row["greedy"]
    return "16 of 16" if alike == 16 else f"{alike} of 16, the first"


ARM64 = Grid(
    ("artifact",),
    (
        ("logits, worst call", one("logits", "{:.1f} %", 0.01)),
        ("mean KL, nats", one("nats", "{:.4f}")),
        ("keys, values", _state),
        ("loss of 32 tokens", one("loss", "{:+.3f}")),
        ("greedy tokens alike", _greedy),
    ),
    tuple(
        Line(
            (f"{label} {quantize}, `{policy}`",),
            "trust/arm64.json",
            {"backend": backend, "quantize": quantize, "policy": policy},
        )
        for backend, label in _BACKENDS.items()
        for quantize in ("int4", "int8")
        for policy in _POLICIES
    ),
)

_CLIENTS = "trust/clients.json"


def _refusal(row: Row) -> str:
    return next((asked["refused"] for asked in row["requests"] if "refused" in asked), "")


_APIS = {
    "chat/completions": "chat",
    "completions": "completions",
    "responses": "responses",
    "messages": "messages",
}


def _answered(rows: list[Row]) -> str:
    """How many tasks were answered, by the API that they begin with."""
    counts = Counter(_api(row) for row in rows if not _refusal(row))
    names = [*_APIS.values(), "others"]
    return ", ".join(f"{counts[name]} {name}" for name in names if counts[name]) or "–"


def _api(row: Row) -> str:
    routes = [re.sub(r"^\w+ /v1/|\?.*", "", asked["route"]) for asked in row["requests"]]
    return next((_APIS[route] for route in routes if route in _APIS), "others")


def _refused(rows: list[Row]) -> str:
    found = [f"{row['task']}: {_refusal(row).partition(';')[0]}" for row in rows if _refusal(row)]
    return "; ".join(found) or "–"


CLIENTS = Grid(
    ("client",),
    (("tasks answered", _answered), ("refused, and the server's word", _refused)),
    tuple(
        Line((client,), _CLIENTS, {"client": client})
        for client in dict.fromkeys(row["client"] for row in rows_of(_CLIENTS))
    ),
)

_DOCUMENTS = "trust/documents.json"


def _files(rows: list[Row]) -> str:
    return f"{sum(row.get('pages', 1) for row in rows):,}"


def _share(field: str, *, words: str = "words", comparable: bool = True) -> Cell:
    """The mean of a share over the documents that were read, each as often as it has words.

    `comparable` leaves out those whose reference isn't what they say.
    """

    def cell(rows: list[Row]) -> str:
        read = [row for row in rows if row.get("words") and "refused" not in row]
        if comparable:
            read = [row for row in read if "not_comparable" not in row]
        weights = [row.get(words, row["words"]) for row in read]
        return f"{fmean([row[field] for row in read], weights):.3f}"

    return cell


DOCUMENTS = Grid(
    ("kind", "compared with"),
    (
        ("files", _files),
        ("refused", lambda rows: str(sum("refused" in row for row in rows))),
        ("words", lambda rows: f"{sum(row.get('words', 0) for row in rows):,}"),
        ("kept, as the reference stands", _share("kept", comparable=False)),
        ("kept, of what is comparable", _share("comparable", words="comparable_words")),
        ("in order", _share("in_order")),
        ("not comparable", lambda rows: str(sum("not_comparable" in row for row in rows))),
    ),
    tuple(
        Line((name, reference), _DOCUMENTS, {"kind": kind})
        for kind, name, reference in (
            ("epub", "EPUB", "pandoc"),
            ("docx", "Word", "pandoc"),
            ("html", "HTML", "pandoc"),
            ("pdf", "PDF", "pdftotext"),
            ("txt", "text in other encodings", "the encodings that its makers name"),
            ("html5lib", "broken pages", "html5lib's trees"),
        )
    ),
)

ROUTES = Grid(
    (),
    (
        ("Schemathesis", lambda rows: rows[0]["schemathesis"]),
        ("requests", lambda rows: f"{rows[0]['cases']:,}"),
        ("failures", lambda rows: str(rows[0]["failures"])),
    ),
    (Line((), "trust/routes.json", {}),),
)

_GGUF = "trust/gguf.json"


def _worst(place: int, below: int | None = None) -> Cell:
    """The largest error after the tokens at a place, or at places from it to below another."""
    end = place + 1 if below is None else below

    def cell(rows: list[Row]) -> str:
        errors = [
            error
            for row in rows
            for at, error in zip(row["places"], row["errors"], strict=True)
            if place <= at < end
        ]
        return f"{max(errors):.1e}" if errors else "–"

    return cell


GGUF = Grid(
    ("architecture",),
    (
        ("files", count),
        ("at 0", _worst(0)),
        ("64", _worst(64)),
        ("the end of 160 or fewer", _worst(65, 160)),
        ("4,096 and more", _worst(4096, 1_000_000)),
    ),
    tuple(
        Line((name,), _GGUF, {"architecture": name})
        for name in dict.fromkeys(row["architecture"] for row in rows_of(_GGUF))
    ),
)
