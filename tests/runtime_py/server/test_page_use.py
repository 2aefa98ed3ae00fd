"""The page in a real browser: settings, keys, screens, problems, and what it may do."""

from __future__ import annotations

import pytest

pytest.importorskip("playwright")

from browsing import IN_BROWSER, answers_with, ask, drop, figures, read, send
from playwright.sync_api import Page, expect

pytestmark = IN_BROWSER


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
