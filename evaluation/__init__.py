"""Measuring what a state of fixed size remembers: perplexity by position, facts in long texts.

Everything that `edgeinfinite evaluate` does, from Python (docs/evaluation.md). Names are loaded on
first use: most of them load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = [
    "BabilongOptions",
    "CheckpointOptions",
    "LongBenchOptions",
    "PasskeyOptions",
    "PerplexityOptions",
    "artifacts_subject",
    "babilong_tables",
    "checkpoint_subject",
    "longbench_tables",
    "open_artifact",
    "open_checkpoint",
    "passkey_table",
    "perplexity_table",
    "run_babilong",
    "run_longbench",
    "run_passkey",
    "run_perplexity",
]

if TYPE_CHECKING:
    from edgeinfinite.evaluation.babilong.options import BabilongOptions
    from edgeinfinite.evaluation.babilong.run import run_babilong
    from edgeinfinite.evaluation.babilong.table import babilong_tables
    from edgeinfinite.evaluation.longbench.options import LongBenchOptions
    from edgeinfinite.evaluation.longbench.run import run_longbench
    from edgeinfinite.evaluation.longbench.table import longbench_tables
    from edgeinfinite.evaluation.options import (
        CheckpointOptions,
        PasskeyOptions,
        PerplexityOptions,
    )
    from edgeinfinite.evaluation.questions.run import artifacts_subject, checkpoint_subject
    from edgeinfinite.evaluation.report import passkey_table, perplexity_table
    from edgeinfinite.evaluation.sources import open_artifact, open_checkpoint
    from edgeinfinite.evaluation.tasks import run_passkey, run_perplexity

_HOME = {
    "babilong.options": ("BabilongOptions",),
    "babilong.run": ("run_babilong",),
    "babilong.table": ("babilong_tables",),
    "longbench.options": ("LongBenchOptions",),
    "longbench.run": ("run_longbench",),
    "longbench.table": ("longbench_tables",),
    "options": ("CheckpointOptions", "PasskeyOptions", "PerplexityOptions"),
    "questions.run": ("artifacts_subject", "checkpoint_subject"),
    "report": ("passkey_table", "perplexity_table"),
    "sources": ("open_artifact", "open_checkpoint"),
    "tasks": ("run_passkey", "run_perplexity"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
