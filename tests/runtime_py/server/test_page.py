"""The page in a real browser: documents, conversations and their versions."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright")

from browsing import (
    IN_BROWSER,
    LONG,
    READ,
    answers_with,
    ask,
    cached,
    drop,
    expect_listed,
    figures,
    read,
    send,
    without_end,
)
from playwright.sync_api import Page, expect

pytestmark = IN_BROWSER

HALF_READ = '{"title": "", "notes": [], "tokens": 90, "cached_tokens": 0}\n{"read": 40}\n'


def test_a_document_is_read_before_the_question_and_not_again(page):
    expect(page.locator("#drop")).to_be_visible()
    read(page)
    expect(page.locator("#document-name")).to_have_text("otter.txt")
    expect(page.locator("#drop")).to_be_hidden()  # it has been used
    assert cached(ask(page, "What did it meet?")) >= len(LONG)
    assert page.locator("#turns > li").count() == 2


def test_a_dropped_document_opens_a_conversation_beside_the_others(desk):
    ask(desk, "Hello")
    drop(desk)
    expect(desk.locator("#reading")).to_contain_text(READ)
    expect_listed(desk, "Hello", "otter.txt")
    expect(desk.locator("h1")).to_have_text("otter.txt")
    drop(desk, "A heron stood in the reeds.", "heron.txt")
    expect(desk.locator("h1")).to_have_text("heron.txt")
    expect(desk.locator("#reading")).to_contain_text(READ)
    expect_listed(desk, "Hello", "heron.txt", "otter.txt")
    desk.get_by_role("button", name="Hello", exact=True).click()
    expect(desk.locator("#turns > li")).to_have_count(2)


def test_a_reload_keeps_conversations_and_the_server_goes_on_from_its_state(desk):
    read(desk)
    ask(desk, "What did it meet?")
    said = desk.locator("#turns").inner_text()
    desk.reload()
    expect(desk.locator("#turns > li")).to_have_count(2)
    assert desk.locator("#turns").inner_text() == said
    expect(desk.locator("#reading")).to_contain_text(READ)
    assert cached(ask(desk, "And then?")) >= len(LONG)
    desk.get_by_role("button", name="New chat", exact=True).click()
    expect(desk.locator("#turns > li")).to_have_count(0)
    expect(desk.locator("#drop")).to_be_visible()
    desk.go_back()
    expect(desk.locator("#turns > li")).to_have_count(4)
    desk.goto(desk.url.partition("#")[0])
    expect(desk.locator("#conversations .open")).to_have_text(["otter.txt"])
    expect(desk.locator("#drop")).to_be_visible()


def test_a_reading_that_a_reload_ended_goes_on(page):
    page.route("**/documents*", lambda route: None)  # the server takes its time
    drop(page)
    expect(page.locator("#reading")).to_have_text("opening …")
    page.unroute("**/documents*")
    page.reload()
    expect(page.locator("#reading")).to_have_text("not read to its end")
    page.get_by_role("button", name="Read on").click()
    expect(page.locator("#reading")).to_contain_text(READ)
    assert cached(ask(page, "What did it meet?")) >= len(LONG)


def test_a_reading_says_how_far_it_is_and_how_long_it_takes(page):
    said = page.evaluate("""async () => {
        const { progressWords } = await import("/page/progress.js");
        const { timeLeft } = await import("/page/words.js");
        return [progressWords({ total: 3000, cache: 1000, processed: 2000, seconds: 20 }),
                ...[3, 42, 61, 7300].map(timeLeft)];
    }""")
    assert said == [
        "2,000 of 3,000 tokens read, 1,000 from a saved state · 50 tokens/s · about 20 s left",
        *("a few seconds left", "about 45 s left", "about 2 min left", "about 2 h 2 min left"),
    ]
    page.route("**/documents*", lambda route: route.fulfill(status=200, body=HALF_READ))
    drop(page)
    expect(page.locator("#reading")).to_contain_text("not read")
    expect(page.locator("#document .bad")).to_contain_text("broke off")
    expect(page.locator("#context")).to_be_hidden()  # nothing is held for sure


def test_the_bar_says_where_full_attention_takes_more(page, server):
    read(page)
    about = server.client().models.list().data[0].edgeinfinite
    passes = -(-about["state_bytes"] // about["full_attention_bytes_per_token"])
    said = page.locator("#context-words").inner_text()
    held, more = (int(found.replace(",", "")) for found in re.findall(r"([\d,]+) tokens", said))
    assert (held >= len(LONG), more) == (True, passes)
    assert "however long the text" in said
    mark = page.evaluate("parseFloat(document.querySelector('#context-bar i').style.left)")
    assert mark == pytest.approx(100 * passes / max(2 * passes, held), rel=1e-3)


def test_the_view_follows_an_answer_unless_the_reader_scrolled_up(desk, server):
    without_end(desk)
    send(desk, "Go on and on.\n" * 40)
    server.until(lambda: desk.evaluate("document.querySelector('#pane').scrollHeight") > 2_000)
    left = (
        "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)"
    )
    left += "(document.querySelector('#pane'))"
    assert desk.evaluate(left) < 120
    box = desk.locator("#question").bounding_box()
    assert box["y"] + box["height"] <= 700  # where it always was
    desk.locator("#pane").hover()
    desk.mouse.wheel(0, -600)
    expect(desk.get_by_role("button", name="To the newest message")).to_be_visible()
    there = desk.evaluate("document.querySelector('#pane').scrollTop")
    before = desk.evaluate(left)
    server.until(lambda: desk.evaluate(left) > before + 200)
    assert desk.evaluate("document.querySelector('#pane').scrollTop") == there
    desk.get_by_role("button", name="To the newest message").click()
    server.until(lambda: desk.evaluate(left) < 120)
    expect(desk.get_by_role("button", name="To the newest message")).to_be_hidden()
    desk.keyboard.press("Escape")
    server.until(lambda: server.service.jobs.running == 0)


def test_regenerating_keeps_the_first_answer(page):
    asked = answers_with(page, "One.", "Two.")
    ask(page, "Count.")
    page.get_by_role("button", name="Regenerate").click()
    expect(page.locator("li.assistant .said")).to_have_text("Two.")
    figures(page)
    assert asked[0]["messages"] == asked[1]["messages"]
    page.get_by_role("button", name="Earlier version").click()
    expect(page.locator("li.assistant .said")).to_have_text("One.")
    page.reload()
    expect(page.locator("li.assistant .said")).to_have_text("One.")
    page.get_by_role("button", name="Later version").click()
    expect(page.locator("li.assistant .said")).to_have_text("Two.")


def test_an_edited_message_is_asked_anew_and_undo_brings_back_what_was(page):
    asked = answers_with(page, "One.", "Two.", "Three.")
    ask(page, "First?")
    ask(page, "Second?")
    page.get_by_role("button", name="Edit").first.click()
    page.get_by_label("Edit your message").fill("Other?")
    page.get_by_role("button", name="Ask this").click()
    expect(page.locator("#turns .said")).to_have_text(["Other?", "Three."])
    assert [message["content"] for message in asked[2]["messages"]] == ["Other?"]
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#turns .said")).to_have_text(["First?", "One.", "Second?", "Two."])
    page.get_by_role("button", name="Later version").click()
    expect(page.locator("#turns .said")).to_have_text(["Other?", "Three."])


def test_a_fork_goes_on_from_the_saved_state_beside_its_origin(desk):
    read(desk)
    ask(desk, "What did it meet?")
    desk.get_by_role("button", name="Fork").click()
    assert cached(ask(desk, "Are you sure?")) >= len(LONG)
    assert desk.locator("#turns > li").count() == 4
    expect_listed(desk, "otter.txt", "otter.txt")
    desk.locator("#conversations .open").last.click()
    expect(desk.locator("#turns > li")).to_have_count(2)
    desk.get_by_role("button", name="New chat about it").click()
    expect(desk.locator("#turns > li")).to_have_count(0)
    assert cached(ask(desk, "And where?")) >= len(LONG)


def test_a_conversation_is_renamed_deleted_and_brought_back(desk):
    answers_with(desk, "Hi.", "Hi again.")
    read(desk)
    ask(desk, "Hello")
    desk.get_by_role("button", name="Rename otter.txt").click()
    desk.get_by_label("Name of the conversation").fill("Of otters")
    desk.keyboard.press("Enter")
    expect(desk.locator("h1")).to_have_text("Of otters")
    desk.reload()
    expect_listed(desk, "Of otters")
    desk.get_by_role("button", name="Delete Of otters").click()
    expect(desk.locator("#conversations li")).to_have_count(0)
    expect(desk.locator("#turns > li")).to_have_count(0)
    assert kept(desk) == [0, 0]
    desk.get_by_role("button", name="Undo").click()
    expect(desk.locator("#turns .said")).to_have_text(["Hello", "Hi."])
    ask(desk, "Are you back?")
    desk.get_by_role("button", name="Delete Of otters").click()
    desk.reload()
    expect(desk.locator("#model")).to_contain_text("of state")
    expect_listed(desk)


def test_a_document_is_read_behind_the_system_prompt_of_its_conversation(page):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("System prompt").fill("You know about otters.")
    page.get_by_role("button", name="Save").click()
    read(page)
    assert cached(ask(page, "What did it meet?")) >= len(LONG)


def kept(page: Page) -> list[int]:
    """Conversations and documents in the browser's store."""
    return page.evaluate("""async () => {
        const store = await import("/page/store.js");
        return [(await store.all("conversations")).length, (await store.all("documents")).length];
    }""")
