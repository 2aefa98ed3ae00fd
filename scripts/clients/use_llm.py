"""Simon Willison's llm, by its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tasks import MODEL, TOKENS, URL, run

FOLDER = Path(os.environ["HOME"]) / "llm"
FOLDER.mkdir()
(FOLDER / "extra-openai-models.yaml").write_text(
    f"- model_id: here\n  model_name: {MODEL}\n  api_base: {URL}\n  supports_schema: true\n"
    "  supports_tools: true\n"
    f"- model_id: text\n  model_name: {MODEL}\n  api_base: {URL}\n  completion: true\n"
)


def said(*arguments: str, tokens: int = TOKENS) -> str:
    """What the command prints."""
    command = [str(Path(sys.executable).with_name("llm")), *arguments]
    limit = ["-o", "max_tokens", str(tokens)]
    made = subprocess.run(
        [*command, *limit],
        env=os.environ | {"LLM_USER_PATH": str(FOLDER)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise RuntimeError(made.stderr)
    return made.stdout.strip()


run(
    "llm",
    {
        "a prompt, streamed": lambda: said("-m", "here", "Hi"),
        "a prompt, not streamed": lambda: said("-m", "here", "--no-stream", "Hi"),
        "a system prompt": lambda: said("-m", "here", "-s", "Be brief.", "Hi"),
        "the conversation goes on": lambda: said("-c", "And then?"),
        "a schema": lambda: said("-m", "here", "--schema", "dog bool", "A pet", tokens=40),
        "a completion": lambda: said("-m", "text", "Once"),
        "a tool": lambda: said("-m", "here", "-T", "llm_version", "Hi"),
    },
)
