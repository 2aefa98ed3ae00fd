"""The Snapdragon chips that an artifact can be compiled for (`--target qnn-htp --soc NAME`).

Graphs for the HTP compute in float16 (`docs/npu.md`), which needs architecture v73 or newer; so
does one copy of the weights for two graphs. Numbers as in Qualcomm's `QnnHtpDevice.h`.
"""

from __future__ import annotations

from dataclasses import dataclass

from edgeinfinite.errors import EdgeInfiniteError

QNN_HTP = "qnn-htp"
"""The target's name."""


@dataclass(frozen=True)
class Soc:
    """One chip.

    Args:
        name: as in `--soc` and the manifest; Android's `Build.SOC_MODEL` in lower case.
        product: as it is sold.
        model: QNN's `soc_model`.
        arch: QNN's `htp_arch`.
    """

    name: str
    product: str
    model: int
    arch: int


SOCS = {
    soc.name: soc
    for soc in (
        Soc("sm8550", "Snapdragon 8 Gen 2", 43, 73),
        Soc("sm8650", "Snapdragon 8 Gen 3", 57, 75),
        Soc("sm8750", "Snapdragon 8 Elite", 69, 79),
        Soc("sm8845", "Snapdragon 8 Gen 5", 97, 81),
        Soc("sm8850", "Snapdragon 8 Elite Gen 5", 87, 81),
    )
}


def soc_named(name: str) -> Soc:
    """The chip of this name.

    Raises:
        EdgeInfiniteError: it isn't one of `SOCS`.
    """
    if name not in SOCS:
        raise EdgeInfiniteError(f"unknown SoC {name!r}; choose one of {', '.join(SOCS)}")
    return SOCS[name]
