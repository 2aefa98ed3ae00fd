"""The one exception that users see, in the lowest layer, so that every package can raise it."""


class EdgeInfiniteError(Exception):
    """An error that the user can fix: the message says what is wrong and what to do (exit code
    2).
    """
