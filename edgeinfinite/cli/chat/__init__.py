"""`edgeinfinite chat`: a conversation on the terminal, or line by line from a pipe."""

from edgeinfinite.cli.chat.command import chat

__all__ = ["chat"]
