"""Saved states are believed only for the text that they are of."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.server.state_files import StateFolder
from edgeinfinite.runtime_py.server.states import SavedStates, digests
from edgeinfinite.runtime_py.session.session import Session

ADA, BEN = list(b"Ada lives in Bonn."), list(b"Ben lives in Cork.")


@pytest.fixture(scope="module")
def engine(artifact: Path):
    return load_engine(artifact, threads=1)


def saved(engine, folder: Path, tokens: list[int]) -> Path:
    session = Session(engine)
    session.append(tokens)
    states = StateFolder(engine, folder, 10**9)
    (key,) = digests(tokens, [len(tokens)]).values()
    states.save(key, session)
    states.close()
    (path,) = folder.rglob(f"*{key[1]}.session")
    return path


def test_a_file_that_was_renamed_to_another_text_is_not_believed(engine, tmp_path: Path) -> None:
    path = saved(engine, tmp_path, ADA)
    (key,) = digests(BEN, [len(BEN)]).values()
    path.rename(path.with_name(f"{key[0]}-{key[1]}.session"))
    states = SavedStates(engine, 10**9, StateFolder(engine, tmp_path, 10**9))
    assert states.continued([*BEN, 1]).tokens_read == 0
    states.close()
    assert not list(tmp_path.rglob("*.session"))


def test_a_file_of_the_text_itself_is_believed(engine, tmp_path: Path) -> None:
    saved(engine, tmp_path, ADA)
    states = SavedStates(engine, 10**9, StateFolder(engine, tmp_path, 10**9))
    assert states.continued([*ADA, 1]).tokens_read == len(ADA)
    states.close()


def test_what_is_named_like_a_state_and_is_none_keeps_nothing_from_starting(
    engine, tmp_path: Path
) -> None:
    path = saved(engine, tmp_path, ADA)
    path.with_name(f"7-{'a' * 64}.session").symlink_to(tmp_path / "nowhere")
    path.with_name(f"8-{'b' * 64}.session").mkdir()
    states = StateFolder(engine, tmp_path, 10**9)
    assert len(states.keys()) == 1
    states.close()
