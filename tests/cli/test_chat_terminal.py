"""`edgeinfinite chat` on a real terminal: a pty, with the comforts of the extra and without."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest
from tiny_documents import pdf

from edgeinfinite.runtime_py.engines import load_engine
from edgeinfinite.runtime_py.session.saved_session import load_session

WITHOUT = "import sys; sys.modules['prompt_toolkit'] = sys.modules['rich'] = None; "
RUN = "from edgeinfinite.cli import main; sys.exit(main(sys.argv[1:]))"
GREEDY = ("--temperature", "0", "--max-new-tokens", "4")
ENDLESS = ("--temperature", "3", "--max-new-tokens", "10000000", "--logit-bias", "1=-100")
TERMINAL = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
STATUS = r"tokens read · state [\d.]+ MB( · \d+ tokens/s)?"


@pytest.fixture(params=["with the extra", "without"])
def open_chat(
    request: pytest.FixtureRequest, artifact: Path, tmp_path: Path
) -> Iterator[Callable[..., pexpect.spawn]]:
    """Starts a chat on a terminal of its own."""
    opened: list[pexpect.spawn] = []

    def opened_chat(*options: str, **variables: str) -> pexpect.spawn:
        code = ("import sys; " if request.param == "with the extra" else WITHOUT) + RUN
        child = pexpect.spawn(
            sys.executable,
            ["-c", code, "chat", str(artifact), *options],
            env={
                **os.environ,
                "TERM": "xterm",
                "HOME": str(tmp_path),
                "PROMPT_TOOLKIT_NO_CPR": "1",
                **variables,
            },
            encoding="utf-8",
            codec_errors="replace",
            timeout=30,
            cwd=str(tmp_path),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        child.logfile_read = io.StringIO()
        opened.append(child)
        child.expect("/help lists the commands; Ctrl-C ends an answer")
        child.expect(">")
        return child

    yield opened_chat
    for child in opened:
        child.close(force=True)


def _say(child: pexpect.spawn, line: str, then: str) -> None:
    """Sends a line, and waits for what follows and for the next prompt."""
    child.sendline(line)
    child.expect(then)
    child.expect(">")


def _interrupt(child: pexpect.spawn) -> None:
    """Ctrl-C, once whatever was shown is waited at: CPython loses it between readline's prompt and
    the wait for a key.
    """
    time.sleep(0.5)
    child.sendintr()


def _end(child: pexpect.spawn) -> int:
    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus if child.exitstatus is not None else -child.signalstatus)


def test_a_chat_greets_helps_and_goes_on_after_a_mistake(open_chat, tmp_path: Path) -> None:
    (tmp_path / "scan.pdf").write_bytes(pdf(""))
    child = open_chat(*GREEDY)
    _say(child, "/help", "/regenerate +answer the last message again")
    _say(child, "/dance", "error: there is no command /dance; /help lists them")
    _say(child, "/attach scan.pdf", "error: scan.pdf has 1 pages and no text")
    _say(child, "/undo", "error: there is nothing to take back")
    _say(child, "hello", STATUS)
    child.sendline("/exit")
    assert _end(child) == 0
    assert sorted(tmp_path.iterdir()) == [tmp_path / "scan.pdf"], "no history is written unasked"


@pytest.mark.parametrize(
    ("variables", "code", "is_sent"),
    [
        ({"NO_COLOR": ""}, "\x1b[2m", True),
        ({"NO_COLOR": "1"}, "\x1b[2m", False),
        ({"TERM": "dumb"}, "\x1b", False),
    ],
)
def test_a_chat_sends_no_colours_to_who_wants_none(
    open_chat, variables: dict[str, str], code: str, is_sent: bool
) -> None:
    child = open_chat(*GREEDY, **variables)
    _say(child, "hello", STATUS)
    child.sendline("/exit")
    assert _end(child) == 0
    assert (code in child.logfile_read.getvalue()) is is_sent


def test_ctrl_c_at_the_prompt_is_a_hint_and_twice_the_end(open_chat) -> None:
    child = open_chat(*GREEDY)
    _interrupt(child)
    child.expect("Ctrl-C once more, or /exit, ends the chat")
    child.expect(">")
    _say(child, "hello", STATUS)
    _interrupt(child)
    child.expect("Ctrl-C once more")
    child.expect(">")
    _interrupt(child)
    assert _end(child) == 130


def test_ctrl_c_ends_the_answer_and_not_the_chat(open_chat, artifact: Path, tmp_path: Path) -> None:
    file = tmp_path / "talk.session"
    child = open_chat(*ENDLESS, "--session", str(file))
    for _ in range(2):
        child.sendline("hello")
        child.expect("hello")
        time.sleep(0.5)  # the answer is endless, so it can't be over
        _interrupt(child)
        child.expect(STATUS)
        child.expect(">")
    _say(child, "/undo", "took back: hello")
    child.sendeof()
    assert _end(child) == 0
    assert load_session(load_engine(artifact), file)[0].tokens_read > 10


def test_edit_puts_the_last_message_into_the_line(open_chat, tmp_path: Path) -> None:
    child = open_chat(*GREEDY)
    _say(child, "hello there", STATUS)
    child.sendline("/edit")
    child.expect(">.*hello there")
    _say(child, " and you", STATUS)
    _say(child, "/undo", "took back: hello there and you")
    _say(child, "/undo", "nothing to take back")


def test_sigterm_while_a_chat_waits_leaves_the_terminal_as_it_was(open_chat) -> None:
    child = open_chat(*GREEDY)
    child.kill(signal.SIGTERM)
    assert _end(child) == 143


def test_lines_are_kept_only_where_the_user_says(open_chat, tmp_path: Path, request) -> None:
    if "without" in request.node.name:
        pytest.skip("the readline library's history isn't kept")
    child = open_chat(*GREEDY, "--history", str(tmp_path / "lines"))
    _say(child, "hello there", STATUS)
    child.sendline("/exit")
    assert _end(child) == 0
    assert "hello there" in (tmp_path / "lines").read_text()
    child = open_chat(*GREEDY, "--history", str(tmp_path / "lines"))
    child.send("\x1b[A\x1b[A")  # up, up
    child.expect("hello there")
