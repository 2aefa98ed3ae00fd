"""Measures `edgeinfinite serve`: waiting for a second question, load, memory by sessions.

    python scripts/serve_figures.py wait ARTIFACT --json wait.json
    python scripts/serve_figures.py wait MODEL.gguf --python OTHER/bin/python --json peer.json
    python scripts/serve_figures.py load ARTIFACT --json load.json
    python scripts/serve_figures.py sessions ARTIFACT --json sessions.json

`wait` takes a GGUF file too and measures llama.cpp's server (`pip install
'llama-cpp-python[server]'`, in an environment of its own: `--python`). Linux only.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai

from edgeinfinite.rows_file import write_rows
from edgeinfinite.runtime_py.answer.conversation import Conversation

EXAMPLES = Path(__file__).parents[1] / "examples"
CHARACTERS = 84_600
"""Of the document: 20,000 tokens of SmolLM2."""

QUESTIONS = ("Who is the Baron?", "What happens in the churchyard?", "What does the wolf do?")
ANSWER = {"temperature": 0, "max_tokens": 24, "stream": True}
MINUTES = 60
LOAD = 1_000
CLIENTS = 8


@dataclass
class Server:
    """A server at work, and a client of it."""

    process: subprocess.Popen[bytes]
    client: openai.OpenAI

    def status(self, field: str) -> float:
        """Of the process, in MB: `VmRSS` or `VmHWM`, its peak."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        found = re.search(rf"{field}:\s+(\d+) kB", text)
        assert found
        return int(found[1]) * 1024 / 1e6

    def ask(self, messages: list[Any], **options: Any) -> tuple[float, str, int | None]:
        """Seconds to the first piece, the answer, and tokens of saved states."""
        start = time.perf_counter()
        first, pieces, cached = None, [], None
        asked = {"stream_options": {"include_usage": True}} | ANSWER | options
        model = self.client.models.list().data[0].id
        for chunk in self.client.chat.completions.create(model=model, messages=messages, **asked):
            if chunk.choices and chunk.choices[0].delta.content:
                first = first or time.perf_counter() - start
                pieces.append(chunk.choices[0].delta.content)
            if chunk.usage and chunk.usage.prompt_tokens_details:
                cached = chunk.usage.prompt_tokens_details.cached_tokens
        return first or time.perf_counter() - start, "".join(pieces), cached


@contextmanager
def serving(command: list[str], port: int, folder: str) -> Iterator[Server]:
    """Starts a server and waits until it answers."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}/v1"
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=MINUTES * 60)
    try:
        while True:
            assert process.poll() is None, f"it ended: {' '.join(command)}"
            with suppress(openai.APIConnectionError):
                client.models.list()
                break
            time.sleep(0.05)
        yield Server(process, client)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def ours(artifact: Path, threads: int, *options: str) -> tuple[list[str], int]:
    """The command of our server, and its port."""
    port = free_port()
    command = [sys.executable, "-m", "edgeinfinite.cli", "serve", str(artifact.resolve())]
    return [*command, "--port", str(port), "--threads", str(threads), *options], port


def llama(python: str, model: Path, threads: int, cache: str) -> tuple[list[str], int]:
    """The command of llama.cpp's server, and its port; `cache` is `ram` or `disk`."""
    port = free_port()
    options = {
        "model": model.resolve(),
        "port": port,
        "n_ctx": 24_576,
        "n_threads": threads,
        "n_threads_batch": threads,
        "flash_attn": True,
        "cache": True,
        "cache_type": cache,
        "cache_size": 8 << 30,
        # By default it also keeps the logits of every token: 4 GB, which its disk cache drops.
        "logits_all": False,
    }
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return [python, "-m", "llama_cpp.server", *given], port


def user(text: str) -> dict[str, str]:
    """A message."""
    return {"role": "user", "content": text}


def second_question(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time to first token about a document of 20,000 tokens: first, second, after a restart."""
    text = (EXAMPLES / "draculas_guest.txt").read_text(encoding="utf-8")[: arguments.characters]
    first, second, third = QUESTIONS
    peer = arguments.model.suffix == ".gguf"
    rows: list[dict[str, Any]] = []

    def row(what: str, seconds: float, cached: int | None, server: Server | None) -> None:
        rows.append({"system": "llama.cpp" if peer else "edgeinfinite", "question": what})
        rows[-1] |= {"ttft_s": round(seconds, 3), "cached_tokens": cached}
        rows[-1]["peak_mb"] = None if server is None else round(server.status("VmHWM"), 1)

    with tempfile.TemporaryDirectory() as folder:
        kinds = ("ram", "disk") if peer else ("",)
        for kind in kinds:
            for start in ("first start", "after a restart"):
                if peer:
                    command, port = llama(
                        arguments.python, arguments.model, arguments.threads, kind
                    )
                else:
                    options = ("--cache-dir", folder)
                    command, port = ours(arguments.model, arguments.threads, *options)
                if kind == "ram" and start != "first start":
                    continue
                with serving(command, port, folder) as server:
                    suffix = f" ({kind} cache)" if kind else ""
                    if start == "first start":
                        seconds, answer, cached = server.ask([user(f"{text}\n\n{first}")])
                        row(f"first{suffix}", seconds, cached, server)
                        said = [
                            user(f"{text}\n\n{first}"),
                            {"role": "assistant", "content": answer},
                        ]
                        seconds, _, cached = server.ask([*said, user(second)])
                        row(f"second, conversation resent{suffix}", seconds, cached, server)
                        time.sleep(3)  # files are written behind
                    else:
                        seconds, _, cached = server.ask([*said, user(third)])
                        row(f"second, after a restart{suffix}", seconds, cached, server)
    if not peer:
        conversation = Conversation.open(arguments.model, threads=arguments.threads)
        for what, message in (("first", f"{text}\n\n{first}"), ("second", second)):
            list(conversation.ask(message, max_new_tokens=ANSWER["max_tokens"]))
            figures = conversation.statistics()
            assert figures is not None and figures.ttft_s is not None
            row(f"{what}, in Python (chat)", figures.ttft_s, None, None)
    return rows


def load(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Requests of several clients, a third of them cut off; memory and answers mixed up."""
    words = (EXAMPLES / "dogs.txt").read_text(encoding="utf-8").split()
    texts = [" ".join(words[i : i + 60]) + "\nWhat is this about?" for i in range(0, 1200, 60)]
    rows: list[dict[str, Any]] = []
    options = ("--cache-mb", "128", "--parallel", "4")
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(*ours(arguments.model, arguments.threads, *options), folder) as server,
    ):
        few = {"max_tokens": 12}
        expected = {text: server.ask([user(text)], **few)[1] for text in texts}
        done = {"asked": 0, "cancelled": 0, "wrong": 0, "answered": 0}
        lock = threading.Lock()

        def client(number: int) -> None:
            choice = random.Random(number)
            while True:
                with lock:
                    if done["asked"] >= LOAD:
                        return
                    done["asked"] += 1
                    if done["asked"] % 100 == 1:
                        memory = round(server.status("VmRSS"), 1)
                        rows.append({"requests": done["asked"] - 1, "rss_mb": memory})
                text = choice.choice(texts)
                if choice.random() < 1 / 3:
                    wait = choice.random() * 2
                    with suppress(openai.APITimeoutError):
                        cut = server.client.with_options(timeout=0.05 + wait)
                        stream = cut.chat.completions.create(
                            model=arguments.model.resolve().name,
                            messages=[user(text)],
                            temperature=0,
                            max_tokens=1000,
                            stream=True,
                        )
                        next(iter(stream), None)
                        stream.close()
                    with lock:
                        done["cancelled"] += 1
                    continue
                answer = server.ask([user(text)], **few)[1]
                with lock:
                    done["answered"] += 1
                    done["wrong"] += answer != expected[text]

        start = time.perf_counter()
        threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = round(time.perf_counter() - start, 1)
        time.sleep(1)
        rows.append({"requests": LOAD, "rss_mb": round(server.status("VmRSS"), 1)})
        rows.append(done | {"seconds": seconds, "peak_mb": round(server.status("VmHWM"), 1)})
    return rows


def sessions(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Peak memory while 1, 4 and 16 long texts are read at once, no saved states."""
    words = (EXAMPLES / "dogs.txt").read_text(encoding="utf-8").split()
    rows = []
    for count in (1, 4, 16):
        options = ("--cache-mb", "0", "--parallel", str(count))
        with (
            tempfile.TemporaryDirectory() as folder,
            serving(*ours(arguments.model, arguments.threads, *options), folder) as server,
        ):
            empty = server.status("VmRSS")
            texts = [" ".join(words[100 * i : 100 * i + 2500]) for i in range(count)]
            threads = [threading.Thread(target=server.ask, args=([user(text)],)) for text in texts]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rows.append({"sessions": count, "peak_mb": round(server.status("VmHWM"), 1)})
            rows[-1]["before_mb"] = round(empty, 1)
    return rows


def main() -> None:
    """Measures one kind and writes its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = {"wait": second_question, "load": load, "sessions": sessions}
    parser.add_argument("kind", choices=tuple(kinds))
    parser.add_argument("model", type=Path, help="an artifact, or a GGUF file for llama.cpp")
    parser.add_argument("--python", default=sys.executable, help="with llama_cpp.server")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--characters", type=int, default=CHARACTERS, help="of the document")
    parser.add_argument("--json", type=Path, required=True)
    arguments = parser.parse_args()
    rows = [row | {"threads": arguments.threads} for row in kinds[arguments.kind](arguments)]
    write_rows(arguments.json, f"serve_figures {arguments.kind}", rows)
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
