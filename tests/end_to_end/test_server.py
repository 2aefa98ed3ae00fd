"""`edgeinfinite serve` with SmolLM2-135M-Instruct: a long document, through API and page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("openai")
pytest.importorskip("uvicorn")

from tiny_server import Running, serving

pytestmark = pytest.mark.slow

TEXT = Path(__file__).parents[2] / "examples" / "dogs.txt"
DEEP_CHAT = "deep-chat@2.4.2"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@dataclass(frozen=True)
class Site:
    """Somebody's static site."""

    folder: Path
    url: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as files:
        threading.Thread(target=files.serve_forever, daemon=True).start()
        yield Site(folder, f"http://127.0.0.1:{files.server_port}")
        files.shutdown()


@pytest.fixture(scope="module")
def server(shipped: Path, site: Site) -> Iterator[Running]:
    """Of the shipped defaults; the site's pages may ask."""
    with serving(shipped, allow_origin=(site.url,)) as running:
        yield running


def test_the_second_question_about_a_long_document_waits_for_its_own_tokens_only(server):
    document = TEXT.read_text(encoding="utf-8")[:30_000]  # three times the state's tokens
    question = "What animal is this text about? Answer in one sentence."
    messages: list = [{"role": "user", "content": f"{document}\n\n{question}"}]

    def ask():
        return (
            server.client()
            .with_options(timeout=600)
            .chat.completions.create(
                model="artifact", messages=messages, temperature=0, max_tokens=24
            )
        )

    first = ask()
    assert first.usage.prompt_tokens > 6_000
    assert "dog" in first.choices[0].message.content.lower()
    messages += [first.choices[0].message.model_dump(), {"role": "user", "content": "Thank you."}]
    second = ask()
    assert second.usage.prompt_tokens - second.usage.prompt_tokens_details.cached_tokens < 64


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_the_page_reads_a_document_answers_and_forks(server):
    playwright = pytest.importorskip("playwright.sync_api")
    expect = playwright.expect
    text = TEXT.read_text(encoding="utf-8")[:12_000]
    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        page = driver.chromium.launch(executable_path=CHROMIUM, args=options).new_page()
        page.goto(server.url)
        file = {"name": "dogs.txt", "mimeType": "text/plain", "buffer": text.encode()}
        page.locator("#file").set_input_files(file)
        expect(page.locator("#reading")).to_contain_text(
            re.compile(r"^[\d,]+ tokens read"), timeout=300_000
        )
        for question in ("What is this text about?", "Say it in other words."):
            page.locator("#question").fill(question)
            page.get_by_role("button", name="Ask", exact=True).click()
            last = page.locator("#turns > li").last.locator(".figures")
            expect(last).to_contain_text("first token after", timeout=300_000)
        said = page.locator("li.assistant .said").first.inner_text()  # sampled: no word is sure
        assert len(said.strip()) > 20
        cached, new = (
            int(n.replace(",", ""))
            for n in re.match(
                r"([\d,]+) tokens? from a saved state, ([\d,]+)", last.inner_text()
            ).groups()
        )
        assert cached > 2_000 and new < 400
        page.get_by_role("button", name="Fork").first.click()
        expect(page.locator("#turns > li")).to_have_count(2)
        page.go_back()
        expect(page.locator("#turns > li")).to_have_count(4)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
@pytest.mark.skipif(shutil.which("npm") is None, reason="no npm is installed")
def test_a_chat_page_that_others_wrote_talks_to_the_server_unchanged(server, site):
    """deep-chat from npm, as it is, asked for a service of OpenAI's form at this address."""
    playwright = pytest.importorskip("playwright.sync_api")
    package = subprocess.run(
        ["npm", "pack", "--silent", DEEP_CHAT],
        cwd=site.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if package.returncode:
        pytest.skip(f"{DEEP_CHAT} can't be fetched: {package.stderr[-200:]}")
    shutil.unpack_archive(site.folder / package.stdout.strip(), site.folder)
    service = {"deepSeek": {"key": "none", "model": "artifact", "temperature": 0, "max_tokens": 16}}
    address = {"url": f"{server.url}/v1/chat/completions", "stream": True}
    (site.folder / "index.html").write_text(
        '<!doctype html><script type="module" src="package/dist/deepChat.bundle.js"></script>'
        f"<deep-chat directConnection='{json.dumps(service)}' connect='{json.dumps(address)}'>"
        "</deep-chat>",
        encoding="utf-8",
    )
    asked: list = []
    expected = []
    for question in ("What is the capital of France?", "And of Italy?"):
        asked.append({"role": "user", "content": question})
        answer = server.client().chat.completions.create(
            model="artifact", messages=asked, temperature=0, max_tokens=16
        )
        asked.append({"role": "assistant", "content": answer.choices[0].message.content})
        expected += [message["content"].strip() for message in asked[-2:]]

    with playwright.sync_playwright() as driver:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        page = browser.new_page()
        page.goto(site.url)
        for count, message in ((2, expected[0]), (4, expected[2])):
            page.locator("#text-input").click()
            page.keyboard.type(message)
            page.keyboard.press("Enter")
            playwright.expect(page.locator(".message-bubble").nth(count - 1)).to_have_text(
                expected[count - 1], timeout=60_000
            )
        browser.close()
