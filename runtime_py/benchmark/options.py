"""The options of `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from edgeinfinite.errors import EdgeInfiniteError

DEFAULT_LENGTHS = (512, 2048, 8192, 32768)
DEFAULT_CACHE = Path("~/.cache/edgeinfinite").expanduser()


@dataclass(frozen=True)
class BenchOptions:
    """What to measure.

    Args:
        artifacts: folders of EdgeInfinite artifacts.
        lengths: prompt lengths in tokens.
        peers: names of `systems.PEERS`, or `NAME:WORD` for the settings with that word. A peer
            that isn't installed is reported with the command that installs it.
        new_tokens: tokens decoded after the first.
        threads: CPU threads of every system.
        repeats: repeats of every case, the systems taking turns; figures are medians.
        time_limit: the most seconds that one repeat may take.
        model: the peers' checkpoint; None takes the first artifact's.
        text: UTF-8 file. `bench` also measures every system's loss on its first tokens, because
            speeds are comparable only between weights of similar quality.
        peer_cache: folder for converted peer models.
    """

    artifacts: Sequence[Path]
    lengths: Sequence[int] = DEFAULT_LENGTHS
    peers: Sequence[str] = ()
    new_tokens: int = 64
    threads: int = 2
    repeats: int = 3
    time_limit: float = 600.0
    model: str | None = None
    text: Path | None = None
    peer_cache: Path = field(default=DEFAULT_CACHE)

    def __post_init__(self) -> None:
        for name in ("new_tokens", "threads", "repeats", "time_limit"):
            if getattr(self, name) <= 0:
                raise EdgeInfiniteError(f"{name.replace('_', ' ')} must be greater than 0")
