"""The one exception that users see, in the lowest layer, so that every package can raise it."""


class EdgeInfiniteError(Exception):
    r"""An error that the user can fix: the message says what is wrong and what to do (exit code
    2).

    Characters that would end the line or steer the terminal are shown as escapes such as `\x1b`:
    messages quote names from files that anybody could have written.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


def printable(text: str) -> str:
    r"""The text with every character that can't be printed as Python writes it, `\n` or `\x1b`."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )
