"""The page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
LONG = "The otter swam down the river and met a heron.\n" * 60
READ = re.compile(r"^[\d,]+ tokens read$")


HALF_READ = '{"title": "", "notes": [], "tokens": 90, "cached_tokens": 0}\n{"read": 40}\n'

HOSTILE = (
    "<script>window.strangers = 1</script>",
    '<img src=x onerror="window.strangers = 1">',
    "<svg onload=alert(1)>",
    "[run](javascript:window.strangers=1)",
    "[run](data:text/html,x)",
    "<b>bold</b>",
)
MARKDOWN = """# Otters

They **swim** *well* at the `river_bank` and in snake_case_names.
See [a page](https://example.org/otter_(animal)) or https://example.org/x.

- one
- two
  - deeper
    and on

1. first
2. second

> A quote

| what | many |
| --- | ---: |
| otters | 12 |

```python
if a < b:
    print('<i>hi</i>')
```

![a picture](https://example.org/picture.png)

""" + "\n\n".join(HOSTILE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    options = ["--no-sandbox", *QUIET, "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def page(browser, server) -> Iterator[Page]:
    """A phone's, as wide as most; nothing may go wrong on it."""
    context = browser.new_context(viewport={"width": 390, "height": 740})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: said.type == "error" and problems.append(said.text))
    page.goto(server.url)
    expect(page.locator("#model")).to_contain_text("of state")
    yield page
    context.close()
    assert not problems


@pytest.fixture
def desk(page) -> Page:
    """The same page on a screen that has room for the list of conversations."""
    page.set_viewport_size({"width": 1100, "height": 700})
    return page


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


def answers_with(page: Page, *answers: str) -> list[dict[str, Any]]:
    """Puts words into the model's mouth, one answer a request; returns what is asked."""
    asked: list[dict[str, Any]] = []
    waiting = list(answers)

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        said = waiting.pop(0)
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        usage |= {"prompt_tokens_details": {"cached_tokens": 4}}
        parts = [
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

    def endless(route: Route) -> None:
        asked = route.request.post_data_json | {"max_tokens": 1_000_000}
        route.continue_(post_data=json.dumps(asked | {"logit_bias": {"1": -100}}))

    page.route("**/v1/chat/completions", endless)


def expect_listed(page: Page, *titles: str) -> None:
    """The list of conversations, in alphabetical order."""
    expect(page.locator("#conversations .open")).to_have_count(len(titles))
    assert sorted(page.locator("#conversations .open").all_inner_texts()) == list(titles)


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


def test_markdown_becomes_elements_and_html_stays_text(desk):
    answers_with(desk, MARKDOWN)
    ask(desk, "Show me <b>everything</b>.")
    said = desk.locator("li.assistant .said")
    for selector, text in {
        "h4": "Otters",
        "strong": "swim",
        "em": "well",
        "p code": "river_bank",
        "ul > li:nth-child(2) li": re.compile("^deeper"),
        "ol > li:nth-child(1)": "first",
        "blockquote": "A quote",
        "td:nth-child(2)": "12",
        "pre code": "if a < b:\n    print('<i>hi</i>')",
        ".code-head span": "python",
        "a": "a page",
    }.items():
        expect(said.locator(selector).first).to_have_text(text)
    assert [link.get_attribute("href") for link in said.locator("a").all()] == [
        "https://example.org/otter_(animal)",
        "https://example.org/x",
        "https://example.org/picture.png",
    ]
    assert said.locator("a").first.get_attribute("rel") == "noopener noreferrer nofollow"
    for hostile in HOSTILE:
        expect(said).to_contain_text(hostile)
    assert said.locator("script, img, iframe, svg, b, style").count() == 0
    assert said.locator("*").evaluate_all(
        "all => all.every(one => one.getAttributeNames().every(name => !name.startsWith('on')))"
    )
    assert desk.evaluate("window.strangers") is None
    expect(desk.locator("li.user .said")).to_have_text("Show me <b>everything</b>.")


def test_markdown_takes_time_in_proportion_to_its_length(page):
    took = page.evaluate("""async () => {
        const { draw } = await import("/page/markdown.js");
        const began = performance.now();
        for (const sign of ["*", "_", "`", "[", "![", "> ", "- ", "|", "~~", "\\\\", "**a "]) {
            draw(document.createElement("div"), sign.repeat(10000));
        }
        return performance.now() - began;
    }""")
    assert took < 5_000


def test_answers_and_code_are_copied(browser, server):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(server.url)
    answers_with(page, "Here:\n\n```\nx = 1\n```")
    ask(page, "Code, please.")
    page.get_by_role("button", name="Copy code").click()
    expect(page.get_by_role("button", name="Copy code")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "x = 1"
    page.get_by_role("group", name="The answer").get_by_role("button", name="Copy").click()
    expect(page.get_by_text("Copied")).to_have_count(2)
    assert page.evaluate("navigator.clipboard.readText()") == "Here:\n\n```\nx = 1\n```"
    context.close()


def test_an_answer_is_stopped_continued_and_kept(page, server):
    without_end(page)
    send(page, "Go on and on.")
    expect(page.locator("li.assistant .said")).not_to_be_empty()
    page.get_by_role("button", name="Stop").click()
    server.until(lambda: server.service.jobs.running == 0)
    expect(page.get_by_text("Stopped.").filter(visible=True).last).to_be_visible()
    page.unroute("**/v1/chat/completions")
    page.reload()
    said = page.locator("li.assistant .said").inner_text()
    assert said
    asked = answers_with(page, " and an end.")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("li.assistant .said")).to_contain_text("and an end.")
    assert [message["role"] for message in asked[0]["messages"]] == ["user", "assistant"]


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


def kept(page: Page) -> list[int]:
    """Conversations and documents in the browser's store."""
    return page.evaluate("""async () => {
        const store = await import("/page/store.js");
        return [(await store.all("conversations")).length, (await store.all("documents")).length];
    }""")


def test_settings_reach_the_request_and_empty_ones_are_the_servers(page, server):
    asked = answers_with(page, "One.", "Two.")
    ask(page, "Hello")
    assert set(asked[0]) == {"messages", "stream", "stream_options", "return_progress"}
    page.get_by_role("button", name="Settings").click()
    temperature = page.get_by_label("Temperature")
    default = server.client().models.list().data[0].edgeinfinite["defaults"]["temperature"]
    assert temperature.get_attribute("placeholder") == f"{default:g}, the server's own"
    temperature.fill("0")
    page.get_by_label("Top-p").fill("0.25")
    page.get_by_label("Most tokens of an answer").fill("7")
    page.get_by_label("Stop sequences").fill("END\n\\n\\n")
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Save").click()
    ask(page, "Again")
    assert asked[1] | {"messages": None} == asked[0] | {
        "messages": None,
        **{"temperature": 0, "top_p": 0.25, "max_tokens": 7, "stop": ["END", "\n\n"]},
    }
    assert asked[1]["messages"][0] == {"role": "system", "content": "Be brief."}
    page.unroute("**/v1/chat/completions")
    page.reload()
    page.get_by_role("button", name="Settings").click()
    expect(page.get_by_label("Stop sequences")).to_have_value("END\n\\n\\n")
    temperature.fill("3")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_be_visible()  # the field says what is wrong
    temperature.fill("0.5")
    page.get_by_role("button", name="Save").click()
    ask(page, "The server takes them")


def test_a_document_is_read_behind_the_system_prompt_of_its_conversation(page):
    page.get_by_role("button", name="Settings").click()
    page.get_by_label("System prompt").fill("You know about otters.")
    page.get_by_role("button", name="Save").click()
    read(page)
    assert cached(ask(page, "What did it meet?")) >= len(LONG)


def test_nothing_is_wider_than_a_phone_and_everything_has_a_name(page):
    answers_with(page, "| a | b |\n|-|-|\n| " + "x" * 300 + " | y |\n\n```\n" + "z" * 300 + "\n```")
    read(page, name="a-very-long-name-" * 10 + ".txt")
    ask(page, "x" * 300)
    page.get_by_role("button", name="Conversations").click()
    expect(page.locator("#sidebar")).to_be_visible()
    assert named_and_narrow(page)
    page.keyboard.press("Escape")
    expect(page.locator("#sidebar")).to_be_hidden()
    page.get_by_role("button", name="Settings").click()
    assert named_and_narrow(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Edit").click()
    assert named_and_narrow(page)


def named_and_narrow(page: Page) -> bool:
    for control in page.locator(
        "button:visible, textarea:visible, input:visible:not([type=file])"
    ).all():
        name = control.evaluate(
            "e => e.ariaLabel || e.innerText || [...(e.labels ?? [])].map(l => l.innerText).join()"
        )
        assert name, control.evaluate("e => e.outerHTML")
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_keyboard_alone_is_enough(desk):
    asked = answers_with(desk, "One.", "Two.", "Three.")
    expect(desk.locator("#question")).to_be_focused()
    desk.keyboard.type("First")
    desk.keyboard.press("Shift+Enter")
    desk.keyboard.type("line?")
    desk.keyboard.press("Enter")
    figures(desk)
    expect(desk.locator("#live")).to_have_text("The answer: One.")
    desk.keyboard.press("ArrowUp")
    expect(desk.get_by_label("Edit your message")).to_be_focused()
    desk.keyboard.type(" Edited")
    desk.keyboard.press("Enter")
    figures(desk)
    assert [one["messages"][0]["content"] for one in asked] == [
        "First\nline?",
        "First\nline? Edited",
    ]
    desk.keyboard.press("Control+Shift+O")
    expect(desk.locator("#turns > li")).to_have_count(0)
    expect(desk.locator("#question")).to_be_focused()
    desk.keyboard.press("Shift+Tab")
    desk.keyboard.press("Shift+Tab")
    assert desk.evaluate("document.activeElement.tagName") in ("BUTTON", "A")


def test_problems_are_said_in_words_and_can_be_tried_again(page):
    body = '{"error": {"message": "It is encrypted."}}'
    page.route("**/documents*", lambda route: route.fulfill(status=200, body=body))
    drop(page, "x", "x.pdf")
    expect(page.locator("#document .bad")).to_have_text("It is encrypted.")
    page.unroute("**/documents*")
    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("button", name="New chat", exact=True).click()
    page.route(
        "**/v1/chat/completions",
        lambda route: route.fulfill(
            status=200, body='data: {"error": {"message": "The text is too long."}}'
        ),
    )
    send(page, "Hello")
    problem = page.locator("#turns .bad")
    expect(problem).to_contain_text("The text is too long.")
    page.unroute("**/v1/chat/completions")
    page.get_by_role("button", name="Try again").click()
    figures(page)
    expect(problem).to_have_count(0)


def test_a_server_that_is_gone_is_said_and_found_again(browser, serve):
    page = browser.new_page()
    with serve() as server:
        page.goto(server.url)
        ask(page, "Hello")
        port = server.port
    send(page, "Are you there?")
    expect(page.locator("#problem")).to_contain_text("can't be reached")
    expect(page.locator("#turns .bad")).to_contain_text("can't be reached")
    assert page.locator("li.user").last.inner_text().startswith("You\nAre you there?")
    with serve(port=port):
        expect(page.locator("#problem")).to_be_hidden(timeout=15_000)
        page.get_by_role("button", name="Try again").click()
        figures(page)
    page.close()


def test_a_browser_that_keeps_nothing_says_so_and_still_asks(browser, server):
    page = browser.new_page()
    page.add_init_script("indexedDB.open = () => { throw new Error('private'); }")
    page.goto(server.url)
    ask(page, "Hello")
    expect(page.locator("#kept")).to_contain_text("keeps no data")
    page.close()


def test_a_key_is_asked_for_and_kept_for_the_tab_only(browser, serve):
    with serve(api_key="secret") as server:
        page = browser.new_page()
        page.goto(server.url)
        page.get_by_label("This server asks for a key").fill("wrong")
        page.get_by_role("button", name="Use key").click()
        expect(page.locator("#problem")).to_contain_text("missing or wrong")
        page.get_by_label("This server asks for a key").fill("secret")
        page.get_by_role("button", name="Use key").click()
        expect(page.locator("#model")).to_contain_text("of state")
        ask(page, "Hello")
        assert page.evaluate("localStorage.length") == 0
        kept = page.evaluate("""async () => {
            const store = await import("/page/store.js");
            return JSON.stringify([await store.all("conversations"), await store.all("settings")]);
        }""")
        assert "Hello" in kept and "secret" not in kept
        page.close()


def test_the_page_runs_its_own_script_only(browser, server):
    asked: list[str] = []
    page = browser.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(server.url)
    expect(page.locator("#model")).to_contain_text("of state")
    assert page.evaluate("""() => {
        const script = document.createElement("script");
        const refused = [];
        for (const act of [
            () => { script.textContent = "window.strangers = 1"; },
            () => { document.body.innerHTML += "<img src=x onerror='window.strangers = 1'>"; },
        ]) {
            try { act(); refused.push(false); } catch { refused.push(true); }
        }
        document.body.append(script);
        return refused;
    }""") == [True, True]
    assert page.evaluate("window.strangers") is None
    assert all(url.startswith(server.url) for url in asked)
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser, server, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto(server.url)
    answers_with(page, "See `code`, [a page](https://example.org).\n\n```\nx\n```")
    ask(page, "Hello")
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
        const behind = (e) => {
            const color = getComputedStyle(e).backgroundColor;
            return /, 0\\)$/.test(color) ? behind(e.parentElement) : color;
        };
        const all = [...document.querySelectorAll("body *")].filter((e) =>
            e.checkVisibility() && !e.disabled
            && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()));
        return { light: light(getComputedStyle(document.body).backgroundColor),
                 low: all.filter((e) => ratio(getComputedStyle(e).color, behind(e)) < 4.5)
                     .map((e) => e.outerHTML), all: all.length };
    }""")
    assert contrast["low"] == []  # WCAG 2.2, AA
    assert contrast["all"] > 20
    assert (contrast["light"] < 0.1) == (scheme == "dark")
    page.close()
