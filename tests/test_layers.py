"""Imports between packages: every package has a layer, and nothing imports upward."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tree import FOLDERS, ROOT, modules

# From the bottom up. `base` is what stands in edgeinfinite/ itself below the command line.
BASE = {
    f"edgeinfinite.{name}"
    for name in ("errors", "files", "installation", "process_memory", "rows_file", "version")
}
MAY_IMPORT: dict[str, set[str]] = {
    "artifact": set(),
    "models": {"artifact"},
    "runtime_py": {"artifact"},
    "export": {"artifact", "models", "runtime_py"},
    "training": {"artifact", "models"},
    "evaluation": {"artifact", "models", "runtime_py", "export", "training"},
    "cli": {"artifact", "models", "runtime_py", "export", "training", "evaluation"},
}
# These run a checkpoint in PyTorch: the places where the runtime needs models.
TORCH_SIDE = {
    "edgeinfinite.runtime_py.engines.torch_engine",
    "edgeinfinite.runtime_py.engines.mom_session",
}
# What the runtime may import when it is imported: it must run where torch isn't installed.
RUNTIME_IMPORTS = {"jinja2", "msgspec", "numpy", "safetensors", "tokenizers", "tqdm"}
# The engines' own packages, each in the file that needs it; the benchmark's peers likewise, and the
# server's, of the extra `serve`.
ENGINE_IMPORTS = {
    "edgeinfinite.runtime_py.engines": {"onnxruntime", "executorch"},
    "edgeinfinite.runtime_py.benchmark": {"matplotlib", "onnxruntime", "psutil"},
    "edgeinfinite.runtime_py.benchmark.systems": {
        *("llama_cpp", "onnxruntime_genai", "torch", "transformers"),
    },
    "edgeinfinite.runtime_py.server": {"prometheus_client", "starlette", "uvicorn"},
}


def imported(tree: ast.AST, *, at_import: bool) -> Iterator[str]:
    """The absolute names that a module imports.

    Args:
        tree: the module.
        at_import: only what is executed when the module is imported: not in functions, not under
            `if TYPE_CHECKING`.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield f"{node.module}"
            if node.module == "edgeinfinite":  # `from edgeinfinite import runtime_py`
                yield from (f"edgeinfinite.{alias.name}" for alias in node.names)
        elif at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        elif at_import and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imported(ast.Module([other], []), at_import=True)
        else:
            yield from imported(node, at_import=at_import)


def floor_of(name: str) -> str | None:
    """The package that a module belongs to; None for other distributions and for `BASE`."""
    parts = name.split(".")
    return parts[1] if parts[0] == "edgeinfinite" and len(parts) > 1 and name not in BASE else None


def imports_of(file: Path, *, at_import: bool) -> list[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return list(imported(tree, at_import=at_import))


def test_every_package_has_a_layer() -> None:
    packages = {name.split(".")[1] for name in FOLDERS if "." in name}
    assert packages | {"cli"} == set(MAY_IMPORT)


def test_no_module_imports_upward() -> None:
    wrong = []
    for module, file in modules():
        floor = floor_of(module)
        # The public API, loaded on first use, and `python -m edgeinfinite`.
        if module in ("edgeinfinite", "edgeinfinite.__main__"):
            continue
        allowed = {floor} | (MAY_IMPORT[floor] if floor else set())
        if module in TORCH_SIDE:
            allowed |= {"models"}
        for name in imports_of(file, at_import=False):
            if name == "edgeinfinite":
                wrong.append(f"{module} imports the public API; name the module that has it")
            elif (target := floor_of(name)) is not None and target not in allowed:
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_the_runtime_imports_only_what_running_an_artifact_needs() -> None:
    wrong = []
    for module, file in modules():
        if floor_of(module) not in ("artifact", "runtime_py") or module in TORCH_SIDE:
            continue
        engines = {
            package
            for home, packages in ENGINE_IMPORTS.items()
            if module.startswith(f"{home}.")
            for package in packages
        }
        for name in imports_of(file, at_import=True):
            package = name.split(".")[0]
            known = package in sys.stdlib_module_names or package in RUNTIME_IMPORTS | engines
            if not known and package != "edgeinfinite":
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_modules_are_named_as_strings_only_in_the_tables_made_for_it() -> None:
    """The table of back ends and the public API: otherwise two packages would know one name."""
    tables = {"edgeinfinite", "edgeinfinite.artifact.backends"}
    names = {module for module, _ in modules()} - {"edgeinfinite", "edgeinfinite.cli"}
    wrong = [
        f"{module}: {text}"
        for module, file in modules()
        if module not in tables
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for text in re.findall(r"edgeinfinite(?:\.\w+)+", node.value)
        if node.value.strip() == text and text in names and floor_of(text) != floor_of(module)
    ]
    assert not wrong


def test_the_runtime_and_the_command_line_import_without_torch_and_transformers() -> None:
    names = [
        module
        for module, _ in modules()
        if module in ("edgeinfinite", "edgeinfinite.cli", *BASE)
        or (
            floor_of(module) in ("artifact", "runtime_py")
            and module not in TORCH_SIDE
            and not any(module.startswith(f"{home}.") for home in ENGINE_IMPORTS)
        )
    ]
    code = (
        "import importlib, sys\n"
        "for name in ('torch', 'transformers'):\n"
        "    sys.modules[name] = None\n"  # importing it fails
        f"for name in {names!r}:\n"
        "    importlib.import_module(name)\n"
        "loaded = [n for n in sys.modules if n.split('.')[0] in ('torch', 'transformers')]\n"
        "assert sorted(loaded) == ['torch', 'transformers'], loaded\n"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_tests_mirror_the_tree() -> None:
    """`tests/export/onnx/test_quantize.py` tests something in `export/onnx/`."""
    # No package of these names, or one inside edgeinfinite.
    own = {"android", "arm64", "cli", "end_to_end", "faults", "fuzz"}
    wrong = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        place = file.parent.relative_to(ROOT / "tests")
        if place.parts and place.parts[0] not in own and not (ROOT / place).is_dir():
            wrong.append(str(file.relative_to(ROOT)))
    assert not wrong


def test_no_function_is_longer_than_a_screen() -> None:
    """60 lines of code; a docstring doesn't count."""
    wrong = []
    for module, file in modules():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            lines = (node.end_lineno or 0) - node.lineno + 1
            if ast.get_docstring(node) is not None:
                lines -= (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            if lines > 60:
                wrong.append(f"{module}.{node.name}: {lines} lines")
    assert not wrong
