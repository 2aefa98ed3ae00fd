"""docs/commands.md is what the parsers say."""

from __future__ import annotations

import sys

from tree import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import commands


def test_the_page_of_commands_is_what_the_parsers_say() -> None:
    assert commands.PAGE.read_text(encoding="utf-8") == commands.page(), "run `make commands`"


def test_it_has_every_command_and_nested_ones() -> None:
    page = commands.page()
    for command in ("export", "serve", "evaluate longbench", "lm-eval", "adapt", "train-gate"):
        assert f"\n## {command}\n" in page
    assert page.count("\n- `--") > 200
