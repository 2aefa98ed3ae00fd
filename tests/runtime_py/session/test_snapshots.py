"""Taking turns back."""

from __future__ import annotations

import pytest
from greedy import open_greedy
from tiny_artifact import tiny_artifact

from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.session.snapshots import Snapshots

LONG = "It was a bright cold day in April, and the clocks were striking thirteen. " * 3


@pytest.fixture(scope="module", params=["reencode", "carry"])
def conversation(request: pytest.FixtureRequest, tmp_path_factory) -> Conversation:
    folder = tmp_path_factory.mktemp("snapshots") / request.param
    return open_greedy(tiny_artifact(folder, "--policy", request.param))


def _content(conversation: Conversation) -> dict[str, bytes]:
    """Every array as far as it is in use, and every counter, as bytes."""
    session = conversation.session
    state = session.state
    content = {spec.name: state.in_use(spec).tobytes() for spec in state.specs}
    counters = (session.tokens_read, session.compressions, session.residual, session.unread)
    return content | {"counters": repr((*counters, conversation.message_is_open)).encode()}


def test_undo_restores_every_array_bit_for_bit(conversation: Conversation) -> None:
    here, past, before = conversation, Snapshots(8), []
    here.reset()
    for message in ("Hello.", LONG, "And then?", LONG):
        before.append(_content(here))
        past.before(here, message, message)
        list(here.ask(message, max_new_tokens=6))
    before.append(_content(here))
    past.before(here, "/attach")
    here.attach(LONG)
    assert here.session.compressions > 3

    assert past.last is not None and past.last.message is None
    for expected in reversed(before):
        here = past.take_back().before
        assert _content(here) == expected
    assert past.last is None


def test_a_turn_taken_back_is_answered_as_if_it_had_not_been(conversation: Conversation) -> None:
    here, past = conversation, Snapshots(8)
    here.reset()
    list(here.ask(LONG, max_new_tokens=3))
    past.before(here, "a", "a")
    expected = list(here.ask("And then?", max_new_tokens=6))
    list(here.ask(LONG, max_new_tokens=6))

    here = past.take_back().before

    assert list(here.ask("And then?", max_new_tokens=6)) == expected


def test_the_ring_keeps_the_newest_turns_only(conversation: Conversation) -> None:
    past = Snapshots(2)
    conversation.reset()
    for message in ("one", "two", "three"):
        past.before(conversation, message, message)
    assert [past.take_back().what for _ in range(2)] == ["three", "two"]
    assert past.last is None
    with pytest.raises(IndexError):
        past.take_back()
