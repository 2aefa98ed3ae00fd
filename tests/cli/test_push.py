"""`edgeinfinite push`: what an upload sends, to a server on the loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tiny_hub import TOKEN, TinyHub

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.cli import main


@pytest.fixture
def hub() -> Iterator[TinyHub]:
    server = TinyHub()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def push(folder: Path, hub: str, *more: str, token: str = TOKEN) -> subprocess.CompletedProcess:
    """In a process of its own: huggingface_hub reads these variables when it is imported."""
    own = {"HF_ENDPOINT": hub, "HF_TOKEN": token, "HF_HOME": "/nowhere"}
    own |= {"HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
    return subprocess.run(
        [sys.executable, "-m", "edgeinfinite.cli", "push", str(folder), "--repo", *more],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_pushed_is_the_artifact_and_nothing_else(
    artifact: Path, hub: TinyHub, tmp_path: Path
) -> None:
    folder = tmp_path / "artifact"
    shutil.copytree(artifact, folder)
    (folder / "card").mkdir()
    (folder / "card/loss.png").write_bytes(b"a picture")
    (folder / "diary.session").write_bytes(b"what was read")
    done = push(folder, hub.url, "org/tiny", "--private", "--revision", "int4")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"{hub.url}/org/tiny/commit/{'1' * 40}\n"
    assert hub.private == {"org/tiny": True} and hub.revisions == ["int4"]
    files = hub.files["org/tiny"]
    assert "diary.session" not in files and files["card/loss.png"] == b"a picture"
    pulled = tmp_path / "pulled"
    for name, contents in files.items():
        (pulled / name).parent.mkdir(parents=True, exist_ok=True)
        (pulled / name).write_bytes(contents)
    assert load_manifest(pulled) == load_manifest(artifact)  # compares every file's sha256
    assert (pulled / "README.md").read_bytes() == (artifact / "README.md").read_bytes()


def test_a_refusal_says_what_to_do(artifact: Path, hub: TinyHub) -> None:
    done = push(artifact, hub.url, "org/tiny", token="hf_of_somebody_else")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "refuses org/tiny (401): Invalid username or password." in done.stderr
    assert "log in with `hf auth login`" in done.stderr
    assert hub.files == {}


def test_a_damaged_artifact_and_a_wrong_name_are_not_sent(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "artifact"
    shutil.copytree(artifact, folder)
    assert main(["push", str(folder), "--repo", "too/many/parts"]) == 2
    assert "--repo 'too/many/parts'" in capsys.readouterr().err
    (folder / "weights.data").write_bytes(b"")
    assert main(["push", str(folder), "--repo", "org/tiny"]) == 2
    assert "weights.data has 0 bytes" in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_line(artifact: Path) -> None:
    done = push(artifact, "http://127.0.0.1:9", "org/tiny")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "http://127.0.0.1:9 can't be reached" in done.stderr


class _Strange(BaseHTTPRequestHandler):
    """Redirects in a loop, or answers with what no hub says."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.server.kind  # type: ignore[attr-defined]
        self.send_response(307 if kind == "loop" else 200)
        if kind == "loop":
            self.send_header("Location", self.path)
        body = {"loop": b"", "junk": b"<html>"}[kind]
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("kind", ["loop", "junk"])
def test_a_server_that_is_no_hub_is_one_line(artifact: Path, kind: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Strange) as server:
        server.kind = kind  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = push(artifact, f"http://127.0.0.1:{server.server_port}", "org/tiny")
        server.shutdown()
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
