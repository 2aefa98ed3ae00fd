"""The settings of a GGUF file's architecture: read one by one, so that none is passed over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf.architecture import GgufArchitecture
from edgeinfinite.models.checkpoint.gguf.architectures import ARCHITECTURES, REFUSED
from edgeinfinite.models.checkpoint.gguf.file import GgufFile, refusal, unknown_key

_LARGEST = 2**31 - 1


class Header:
    """The keys `ARCHITECTURE.*`; whoever asks for one has used it.

    Args:
        file: whose general keys are checked.

    Attributes:
        architecture: as the file calls it.
        row: what is known about it.
        tensors: the names of the file's.

    Raises:
        EdgeInfiniteError: the architecture isn't known, or can't be right.
    """

    def __init__(self, file: GgufFile) -> None:
        self._path = file.path
        name = file.values["general.architecture"]
        self.architecture = str(name)
        start = f"{name}."
        own = {key for key in file.values if key.startswith(start)}
        self._values: Mapping[str, Any] = {key.removeprefix(start): file.values[key] for key in own}
        self.tensors = frozenset(tensor.name for tensor in file.tensors)
        self._used: set[str] = set()
        self.row = self._row()
        self._used |= self.row.unused.keys()

    def _row(self) -> GgufArchitecture:
        name = self.architecture
        experts = self.whole("expert_count", 0)
        row = ARCHITECTURES.get(name)
        if experts:
            row = ARCHITECTURES.get(f"{name} with experts", row)
        if row is None:
            known = ", ".join(sorted(key for key in ARCHITECTURES if " " not in key))
            reason = REFUSED.get(name)
            raise refusal(
                self._path,
                f"its architecture {name} isn't supported: {reason}"
                if reason
                else f"its architecture {name} isn't read from GGUF, only {known} are; give the "
                "model's folder or hub id",
            )
        if bool(experts) != ("ffn_gate_inp" in row.layer):
            read = "without" if experts else "with"
            raise self.refuse("expert_count", f"is {experts}, and {name} is read {read} experts")
        return row

    def refuse(self, key: str, reason: str) -> EdgeInfiniteError:
        """The error for a key whose value can't be right."""
        return refusal(self._path, f"its {self.architecture}.{key} {reason}")

    @property
    def blocks(self) -> int:
        """How many blocks of tensors there are."""
        return self.positive("block_count")

    @property
    def layers(self) -> int:
        """How many of the blocks are layers; others predict further tokens."""
        others = self.whole("nextn_predict_layers", 0) if self.row.predicting else 0
        if others >= self.blocks:
            raise self.refuse("nextn_predict_layers", f"is {others}, of {self.blocks} blocks")
        return self.blocks - others

    def has(self, key: str) -> bool:
        """Whether the file states it; doesn't count as used."""
        return key in self._values

    def value(self, key: str, default: Any = None) -> Any:
        """As it stands in the file.

        Raises:
            EdgeInfiniteError: it isn't there, and there is no default.
        """
        self._used.add(key)
        found = self._values.get(key, default)
        if found is None:
            raise refusal(self._path, f"it lacks the key {self.architecture}.{key}")
        return found

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 0; a list by layers must have the same for each."""
        found = self.value(key, default)
        if isinstance(found, list):
            if len(set(found)) != 1:
                raise self.refuse(key, f"differs by layer ({_short(found)}), which isn't supported")
            found = found[0]
        return self._checked(key, found)

    def by_layer(self, key: str, layers: int, default: int | None = None) -> list[int]:
        """A whole number from 0 for each layer; one number in the file is that of all."""
        found = self.value(key, default)
        if not isinstance(found, list):
            found = [found] * layers
        if len(found) != layers:
            raise self.refuse(key, f"has {len(found)} entries for {layers} layers")
        return [self._checked(key, entry) for entry in found]

    def _checked(self, key: str, found: Any) -> int:
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _LARGEST:
            raise self.refuse(key, f"is {_short(found)}, which is no whole number from 0")
        return found

    def positive(self, key: str, default: int | None = None) -> int:
        """A whole number from 1, see `whole`."""
        found = self.whole(key, default)
        if not found:
            raise self.refuse(key, "is 0")
        return found

    def real(self, key: str, default: float | None = None) -> float:
        """A finite number."""
        found = self.value(key, default)
        if (
            isinstance(found, bool)
            or not isinstance(found, int | float)
            or not math.isfinite(found)
        ):
            raise self.refuse(key, f"is {_short(found)}, which is no number")
        return float(found)

    def flag(self, key: str, default: bool) -> bool:
        """A truth value."""
        found = self.value(key, default)
        if not isinstance(found, bool):
            raise self.refuse(key, f"is {_short(found)}, neither true nor false")
        return found

    def must_be(self, key: str, wanted: Any, meaning: str) -> None:
        """Refuses a key that has another value than the only one that can be computed."""
        found = self.value(key, wanted)
        if found != wanted:
            raise self.refuse(key, f"is {_short(found)}: {meaning}")

    def check_all_used(self) -> None:
        """Refuses a file with a key that nobody asked for.

        Raises:
            EdgeInfiniteError: names it.
        """
        for key in self._values:
            if key not in self._used:
                raise unknown_key(self._path, f"{self.architecture}.{key}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
