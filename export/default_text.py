"""An English text that is everywhere: Python's own language reference comes with every Python."""

from __future__ import annotations


def default_text() -> str:
    """Some 200,000 characters."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))[:200_000]
