"""The page's files: what they are served as, and that they ask nobody else."""

from __future__ import annotations

import re

import httpx
import pytest
from tree import ROOT

FOLDER = ROOT / "runtime_py" / "server" / "page"
FILES = sorted(FOLDER.iterdir())


def test_every_file_of_the_page_has_its_type_and_the_policy(server):
    page = httpx.get(server.url)
    script = httpx.get(f"{server.url}/page/main.js")
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert httpx.get(f"{server.url}/page/page.css").headers["content-type"].startswith("text/css")
    for name in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"):
        assert page.headers[name] == script.headers[name]
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    for name in ("page.html", "nothing.js", "%2e%2e%2fapp.py", "../app.py"):
        assert httpx.get(f"{server.url}/page/{name}").status_code == 404


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_has_one_job_and_names_no_other_server(file):
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    assert max(map(len, text.splitlines())) <= 120
    assert set(re.findall(r"\bhttps?://[\w.]+", text)) <= {"http://www.w3.org"}  # SVG's name
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b", text)
    for name in re.findall(r'from "\./(.+?)"', text):
        assert FOLDER / name in FILES
