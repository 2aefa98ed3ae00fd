"""Chat templates in the manner of the supported families, and conversations to render with them.

Written for these tests, in `templates_of_families/`: the real ones belong to their authors. Each
uses the constructs of jinja2's language that its family's templates are built from; `language` uses
every construct once.
"""

from __future__ import annotations

from pathlib import Path

TEMPLATES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parent / "templates_of_families").glob("*.jinja"))
}
CHATML = TEMPLATES["chatml"]

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def _chat(*contents: str, system: str | None = None) -> list[dict[str, str]]:
    roles = ("user", "assistant")
    said = [{"role": roles[i % 2], "content": text} for i, text in enumerate(contents)]
    return said if system is None else [{"role": "system", "content": system}, *said]


CONVERSATIONS = [
    _chat("Hello"),
    _chat("  Hello \n", "Hi!", "And {{ now }}?"),
    _chat("Was ist das? 你好 🙂", " <think>\nhm\n</think>\n\nDas.", "Ja\u00a0", "Gut", "Ende"),
    _chat("Hi", system="Be brief. /no_think"),
    _chat("Hi", "Ho", "He", system="  spaces  "),
    [{"role": "assistant", "content": "I begin"}, {"role": "user", "content": "no"}],
    [{"role": "tool", "content": "x"}],
]
