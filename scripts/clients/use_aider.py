"""aider, by its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tasks import MODEL, URL, run


def said(*arguments: str) -> str:
    """What the command prints."""
    file = Path(os.environ["HOME"]) / "hello.py"
    file.write_text("print('hello')\n")
    flags = ["--no-git", "--yes-always", "--no-check-update", "--no-show-model-warnings"]
    made = subprocess.run(
        [
            *(sys.executable, "-m", "aider", f"--model=openai/{MODEL}", f"--openai-api-base={URL}"),
            *("--openai-api-key=none", "--no-analytics", "--no-pretty", *flags, *arguments),
            *("--message", "Add a comment.", str(file)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode or "litellm." in made.stdout:
        raise RuntimeError(made.stdout[-300:] + made.stderr[-300:])
    return made.stdout.strip()[-200:]


run(
    "aider-chat",
    {
        "ask a question": lambda: said("--chat-mode", "ask"),
        "ask, not streamed": lambda: said("--chat-mode", "ask", "--no-stream"),
        "edit a file": lambda: said("--edit-format", "whole"),
    },
)
