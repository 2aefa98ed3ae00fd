"""Every table by the name that stands in a page's marker."""

from __future__ import annotations

from dataclasses import dataclass

from results_cases import CASES
from results_conversation import CONVERSATION, CONVERSATION_GEMMA
from results_curve import CURVE
from results_exact import EXACT_4096, EXACT_AND_FIXED, EXACT_BUDGET, EXACT_GEMMA, EXACT_OLD
from results_models import DEVICES
from results_quantization import (
    LOSS_GEMMA,
    LOSS_SHUFFLED,
    LOSS_UNTOUCHED,
    QUANTIZERS,
    QUANTIZERS_GEMMA,
)
from results_recall import DIGITS, OTHER_TASKS, README_RECALL, RECALL
from results_sampling import FREE, QUESTIONS
from results_server import HEALTH, SESSIONS, TURNS, WAIT, WAIT_SHORT
from results_shapes import EXPORTS, SHAPES
from results_speed import EXECUTORCH, GEMMA, INT8, SPEED
from results_tables import BENCHMARKS, Grid, document, markdown
from results_trust import ARM64, CLIENTS, CROSS_ENGINE, DOCUMENTS, GGUF, ROUTES

GRIDS: dict[str, Grid] = {
    "readme/recall": README_RECALL,
    "readme/speed": SPEED,
    "models/devices": DEVICES,
    "recall/digits": DIGITS,
    "recall/results": RECALL,
    "recall/other-tasks": OTHER_TASKS,
    "recall/curve": CURVE,
    "recall/speed-int8": INT8,
    "conversation/smollm2": CONVERSATION,
    "conversation/gemma": CONVERSATION_GEMMA,
    "gemma/beside-llama-cpp": GEMMA,
    "executorch/measured": EXECUTORCH,
    "exact-attention/measured": EXACT_4096,
    "exact-attention/measured-2": EXACT_OLD,
    "exact-attention/measured-3": EXACT_BUDGET,
    "exact-attention/measured-5": EXACT_AND_FIXED,
    "exact-attention/measured-6": EXACT_GEMMA,
    "quantization/gemma": LOSS_GEMMA,
    "quantization/shuffled": LOSS_SHUFFLED,
    "quantization/untouched": LOSS_UNTOUCHED,
    "quantization/measured-8": QUANTIZERS,
    "quantization/measured-9": QUANTIZERS_GEMMA,
    "requests/clients": CLIENTS,
    "sampling/questions": QUESTIONS,
    "sampling/free": FREE,
    "shapes/beside-llama-cpp": SHAPES,
    "shapes/exports": EXPORTS,
    "server/measured": WAIT,
    "server/measured-2": WAIT_SHORT,
    "server/measured-3": SESSIONS,
    "server/turns": TURNS,
    "server/health": HEALTH,
    "testing/cases": CASES,
    "trust/arm64": ARM64,
    "trust/documents": DOCUMENTS,
    "trust/gguf": GGUF,
    "trust/routes": ROUTES,
    "trust/from-engine-to-engine": CROSS_ENGINE,
}


@dataclass(frozen=True)
class Shown:
    """A table as a page shows it.

    Args:
        text: in Markdown.
        files: what it was made from, relative to benchmarks/.
        origin: command, date, commit and machine of each file that says them; None isn't known.
    """

    text: str
    files: tuple[str, ...]
    origin: tuple[dict[str, str | None], ...]


def typed_file(name: str) -> str:
    """The file of a table whose figures were transcribed from a page."""
    return f"typed/{name.partition('/')[0]}.json"


def table(name: str) -> Shown:
    """The table with this name.

    Raises:
        SystemExit: there is none.
    """
    if name in GRIDS:
        grid, sources = GRIDS[name], document("sources.json")
        files = tuple(grid.files())
        return Shown(grid.markdown(), files, tuple(sources[file] for file in files))
    file = typed_file(name)
    tables = document(file)["tables"] if (BENCHMARKS / file).is_file() else {}
    entry = tables.get(name.partition("/")[2])
    if entry is None:
        raise SystemExit(f"no table has the name {name}; see scripts/results_catalog.py")
    return Shown(markdown(entry["columns"], entry["lines"]), (file,), (entry,))
