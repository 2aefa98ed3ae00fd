"""What `make release` runs of the README, in environments with the wheel."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from test_scripts import script
from tree import ROOT

blocks = script("readme_blocks")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def steps(readme: str) -> list[tuple[str, str]]:
    return [(step.kind, step.text) for step in blocks.steps(readme, "MINE.gguf".lower())]


def test_of_the_readme_every_line_is_run_or_left_out_for_a_reason() -> None:
    found = list(blocks.steps(README, "model.gguf"))
    assert {step.kind for step in found} == {"install", "shell", "python", "skip"}
    assert all(step.why for step in found if step.kind == "skip")
    assert found[next(i for i, step in enumerate(found) if step.kind != "skip")].kind == "install"
    ran = " ".join(step.text for step in found if step.kind == "shell")
    for command in ("export --model model.gguf", "verify", "generate", "chat", "read"):
        assert f"edgeinfinite {command}" in ran, command


def test_each_extra_is_installed_once_and_lines_keep_their_order() -> None:
    readme = """Text (`pip install -e '.[runtime]'`):

```python
print("a")
```

```
pip install -e '.[onnx,documents]'
edgeinfinite export --model FOLDER_OR_HUB_ID_OR_GGUF --output a    # a remark
edgeinfinite push DIR --repo ORG/NAME
```

```
 picture │
```

Again `pip install -e '.[runtime]'`.
"""
    assert steps(readme) == [
        ("install", "runtime"),
        ("python", 'print("a")\n'),
        ("install", "onnx,documents"),
        ("shell", "edgeinfinite export --model mine.gguf --output a"),
        ("skip", "edgeinfinite push DIR --repo ORG/NAME"),
    ]


def test_a_line_of_no_known_kind_is_refused() -> None:
    with pytest.raises(SystemExit, match="no known kind: cd somewhere"):
        steps("```\ncd somewhere\n```\n")


def test_the_files_that_blocks_name_are_there(tmp_path: Path) -> None:
    blocks.write_files(tmp_path)
    for name in ("long.txt", "book.epub"):
        assert name in README and (tmp_path / name).stat().st_size > 500


def test_a_block_that_fails_ends_the_run(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(sys.executable)
    blocks.run(environment, tmp_path, blocks.Step("python", "print(1)"))
    with pytest.raises(SystemExit):
        blocks.run(environment, tmp_path, blocks.Step("python", "raise ValueError"))
