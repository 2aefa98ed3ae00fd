"""What the page's tests in a real browser share: where Chromium is, and what a hand does."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Page, Route, expect

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
IN_BROWSER = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
LONG = "The otter swam down the river and met a heron.\n" * 60
READ = re.compile(r"^[\d,]+ tokens read$")


def send(page: Page, question: str) -> None:
    page.get_by_label("Your message", exact=True).and_(page.locator("textarea")).fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()


def ask(page: Page, question: str) -> str:
    """Asks, waits for the end of the answer, and returns its line of figures."""
    send(page, question)
    return figures(page)


def figures(page: Page) -> str:
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled(timeout=30_000)
    last = page.locator("#turns > li").last.locator(".figures")
    expect(last).to_contain_text("first token after")
    return last.inner_text()


def drop(page: Page, text: str = LONG, name: str = "otter.txt") -> None:
    """Lets a file fall on the page, as a hand does."""
    page.evaluate(
        """([text, name]) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([text], name, { type: "text/plain" }));
            for (const kind of ["dragover", "drop"]) {
                document.body.dispatchEvent(
                    new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
            }
        }""",
        [text, name],
    )


def read(page: Page, text: str = LONG, name: str = "otter.txt") -> None:
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    )
    expect(page.locator("#reading")).to_contain_text(READ)


def cached(figures: str) -> int:
    found = re.match(r"([\d,]+) tokens? from a saved state", figures)
    assert found, figures
    return int(found[1].replace(",", ""))


def answers_with(page: Page, *answers: str, thought: str = "") -> list[dict[str, Any]]:
    """Puts words into the model's mouth, one answer a request; returns what is asked.

    Each answer comes after the reasoning `thought`.
    """
    asked: list[dict[str, Any]] = []
    waiting = list(answers)

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        said = waiting.pop(0)
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        usage |= {"prompt_tokens_details": {"cached_tokens": 4}}
        reasoned = [{"delta": {"reasoning_content": thought}, "finish_reason": None}]
        parts = [
            *([{"choices": reasoned}] if thought else []),
            {"choices": [{"delta": {"content": said}, "finish_reason": None}]},
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": usage},
        ]
        lines = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
        route.fulfill(status=200, content_type="text/event-stream", body=lines + "data: [DONE]\n")

    page.route("**/v1/chat/completions", answer)
    return asked


def without_end(page: Page) -> None:
    """Answers of the real server that nothing but a stop ends."""
    asks_also(page, max_tokens=1_000_000, logit_bias={"1": -100}, repetition_detection={})


def asks_also(page: Page, **fields: Any) -> None:
    """The page's requests to the real server say more than the page lets them."""

    def more(route: Route) -> None:
        route.continue_(post_data=json.dumps(route.request.post_data_json | fields))

    page.route("**/v1/chat/completions", more)


def expect_listed(page: Page, *titles: str) -> None:
    """The list of conversations, in alphabetical order."""
    expect(page.locator("#conversations .open")).to_have_count(len(titles))
    assert sorted(page.locator("#conversations .open").all_inner_texts()) == list(titles)
