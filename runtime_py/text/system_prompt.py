"""Whether a chat template tells the model a system prompt, or drops it without a word."""

from __future__ import annotations

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.runtime_py.text.chat_template import ChatTemplate, Message, SystemDropped

_MARK = "EDGEINFINITE-SYSTEM-4C1E"
_USER: Message = {"role": "user", "content": "Hi"}


def check_system(template: ChatTemplate | None, text: str) -> None:
    """Judges a system prompt before a conversation begins with it.

    Args:
        template: the artifact's; None without one.
        text: in place of the template's own; "" is an empty one.

    Raises:
        EdgeInfiniteError: it is no text; there is no chat template; the template refuses system
            messages, drops them, or puts its own in the place of an empty one.
    """
    if not isinstance(text, str):
        raise EdgeInfiniteError(f"the system prompt is of type {type(text).__name__}; give text")
    if template is None:
        raise EdgeInfiniteError(
            "a system prompt needs a chat template, and this artifact has none; put it before the "
            "text that is to be continued"
        )
    own = template.render([_USER])
    try:
        marked = template.render([_system(_MARK), _USER])
    except SystemDropped as error:
        raise _no_role("drops them") from error
    except EdgeInfiniteError as error:
        raise _no_role("refuses them") from error
    if text.strip() or template.render([_system(text), _USER]) != own:
        return
    if _has_its_own(own, marked):
        raise EdgeInfiniteError(
            "this artifact's chat template puts its own system prompt in the place of an empty "
            "one; give a text"
        )


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _has_its_own(own: str, marked: str) -> bool:
    """Whether the template writes something where the mark stands, if it is given nothing."""
    before, _, after = marked.partition(_MARK)
    pairs = enumerate(zip(own, before, strict=False))
    alike = next((i for i, (one, other) in pairs if one != other), min(len(own), len(before)))
    return not after.endswith(own[alike:])


def _no_role(what: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"this artifact's chat template has no system prompt: it {what}; put what it should say "
        "into the first message"
    )
