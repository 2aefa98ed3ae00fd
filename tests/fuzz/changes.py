"""Random changes of files: values of JSON, and bytes; and a session's checksum put right again."""

from __future__ import annotations

import copy
import hashlib
import json
import random
from collections.abc import Callable
from typing import Any

from edgeinfinite.artifact.session_file import CHECKSUM_KEY

ODD: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, float("nan"), float("inf")),
    *("", "a", "..", "/etc/passwd", "\x00", "\x1b[2J", "\ud800", "é" * 9, "x" * 500),
    *([], {}, [[]], {"a": 1}, [None]),
]

ASKED = ("request", "response", "message")
JSON_KINDS = ("manifest", "tokenizer", "tokenizer_config", "generation_config", *ASKED)

Place = tuple[Any, ...]


def places(value: Any, at: Place = ()) -> list[Place]:
    """Where something can be changed in JSON."""
    if not isinstance(value, dict | list):
        return []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[Place] = []
    for key, inner in items:
        found += [(*at, key), *places(inner, (*at, key))]
    return found


def change(document: Any, place: Place, value: Any, *, lose: bool = False) -> None:
    """Replaces a value of JSON, or takes it out."""
    for key in place[:-1]:
        document = document[key]
    if lose:
        del document[place[-1]]
    else:
        document[place[-1]] = value


def changed_json(text: bytes, dice: random.Random) -> bytes:
    """The document with one to three values lost or replaced; as it is if it isn't JSON."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _ in range(dice.randint(1, 3)):
        found = places(document)
        if found:
            lose = dice.random() < 0.3
            odd = copy.deepcopy(dice.choice(ODD))
            change(document, dice.choice(found), odd, lose=lose)
    return json.dumps(document, separators=(",", ":")).encode()


def changed_bytes(data: bytes, dice: random.Random) -> bytes:
    """The file with bytes changed, cut off, doubled or put in, mostly near its start."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        reach = min(len(changed), dice.choice([16, 200, 4000, 10**9]))
        at = dice.randint(0, max(0, reach - 1))
        kind = dice.choice(["set", "flip", "cut", "double", "insert"])
        if kind == "insert" or not changed:
            changed[at:at] = dice.randbytes(dice.randint(0, 20))
        elif kind == "set":
            changed[at] = dice.randint(0, 255)
        elif kind == "flip":
            changed[at] ^= 1 << dice.randint(0, 7)
        elif kind == "cut":
            del changed[at : at + dice.choice([1, 8, 10**9])]
        else:
            changed[at:at] = changed[at : at + 64]
    return bytes(changed)


def changed_header(data: bytes, dice: random.Random) -> bytes:
    """A safetensors file with values of its header lost or replaced; its length is put right."""
    length = int.from_bytes(data[:8], "little")
    header = changed_json(data[8 : 8 + length], dice)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def sealed(data: bytes) -> bytes:
    """A session file with the checksum of its contents, so that what lies behind it is reached."""
    before, key, after = data.partition(f'"{CHECKSUM_KEY}":"'.encode())
    if not key or len(after) < 64:
        return data
    start, rest = before + key, after[64:]
    return start + hashlib.sha256(start + b"0" * 64 + rest).hexdigest().encode() + rest


def changed(reader: str, data: bytes, dice: random.Random) -> bytes:
    """A file for a reader, changed in a way that suits its kind."""
    ways: list[Callable[[bytes, random.Random], bytes]] = [changed_bytes]
    if reader in JSON_KINDS:
        ways += [changed_json] * 3
    if reader in ("session", "gate", "scorer", "weights"):
        ways.append(changed_header)
    made = dice.choice(ways)(data, dice)
    return sealed(made) if reader == "session" and dice.random() < 0.8 else made
