"""The package as a whole: what a wheel holds, who imports whom, what a committed file may hold."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "tool"
]["setuptools"]["package-dir"]
MEGABYTE = 1 << 20


def committed_files() -> list[Path]:
    """What git has, or would take: new files that it doesn't ignore too."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def modules() -> Iterator[tuple[str, Path]]:
    """The import name and file of every module in the tree."""
    for name, folder in FOLDERS.items():
        for file in sorted((ROOT / folder).rglob("*.py")):
            below = [*file.relative_to(ROOT / folder).with_suffix("").parts]
            if below[-1] == "__init__":
                below.pop()
            yield ".".join([name, *below]), file


# --------------------------------------------------------------------------------- wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """A wheel built from a copy of the tree, without the network."""
    tree = tmp_path_factory.mktemp("tree")
    out = tmp_path_factory.mktemp("wheel")
    for file in committed_files():
        copy = tree / file.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    (tree / "README.md").touch()
    build = f"from setuptools import build_meta; print(build_meta.build_wheel({str(out)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return zipfile.ZipFile(next(out.glob("*.whl")))


def test_the_wheel_holds_every_module_of_the_tree(wheel: zipfile.ZipFile) -> None:
    expected = set()
    for name, file in modules():
        path = name.replace(".", "/")
        expected.add(f"{path}/__init__.py" if file.name == "__init__.py" else f"{path}.py")
    assert expected
    assert {name for name in wheel.namelist() if name.endswith(".py")} == expected


def test_the_wheel_holds_the_trained_gates_and_scorers(wheel: zipfile.ZipFile) -> None:
    trained = [
        f"edgeinfinite/{file.relative_to(ROOT).as_posix()}"
        for kind in ("gates", "scorers")
        for file in (ROOT / "models" / kind).glob("*")
        if file.suffix in (".safetensors", ".md")
    ]
    assert set(trained) <= set(wheel.namelist())


def test_the_wheel_has_the_version_and_the_command(wheel: zipfile.ZipFile) -> None:
    import edgeinfinite

    info = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    assert f"\nVersion: {edgeinfinite.__version__}\n" in wheel.read(info).decode()
    points = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "edgeinfinite = edgeinfinite.cli:main" in points


def test_every_folder_with_modules_is_a_package() -> None:
    for name, file in modules():
        assert (file.parent / "__init__.py").is_file(), f"{name} is left out of the wheel"


# ------------------------------------------------------------------------------- imports

# DESIGN §1. The export writes manifests and checks the artifact with the runtime, so it may import
# it; the runtime takes from the models only `geometry`, which has no torch in it.
LAYERS = {
    "models": set(),
    "export": {"models", "runtime_py"},
    "runtime_py": set(),
    "training": {"models"},
    "evaluation": {"models", "runtime_py"},
}
RUNTIME_IMPORTS = {
    *("jinja2", "msgspec", "numpy", "safetensors", "tokenizers", "tqdm"),
    *("edgeinfinite", "edgeinfinite.artifact.geometry", "edgeinfinite.runtime_py"),
}
# The engines' own packages, each in the file that needs it; the benchmark's peers likewise.
ENGINE_IMPORTS = {
    "edgeinfinite.runtime_py.engines": {"onnxruntime", "executorch"},
    "edgeinfinite.runtime_py.benchmark": {"matplotlib", "onnxruntime", "psutil"},
    "edgeinfinite.runtime_py.benchmark.systems": {
        *("llama_cpp", "onnxruntime_genai", "torch", "transformers"),
    },
}
# Not for a machine without torch: the reference engine, from a checkpoint in Python.
TORCH_SIDE = {"edgeinfinite.runtime_py.engines.torch_engine"}


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


def layer_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if parts[0] == "edgeinfinite" and len(parts) > 1 else None


def allowed_in_runtime(module: str, name: str) -> bool:
    if name.split(".")[0] in sys.stdlib_module_names:
        return True
    engines = {
        package
        for home, packages in ENGINE_IMPORTS.items()
        if module.startswith(f"{home}.")
        for package in packages
    }
    return any(
        name == given or name.startswith(f"{given}.") for given in engines | RUNTIME_IMPORTS
    ) and (
        layer_of(name) in (None, "runtime_py")
        or name == "edgeinfinite.artifact.geometry"
        or not (ROOT / f"{layer_of(name)}").is_dir()  # a name of the public API
    )


def test_no_module_imports_upward() -> None:
    wrong = []
    for module, file in modules():
        layer = layer_of(module)
        if layer not in LAYERS:
            continue
        at_import = layer == "runtime_py"  # it may load a checkpoint's side when asked to
        for name in imported(ast.parse(file.read_text(encoding="utf-8")), at_import=at_import):
            target = layer_of(name)
            fine = (
                target == layer
                or target in LAYERS[layer]
                or name == "edgeinfinite.artifact.geometry"
            )
            if layer == "runtime_py" and module in TORCH_SIDE:
                fine = fine or target == "models"
            if (target in LAYERS or target == "cli") and not fine:
                wrong.append(f"{module} imports {name}")
    assert not wrong


def test_the_runtime_imports_nothing_but_what_it_needs_to_run_an_artifact() -> None:
    wrong = [
        f"{module} imports {name}"
        for module, file in modules()
        if layer_of(module) == "runtime_py" and module not in TORCH_SIDE
        for name in imported(ast.parse(file.read_text(encoding="utf-8")), at_import=True)
        if not allowed_in_runtime(module, name)
    ]
    assert not wrong


def test_the_runtime_and_the_command_line_import_without_torch_and_transformers() -> None:
    names = [
        module
        for module, _ in modules()
        if module in ("edgeinfinite", "edgeinfinite.cli")
        or (
            layer_of(module) == "runtime_py"
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


# ------------------------------------------------------------------------ committed files

# Spelled so that this file doesn't find itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}~/-])/(?:work|root|home)/[\w.]")
REGISTRY = re.compile(
    r"\b(?:"
    + "|".join([r"py[p]i\.org", r"python[h]osted\.org", r"download\.py[t]orch\.org"])
    + "|"
    + "|".join([r"registry\.np[m]js\.org", r"repo1?\.mav[e]n", r"crates\.i[o]", r"deb\.deb[i]an"])
    + ")"
)


def test_no_committed_file_names_a_machines_path_or_a_registrys_host() -> None:
    wrong = []
    for file in committed_files():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if MACHINE_PATH.search(line) or REGISTRY.search(line):
                wrong.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not wrong


def test_no_committed_file_is_over_five_megabytes() -> None:
    large = [file for file in committed_files() if file.stat().st_size > 5 * MEGABYTE]
    assert not large


def test_the_demos_prompt_is_the_excerpt_and_a_question() -> None:
    excerpt = (ROOT / "examples" / "dogs.txt").read_text(encoding="utf-8")
    prompt = (ROOT / "examples" / "dogs_prompt.txt").read_text(encoding="utf-8")
    assert prompt.startswith(excerpt)
    assert prompt[len(excerpt) :].strip().startswith("Question: ")
