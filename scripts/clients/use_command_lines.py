"""Codex and Claude Code, by their command lines; they lie in the folder that this is run in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tasks import MODEL, URL, run

BIN = Path("node_modules/.bin").resolve()
HOME = Path(os.environ["HOME"])
SECONDS = 240


def said(program: str, *arguments: str, **environment: str) -> str:
    """What a command prints."""
    made = subprocess.run(
        [str(BIN / program), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(HOME)} | environment,
        cwd=HOME,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    if made.returncode:
        raise RuntimeError((made.stdout + made.stderr)[-400:])
    return made.stdout.strip()[-200:]


def number(program: str) -> str:
    """A program's version."""
    found = re.search(r"\d+\.\d+\.\d+", said(program, "--version"))
    return found[0] if found else "?"


def codex(*arguments: str) -> str:
    """One prompt to Codex, which knows the server as a provider."""
    folder = HOME / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(
        f'model = "{MODEL}"\nmodel_provider = "here"\nmodel_context_window = 1000000\n'
        'check_for_update_on_startup = false\nweb_search = "disabled"\n'
        f'[model_providers.here]\nname = "here"\nbase_url = "{URL}"\nwire_api = "responses"\n'
        'env_key = "OPENAI_API_KEY"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
        "[analytics]\nenabled = false\n"
    )
    return said(
        *("codex", "exec", "--skip-git-repo-check", "--sandbox", "read-only", *arguments),
        "Say hi.",
        OPENAI_API_KEY="none",
    )


def claude(*arguments: str) -> str:
    """One prompt to Claude Code."""
    return said(
        *("claude", "-p", "Say hi.", "--model", MODEL, *arguments),
        ANTHROPIC_BASE_URL=URL.removesuffix("/v1"),
        ANTHROPIC_API_KEY="none",
        ANTHROPIC_SMALL_FAST_MODEL=MODEL,
        ANTHROPIC_DEFAULT_HAIKU_MODEL=MODEL,
        CLAUDE_CODE_MAX_OUTPUT_TOKENS="40",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        DISABLE_TELEMETRY="1",
    )


run("@openai/codex", {"exec": codex}, number("codex"))
run(
    "@anthropic-ai/claude-code",
    {
        "a prompt": claude,
        "without tools": lambda: claude("--tools", ""),
    },
    number("claude"),
)
