"""The page in a real browser: conversations that are looked for, and one that is downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("playwright")

from browsing import IN_BROWSER, answers_with, ask, expect_listed
from playwright.sync_api import expect

pytestmark = IN_BROWSER


def test_words_find_conversations_in_what_was_said_and_escape_shows_all(desk):
    answers_with(desk, "They build Dams.", "In reeds.")
    expect(desk.locator("#find")).to_be_hidden()  # there is nothing to look through
    ask(desk, "What do beavers do?")
    desk.get_by_role("button", name="New chat", exact=True).click()
    ask(desk, "Where do herons stand?")
    find = desk.get_by_label("Search the conversations")
    find.fill("dams beavers")
    expect_listed(desk, "What do beavers do?")
    find.fill("otter")
    expect(desk.locator("#conversations")).to_have_text("None has these words.")
    find.press("Escape")
    expect(find).to_have_value("")
    expect_listed(desk, "What do beavers do?", "Where do herons stand?")


def test_a_conversation_is_downloaded_as_it_is_shown(desk, tmp_path: Path):
    answers_with(desk, "`One`.", "**Two**.")
    expect(desk.get_by_role("button", name="Download as Markdown")).to_be_hidden()
    ask(desk, "A/B: <which>?")
    desk.get_by_role("button", name="Regenerate").click()
    expect(desk.locator(".version")).to_have_text("2/2")
    with desk.expect_download() as download:
        desk.get_by_role("button", name="Download as Markdown").click()
    assert download.value.suggested_filename == "A B which.md"
    download.value.save_as(tmp_path / "said.md")
    assert (tmp_path / "said.md").read_text(encoding="utf-8") == (
        "# A/B: <which>?\n\n## You\n\nA/B: <which>?\n\n## Model\n\n**Two**.\n"
    )
