"""A user's text is written only into the files that the user named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def _run(home: Path, *arguments: str, given: str = "", **variables: str) -> None:
    """Runs Python in an empty home, with no variable of this test run but the path."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), **variables}
    subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=home,
        input=given,
        text=True,
        check=True,
        capture_output=True,
        timeout=120,
    )


def _written(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*"))


def test_generate_and_chat_write_nothing_into_the_home_folder(
    artifact: Path, tmp_path: Path
) -> None:
    _run(
        tmp_path,
        *("-m", "edgeinfinite.cli", "generate", str(artifact)),
        *("--prompt", "Tell me.", "--max-new-tokens", "4", "--stats"),
    )
    assert _written(tmp_path) == []
    chat = ("-m", "edgeinfinite.cli", "chat", str(artifact), "--max-new-tokens", "4")
    _run(tmp_path, *chat, "--session", "notes.session", given="Hello\nAgain\n")
    assert _written(tmp_path) == ["notes.session"]


def test_the_public_api_writes_nothing_either(artifact: Path, tmp_path: Path) -> None:
    code = (
        "from edgeinfinite import Conversation; "
        f"print(*Conversation.open({str(artifact)!r}).ask('Hello', max_new_tokens=4))"
    )
    _run(tmp_path, "-c", code)
    assert _written(tmp_path) == []


@pytest.mark.parametrize("variable", ["ORT_DISABLE_TELEMETRY", "HF_HUB_DISABLE_TELEMETRY"])
def test_variables_that_the_user_has_set_are_kept(tmp_path: Path, variable: str) -> None:
    code = f"import os, edgeinfinite; assert os.environ[{variable!r}] == '0'"
    _run(tmp_path, "-c", code, **{variable: "0"})


def test_huggingface_hub_is_asked_not_to_report(tmp_path: Path) -> None:
    code = "import edgeinfinite, huggingface_hub.constants as c; assert c.HF_HUB_DISABLE_TELEMETRY"
    _run(tmp_path, "-c", code)
