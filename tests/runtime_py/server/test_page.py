"""The page in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
LONG = "The otter swam down the river and met a heron.\n" * 60


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    options = ["--no-sandbox", *QUIET, "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 360, "height": 740})  # a phone's
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))
    page.goto(server.url)
    yield page
    page.close()
    assert not problems


def ask(page: Page, question: str) -> str:
    """Asks, waits for the end of the answer, and returns the line of figures."""
    page.get_by_label("Your message").fill(question)
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#figures")).to_contain_text("first token after", timeout=30_000)
    return page.locator("#figures").inner_text()


def read(page: Page, text: str = LONG, name: str = "otter.txt") -> None:
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    )
    expect(page.locator("#reading")).to_contain_text(re.compile(r"^[\d,]+ tokens read"))


def cached(figures: str) -> int:
    found = re.match(r"([\d,]+) tokens? from a saved state", figures)
    assert found, figures
    return int(found[1].replace(",", ""))


def test_a_document_is_read_before_the_question_and_not_again(page):
    expect(page.locator("#model")).to_contain_text("of state")
    read(page)
    expect(page.locator("#title")).to_have_text("otter.txt")
    assert page.locator("#segments i.read").count() == page.locator("#segments i").count() > 10
    assert cached(ask(page, "What did it meet?")) >= len(LONG)
    assert page.locator("#turns li").count() == 2


def test_undo_and_fork_go_on_from_saved_states(page):
    read(page)
    ask(page, "What did it meet?")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_label("Your message")).to_have_value("What did it meet?")
    assert page.locator("#turns li").count() == 0
    ask(page, "Where did it swim?")
    page.get_by_role("button", name="Fork").click()
    assert cached(ask(page, "Are you sure?")) >= len(LONG)
    assert page.locator("#turns li").count() == 4
    page.get_by_role("button", name="Conversation 1").click()
    assert page.locator("#turns li").count() == 2
    assert cached(ask(page, "And then?")) >= len(LONG)


def test_nothing_is_wider_than_a_phone_and_everything_has_a_name(page):
    read(page, name="a-very-long-name-" * 10 + ".txt")
    ask(page, "x" * 300)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for control in page.locator("button:visible, textarea:visible, progress").all():
        name = control.evaluate(
            "e => e.innerText || [...(e.labels ?? [])].map(l => l.innerText).join()"
            " || e.getAttribute('aria-labelledby')"
        )
        assert name


def test_an_answer_can_be_stopped_and_problems_are_shown(page, server):
    page.route(
        "**/v1/chat/completions",
        lambda route: route.continue_(
            post_data=route.request.post_data.replace(
                '"stream":true', '"stream":true,"max_tokens":1000000,"logit_bias":{"1":-100}'
            )
        ),
    )
    page.get_by_label("Your message").fill("Go on and on.")
    page.get_by_role("button", name="Ask", exact=True).click()
    expect(page.locator("#turns li.assistant .said")).not_to_have_text("…")
    page.get_by_role("button", name="Stop").dispatch_event("click")  # the answer moves it
    server.until(lambda: server.service.jobs.running == 0)
    expect(page.get_by_role("button", name="Ask", exact=True)).to_be_enabled()
    page.unroute("**/v1/chat/completions")
    page.route(
        "**/documents*",
        lambda route: route.fulfill(status=200, body='{"error": {"message": "It is encrypted."}}'),
    )
    page.locator("#file").set_input_files(
        {"name": "x.pdf", "mimeType": "application/pdf", "buffer": b"x"}
    )
    expect(page.get_by_role("alert")).to_have_text("It is encrypted.")


def test_a_key_is_asked_for_and_kept_for_the_tab_only(browser, serve):
    with serve(api_key="secret") as server:
        page = browser.new_page()
        page.goto(server.url)
        page.get_by_label("This server asks for a key").fill("wrong")
        page.get_by_role("button", name="Use key").click()
        expect(page.get_by_role("alert")).to_contain_text("missing or wrong")
        page.get_by_label("This server asks for a key").fill("secret")
        page.get_by_role("button", name="Use key").click()
        expect(page.locator("#model")).to_contain_text("of state")
        ask(page, "Hello")
        assert page.evaluate("localStorage.length") == 0
        page.close()


def test_the_page_runs_its_own_script_only(browser, server):
    page = browser.new_page()
    page.goto(server.url)
    page.evaluate("""() => {
        const script = document.createElement("script");
        script.textContent = "window.strangers = 1";
        document.body.append(script);
    }""")
    assert page.evaluate("window.strangers") is None
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, server, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto(server.url)
    contrast = page.evaluate("""() => {
        const light = (css) => {
            const [r, g, b] = css.match(/[\\d.]+/g).map(Number).map((v) => {
                v /= 255;
                return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const ratio = (a, b) => {
            const [x, y] = [light(a), light(b)].sort((m, n) => n - m);
            return (x + 0.05) / (y + 0.05);
        };
        const style = (q) => getComputedStyle(document.querySelector(q));
        const ground = style("body").backgroundColor;
        const send = style("#send");
        return [ratio(style("body").color, ground), ratio(style("#model").color, ground),
                ratio(send.color, send.backgroundColor)];
    }""")
    assert min(contrast) >= 4.5  # WCAG 2.2, AA
    page.close()
