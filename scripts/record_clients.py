"""Runs clients that nobody here wrote against `edgeinfinite serve`, and records what they send.

    python scripts/record_clients.py ARTIFACT --environments FOLDER --json clients.json

FOLDER has an environment for each group of `PROGRAMS`, made by hand (`python -m venv`, `pip
install`; `npm install` for node): a program runs in the first one that has its package. The
artifact's folder is to be called `tiny`. A recorder stands between client and server; it passes
bytes on and notes each request, its status, and the line of a refusal.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PROGRAMS = {
    "openai": "use_openai.py",
    "anthropic": "use_anthropic.py",
    "langchain_openai": "use_langchain.py",
    "llama_index.llms.openai_like": "use_llama_index.py",
    "litellm": "use_litellm.py",
    "instructor": "use_instructor.py",
    "pydantic_ai": "use_pydantic_ai.py",
    "agents": "use_agents.py",
    "llm": "use_llm.py",
    "aider": "use_aider.py",
}
"""What a program in scripts/clients imports."""

_CLIENTS = Path(__file__).with_name("clients")
_LONGEST_STRING = 60
"""Of what is recorded: clients' own instructions are theirs."""
_TOLD = "description"
"""What a client's tools say of themselves, of any length."""
_HOPS = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}


class Recorder(ThreadingHTTPServer):
    """Passes requests on to `port`; `rows` has one for each, with the task it belongs to."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port = port
        self.task: dict[str, str] = {}
        self.rows: list[dict[str, Any]] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/recorder":
            self.server.task = dict(urllib.parse.parse_qsl(url.query))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def do_HEAD(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        row = self.server.task | {"route": f"{self.command} {self.path}", "body": _shown(body)}
        self.server.rows.append(row)
        headers = {name: one for name, one in self.headers.items() if name.lower() not in _HOPS}
        server = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        server.request(self.command, self.path, body, headers)
        answer = server.getresponse()
        row["status"] = answer.status
        self.send_response(answer.status)
        for name, one in answer.getheaders():
            if name.lower() not in _HOPS:
                self.send_header(name, one)
        self.send_header("Connection", "close")
        self.end_headers()
        said = b""
        while part := answer.read1(65536):
            said += part
            self.wfile.write(part)
        self.close_connection = True
        if answer.status != 200 and said:
            row["refused"] = json.loads(said)["error"]["message"]

    def log_message(self, *_: object) -> None:
        """Nothing."""


def _shown(body: bytes) -> Any:
    """The body with the length of its long strings, and of descriptions, in their places."""

    def cut(value: Any, longest: int = _LONGEST_STRING) -> Any:
        if isinstance(value, str) and len(value) > longest:
            return f"{len(value)} characters"
        if isinstance(value, list):
            return [cut(one) for one in value]
        if isinstance(value, dict):
            return {
                name: cut(one, 0 if name == _TOLD else _LONGEST_STRING)
                for name, one in value.items()
            }
        return value

    return cut(json.loads(body)) if body else None


@contextmanager
def served(artifact: Path, environment: dict[str, str] | None = None) -> Iterator[int]:
    """A server for the artifact; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "edgeinfinite", "serve", str(artifact), "--port", str(port)]
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            with suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health")
                break
            time.sleep(0.2)
        yield port
        if process.poll() is not None:
            raise SystemExit("the server has died")
    finally:
        process.terminate()
        process.wait()


@contextmanager
def recorded(artifact: Path) -> Iterator[Recorder]:
    """A server for the artifact, and the recorder before it."""
    with served(artifact) as port:
        recorder = Recorder(port)
        threading.Thread(target=recorder.serve_forever, daemon=True).start()
        try:
            yield recorder
        finally:
            recorder.shutdown()


def results(environments: Path, url: str) -> list[dict[str, Any]]:
    """What came of every task of every program."""
    found = []
    with tempfile.TemporaryDirectory() as home:
        quiet = {"PATH": os.environ["PATH"], "HOME": home, "OPENAI_API_KEY": "none"}
        for package, program in PROGRAMS.items():
            for python in sorted(environments.glob("*/bin/python")):
                has = [python, "-c", f"import importlib.util as u; assert u.find_spec('{package}')"]
                if subprocess.run(has, stderr=subprocess.DEVNULL, check=False).returncode == 0:
                    found += _told([str(python), str(_CLIENTS / program), url], quiet, Path(home))
                    break
            else:
                raise SystemExit(f"{environments} has no environment with {package}; make one")
        node = environments / "node"
        found += _told(["node", str(_CLIENTS / "use_node.mjs"), url], quiet, node)
        lines = [sys.executable, str(_CLIENTS / "use_command_lines.py"), url]
        found += _told(lines, quiet, node)
    return found


def _told(command: list[str], environment: dict[str, str], folder: Path) -> list[dict[str, Any]]:
    print(Path(command[1]).name, file=sys.stderr)
    made = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    lines = [line for line in made.stdout.splitlines() if line.startswith('{"client"')]
    if made.returncode:
        raise SystemExit(f"{command[1]} failed: {made.stderr[-2000:]}")
    return [json.loads(line) for line in lines]


def main() -> None:
    """Writes a row for every task: what it sent, what was answered, how the client took it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    with recorded(arguments.artifact) as recorder:
        url = f"http://127.0.0.1:{recorder.server_address[1]}/v1"
        rows = results(arguments.environments.resolve(), url)
    for row in rows:
        asked = [one for one in recorder.rows if all(one[n] == row[n] for n in ("client", "task"))]
        row["requests"] = [
            {name: value for name, value in one.items() if name not in ("client", "task")}
            for one in asked
        ]
        row.pop("answer", None)
    text = "".join(f" {json.dumps(row, ensure_ascii=True)},\n" for row in rows)
    text = re.sub(re.escape(tempfile.gettempdir()) + r"/[\w-]+", "HOME", text)
    arguments.json.write_text(f"[\n{text[:-2]}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
