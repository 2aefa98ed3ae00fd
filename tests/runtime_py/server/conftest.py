"""Servers with tiny artifacts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tiny_artifact import tiny_artifact

pytest.importorskip("openai")
pytest.importorskip("uvicorn")

from tiny_server import Running, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="session")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("served") / "tiny", "--policy", "carry")


@pytest.fixture(scope="session")
def paper_artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_artifact(tmp_path_factory.mktemp("served-paper") / "paper")


@pytest.fixture
def server(artifact: Path) -> Iterator[Running]:
    with serving(artifact) as running:
        yield running


@pytest.fixture
def serve(artifact: Path) -> Callable[..., contextlib.AbstractContextManager[Running]]:
    """Starts servers with options of their own."""
    return lambda **options: serving(artifact, **options)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; tests that need it are skipped where none is (`browsing.IN_BROWSER`)."""
    from browsing import CHROMIUM, QUIET
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox", *QUIET, "--disable-component-update", "--disable-sync"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    """A phone's, as wide as most; nothing may go wrong on it."""
    from playwright.sync_api import expect

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
def desk(page: Page) -> Page:
    """The same page on a screen that has room for the list of conversations."""
    page.set_viewport_size({"width": 1100, "height": 700})
    return page
