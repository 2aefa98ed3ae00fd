"""`edgeinfinite serve` with SmolLM2-135M-Instruct: a long document, through API and page."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openai")
pytest.importorskip("uvicorn")

from tiny_server import Running, serving

from edgeinfinite.export.exporter import ExportOptions, export_artifact

pytestmark = pytest.mark.slow

TEXT = Path(__file__).parents[2] / "examples" / "dogs.txt"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Every default, int4."""
    output = tmp_path_factory.mktemp("real") / "artifact"
    with serving(
        export_artifact(ExportOptions("smollm2-135m-instruct", output, quantize="int4"))
    ) as running:
        yield running


def test_the_second_question_about_a_long_document_waits_for_its_own_tokens_only(server):
    document = TEXT.read_text(encoding="utf-8")[:30_000]  # three times the state's tokens
    messages: list = [{"role": "user", "content": f"{document}\n\nWhat is this about?"}]

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
def test_the_page_reads_a_document_answers_forks_and_undoes(server):
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
            page.get_by_label("Your message").fill(question)
            page.get_by_role("button", name="Ask", exact=True).click()
            expect(page.locator("#figures")).to_contain_text("first token after", timeout=300_000)
        assert "dog" in page.locator("#turns li.assistant").first.inner_text().lower()
        figures = page.locator("#figures").inner_text()
        cached, new = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) token", figures)[:2])
        assert cached > 2_000 and new < 400
        page.get_by_role("button", name="Fork").click()
        page.get_by_role("button", name="Undo").click()
        assert page.locator("#turns li").count() == 2
        page.get_by_role("button", name="Conversation 1").click()
        assert page.locator("#turns li").count() == 4
