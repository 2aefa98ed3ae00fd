"""`edgeinfinite chat`: opens what the options name, and talks."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from pathlib import Path

from edgeinfinite.cli.answer import note_taken_over, opened, sampling_of
from edgeinfinite.cli.chat.commands import NAMES, WITH_FILES
from edgeinfinite.cli.chat.lines import lines
from edgeinfinite.cli.chat.talk import Talk
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.files import check_writable, held_alone
from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.sampling import Sampler
from edgeinfinite.runtime_py.answer.sampling_defaults import conversation_sampling


def chat(arguments: argparse.Namespace) -> int:
    """A conversation; /help lists its commands."""
    sampling_of(arguments, {})  # refuses impossible options before the artifact is loaded
    path: Path | None = arguments.session
    check_writable(path, again=True)
    if path is not None and path.exists() and arguments.from_ is not None:
        raise EdgeInfiniteError(
            f"{path} is there already, and a chat goes on in it; leave --from out, or give another "
            "--session"
        )
    asker = lines(NAMES, WITH_FILES, arguments.history)
    with nullcontext() if path is None else held_alone(path):
        conversation = opened(arguments)
        sampling = sampling_of(arguments, conversation_sampling(arguments.artifact))
        begun = path if path is not None and path.exists() else arguments.from_
        if begun is not None:
            conversation.resume(begun)
            note_taken_over(conversation, begun)
            if arguments.system is not None:
                conversation.set_system(arguments.system)  # refuses another than the file's
            print(f"resuming after {conversation.session.tokens_read:,} tokens", file=sys.stderr)
        _check_can_chat(conversation, begun)
        here = Talk(conversation, Sampler(sampling), path, arguments, asker)
        if asker.is_terminal:
            here.greet()
        here.run()
    return 0


def _check_can_chat(conversation: Conversation, begun: Path | None) -> None:
    if conversation.document is not None and conversation.document.raw:
        raise EdgeInfiniteError(
            f"{begun} was read with --raw, so it has no turns; use `edgeinfinite generate --from`"
        )
