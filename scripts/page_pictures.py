"""Takes docs/page.png and docs/page-reading.png: the server's page with a real model.

    edgeinfinite serve build/demo --port 8391    # fresh, so that it has read nothing yet
    python scripts/page_pictures.py http://127.0.0.1:8391

The pictures are kept only if the model's answers are what the document says.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "examples" / "house_book.txt"
QUESTIONS = {
    "What is the password of the Wi-Fi?": "marigold77",
    "What is the name of the doctor in the village?": "Dr. Okafor",
}
"""Of a conversation each, and what the answer must have in it: the book's first page has it."""

LARGEST = 150_000  # bytes of a picture
HOURS = 3_600_000  # milliseconds; reading takes a minute


def main(url: str) -> int:
    """Returns 1 if an answer is wrong or a picture is too large."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        reading = _picture_of_reading(browser, url)
        answers, answered = _picture_of_answer(browser, url)
        browser.close()
    print(*answers, f"{len(reading)} and {len(answered)} bytes", sep="\n")
    rights = QUESTIONS.values()
    is_right = all(right in answer for right, answer in zip(rights, answers, strict=True))
    if not is_right or max(len(reading), len(answered)) > LARGEST:
        return 1
    (ROOT / "docs" / "page-reading.png").write_bytes(reading)
    (ROOT / "docs" / "page.png").write_bytes(answered)
    return 0


def _open(browser: Browser, url: str, width: int, height: int) -> Page:
    page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=1.75)
    page.set_default_timeout(HOURS)
    page.goto(url)
    page.locator("#file").set_input_files(DOCUMENT)
    return page


def _picture_of_reading(browser: Browser, url: str) -> bytes:
    """On a phone, a quarter into the document."""
    page = _open(browser, url, 390, 560)
    page.wait_for_selector("#progress")
    while page.locator("#progress").evaluate("bar => bar.value / bar.max") < 0.25:
        page.wait_for_timeout(200)
    picture = page.screenshot()
    expect(page.locator("#reading")).to_have_text(
        re.compile("^[0-9,]+ tokens read$"), timeout=HOURS
    )
    page.close()
    return picture


def _picture_of_answer(browser: Browser, url: str) -> tuple[list[str], bytes]:
    """On a desk, with a second conversation about the same document."""
    page = _open(browser, url, 900, 560)
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("Temperature").fill("0")
    page.get_by_role("button", name="Save").click()
    wifi, doctor = QUESTIONS
    answers = [_ask(page, wifi)]
    page.get_by_role("button", name="New chat about it").click()
    page.get_by_role("button", name="Rename").first.click()
    page.get_by_label("Name of the conversation").fill("The doctor in the village")
    page.keyboard.press("Enter")
    answers.append(_ask(page, doctor))
    page.mouse.click(600, 500)
    picture = page.screenshot()
    page.close()
    return answers, picture


def _ask(page: Page, question: str) -> str:
    ask = page.get_by_role("button", name="Ask", exact=True)
    expect(ask).to_be_enabled(timeout=HOURS)
    page.locator("#question").fill(question)
    ask.click()
    expect(page.locator(".figures").last).to_contain_text("first token", timeout=HOURS)
    return page.locator("li.assistant .said").last.inner_text()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
