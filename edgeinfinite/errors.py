"""The one exception that users see. It stands at the bottom, so that every package can raise it."""


class EdgeInfiniteError(Exception):
    """Something the user can mend: the message says what is wrong and what to do (exit code 2)."""
