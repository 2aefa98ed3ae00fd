"""A server on the loopback that speaks what an upload to the hub uses, and keeps what it gets."""

from __future__ import annotations

import base64
import hashlib
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_of_the_test"
_SMALL = (".json", ".md", ".jinja")
"""Files that go into the commit; the others are sent as large files."""


class TinyHub(ThreadingHTTPServer):
    """Repositories by name, and in each the files of its last commit.

    Attributes:
        files: of a repository, `name -> contents`.
        revisions: that were committed to.
        asked: method and path of every request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.files: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.revisions: list[str] = []
        self.asked: list[str] = []
        self.large: dict[str, bytes] = {}


class _Handler(BaseHTTPRequestHandler):
    server: TinyHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.asked.append(f"GET {self.path}")
        repo = "/".join(self.path.split("/")[3:5])
        self._answer({"id": repo, "sha": "0" * 40, "siblings": []} if repo else {}, 200)

    def do_PUT(self) -> None:
        self.server.asked.append(f"PUT {self.path}")
        body, oid = self._body(), self.path.rpartition("/")[2]
        assert hashlib.sha256(body).hexdigest() == oid
        self.server.large[oid] = body
        self._answer({}, 200)

    def do_POST(self) -> None:
        hub, body = self.server, self._body()
        hub.asked.append(f"POST {self.path}")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "Invalid username or password."}, 401)
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            repo = f"{asked['organization']}/{asked['name']}"
            there = repo in hub.files
            hub.files.setdefault(repo, {})
            hub.private[repo] = asked.get("visibility") == "private"
            self._answer({"url": f"{hub.url}/{repo}", "name": repo}, 409 if there else 200)
        elif "/preupload/" in self.path:
            files = [f["path"] for f in json.loads(body)["files"]]
            modes = [
                {
                    "path": name,
                    "uploadMode": "regular" if name.endswith(_SMALL) else "lfs",
                    "shouldIgnore": False,
                }
                for name in files
            ]
            self._answer({"files": modes}, 200)
        elif self.path.endswith("/info/lfs/objects/batch"):
            self._answer({"transfer": "basic", "objects": [*map(self._large, _objects(body))]}, 200)
        elif "/commit/" in self.path:
            _, _, _, owner, name, _, revision = self.path.split("/")
            hub.revisions.append(revision)
            self._commit(f"{owner}/{name}", body)
        else:  # the check of a card's first lines
            self._answer({"errors": [], "warnings": []}, 200)

    def _large(self, wanted: dict) -> dict:
        oid = wanted["oid"]
        return wanted | {"actions": {"upload": {"href": f"{self.server.url}/large/{oid}"}}}

    def _commit(self, repo: str, body: bytes) -> None:
        files = self.server.files[repo]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
        url = f"{self.server.url}/{repo}/commit/{'1' * 40}"
        self._answer({"success": True, "commitOid": "1" * 40, "commitUrl": url}, 200)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, fields: dict, status: int) -> None:
        text = json.dumps(fields).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def _objects(body: bytes) -> list[dict]:
    return json.loads(body)["objects"]
