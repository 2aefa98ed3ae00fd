"""Conversations whose answers can be compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.sampling import SamplingOptions


def open_greedy(artifact: Path, **options: Any) -> Conversation:
    """`Conversation.open`; every answer is of the likeliest tokens."""
    conversation = Conversation.open(artifact, **options)
    conversation.sampling = SamplingOptions()
    return conversation
