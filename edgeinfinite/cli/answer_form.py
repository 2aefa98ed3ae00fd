"""What the command line says about an answer's form: stop strings, a grammar, log-probabilities."""

from __future__ import annotations

import argparse
from typing import Any

from edgeinfinite.files import read_text_file
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.generation import Grammar


def answer_form(arguments: argparse.Namespace, conversation: Conversation) -> dict[str, Any]:
    """Arguments of `Conversation.answer`.

    Raises:
        EdgeInfiniteError: a file can't be read, or a schema or pattern can't be used.
    """
    return {
        "stop": arguments.stop,
        "logprobs": arguments.logprobs,
        "grammar": _grammar(arguments, conversation),
    }


def _grammar(arguments: argparse.Namespace, conversation: Conversation) -> Grammar | None:
    if arguments.json_schema is not None:
        return conversation.guidance.json_schema(read_text_file(arguments.json_schema))
    if arguments.regex is not None:
        return conversation.guidance.regex(arguments.regex)
    return None
