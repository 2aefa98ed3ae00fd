"""vLLM's `repetition_detection`, in the requests of every API."""

from __future__ import annotations

from typing import Annotated

import msgspec

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.answer.repetition import NO_DETECTION, RepetitionDetection

_Count = Annotated[int, msgspec.Meta(ge=0)]


class Detection(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`repetition_detection`; without `max_pattern_size` it is off."""

    max_pattern_size: _Count = 0
    min_pattern_size: _Count = 0
    min_count: _Count = 0

    def __post_init__(self) -> None:
        try:
            self.meant()
        except EdgeInfiniteError as error:
            raise ValueError(str(error)) from error  # which msgspec gives a place

    def meant(self) -> RepetitionDetection:
        """What it says."""
        if not self.max_pattern_size:
            return NO_DETECTION
        return RepetitionDetection(**msgspec.structs.asdict(self))
