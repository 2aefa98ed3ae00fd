"""The page in a real browser: how an answer is shown, copied and stopped."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("playwright")

from browsing import IN_BROWSER, answers_with, ask, asks_also, send, without_end
from playwright.sync_api import expect

pytestmark = IN_BROWSER

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
    page.clock.install()
    page.goto(server.url)
    answers_with(page, "Here:\n\n```\nx = 1\n```")
    ask(page, "Code, please.")
    # A button says "Copied" for a moment only, which a busy machine can miss.
    page.clock.pause_at(page.evaluate("Date.now()") + 1_000)
    code = page.get_by_role("button", name="Copy code")
    code.click()
    expect(code).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "x = 1"
    answer = page.get_by_role("group", name="The answer")
    answer.get_by_role("button", name="Copy").click()
    expect(answer.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "Here:\n\n```\nx = 1\n```"
    page.clock.run_for(1_500)
    expect(code).to_have_text("Copy")
    expect(answer.get_by_role("button", name="Copy")).to_be_visible()
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


@pytest.mark.parametrize("answer", ["The moon.", ""], ids=["answer", "reasoning alone"])
def test_reasoning_is_shown_folded_away_and_stays(desk, answer):
    asked = answers_with(desk, answer, "So it is.", thought="First <b>this</b>,\nthen that.")
    ask(desk, "What is round?")
    desk.reload()
    thought = desk.locator("li.assistant details.thought").first
    expect(thought.locator("div")).to_be_hidden()
    thought.get_by_text("Reasoning").click()
    expect(thought.locator("div")).to_have_text("First <b>this</b>,\nthen that.")
    expect(desk.locator("li.assistant .said").first).to_have_text(answer)
    expect(desk.get_by_text("The model said nothing.")).to_have_count(0)
    ask(desk, "Sure?")
    assert "then that" not in str(asked[1]["messages"])


def test_an_answer_that_repeats_itself_says_so_and_offers_no_more_of_it(desk):
    asks_also(desk, logit_bias={"70": 100}, temperature=0.5)
    send(desk, "Tell me.")
    for _ in range(2):
        expect(desk.get_by_text("It repeated itself, so it was ended.")).to_be_visible()
        expect(desk.get_by_role("button", name="Continue")).to_have_count(0)
        desk.reload()
