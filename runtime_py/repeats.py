"""DRY: what an answer would repeat word for word becomes unlikely, more the longer it is.

As in llama.cpp and text-generation-webui. If the answer's last n tokens stood in it before, the
token that came next then loses `multiplier * BASE ** (n - ALLOWED)` of its logit, for the largest
such n of at least ALLOWED. So loops end, and words of a document may be said as often as needed:
only the answer is looked at, and a name or a number of few tokens costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

BASE = 1.75
ALLOWED = 4
"""Tokens that may be repeated freely. llama.cpp's 2 spoils lists and tables; it spares them by
breaking matches at line ends, for which a sampler would need the text."""

NEWEST = 1024
"""Tokens of the answer that are looked at; a longer period is no loop."""

LONGEST = 40
"""Longer matches aren't told apart: the logit is out of reach long before."""


def repeated(answer: Sequence[int]) -> dict[int, int]:
    """Tokens that would go on with a repetition, and how many tokens it has already.

    Args:
        answer: token ids.

    Returns:
        n by token id, from `ALLOWED` to `LONGEST`.
    """
    newest = list(answer[-NEWEST:])
    if len(newest) <= ALLOWED:
        return {}
    last, end, found = newest[-1], len(newest) - 1, {}
    for at in range(end):  # newest[at] is the last token of an earlier stretch
        if newest[at] != last:
            continue
        length = 1
        most = min(LONGEST, at + 1)
        while length < most and newest[at - length] == newest[end - length]:
            length += 1
        if length >= ALLOWED:
            token = newest[at + 1]
            found[token] = max(found.get(token, 0), length)
    return found
