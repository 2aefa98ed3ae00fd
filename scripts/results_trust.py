"""Tables of other CPUs, of sessions that go from engine to engine, and of clients."""

from __future__ import annotations

from results_tables import Grid, Line, Row, mean, one, rows_of

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


def _answered(rows: list[Row]) -> str:
    return "; ".join(row["task"] for row in rows if not _refusal(row)) or "–"


def _refused(rows: list[Row]) -> str:
    found = [f"{row['task']}: {_refusal(row).partition(';')[0]}" for row in rows if _refusal(row)]
    return "; ".join(found) or "–"


CLIENTS = Grid(
    ("client",),
    (("answered", _answered), ("refused, and the server's word", _refused)),
    tuple(
        Line((client,), _CLIENTS, {"client": client})
        for client in dict.fromkeys(row["client"] for row in rows_of(_CLIENTS))
    ),
)
