"""What models take as artifacts: `export --dry-run` of each, as rows for docs/models.md.

    python scripts/model_sizes.py OUTPUT.json --tokenizer FOLDER [--checkpoint NAME=MODEL ...]

The shapes of `model_shapes.py` are planned from their configuration alone, without weights. A name
that a checkpoint is given for is planned from that.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import tempfile
from pathlib import Path
from typing import Any

from model_shapes import SHAPES
from transformers import AutoConfig, AutoModelForCausalLM

from edgeinfinite.export.options import ExportOptions
from edgeinfinite.export.plan import ExportPlan, plan_export
from edgeinfinite.models.architecture import architecture_of

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
TOKENS = 32_000
"""Of the text whose KV cache with full attention stands beside the state."""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("output", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder with tokenizer.json")
    parser.add_argument("--checkpoint", action="append", default=[], metavar="NAME=MODEL")
    options = parser.parse_args()
    rows = [row(*given.split("=", 1)) for given in options.checkpoint]
    with tempfile.TemporaryDirectory() as folder:
        for name in SHAPES:
            rows.append(
                row(name, str(_configuration(name, Path(folder) / name, options.tokenizer)))
            )
            print(json.dumps(rows[-1]), flush=True)
    rows.sort(key=lambda found: found["parameters"])
    document = {"command": "export --quantize int4 --dry-run", "tokens": TOKENS, "rows": rows}
    options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def row(name: str, model: str) -> dict[str, Any]:
    """The sizes of one model in the default: int4 for ONNX, an int8 cache.

    Args:
        name: of the row.
        model: as `export` takes it.
    """
    plan = plan_export(ExportOptions(model, quantize="int4"), shapes=True)
    return {
        "model": name,
        "planned_from": "weights" if plan.backbone.has_weights else "configuration",
        "parameters": sum(
            weight.numel()
            for key, weight in plan.backbone.model.named_parameters()
            if "retention_scorer" not in key
        ),
        "weights_bytes": plan.weights_bytes(),
        "state_bytes": plan.state_bytes,
        "recalls": plan.config.scorer is not None,
        "full_attention_bytes": _full_attention_bytes(plan),
    }


def _full_attention_bytes(plan: ExportPlan) -> int:
    """Of a float16 KV cache of `TOKENS` tokens; layers with a window hold no more than that."""
    facts = architecture_of(plan.backbone.model)
    layers = zip(facts.sliding_windows, facts.every_heads, strict=True)
    return sum(2 * 2 * math.prod(of) * min(window or TOKENS, TOKENS) for window, of in layers)


def _configuration(name: str, folder: Path, tokenizer: Path) -> Path:
    """A folder with a shape's configuration and another model's tokenizer, which isn't counted."""
    settings = dict(SHAPES[name])
    config = AutoConfig.for_model(settings.pop("model_type"), **settings, dtype="bfloat16")
    config.architectures = [AutoModelForCausalLM._model_mapping[type(config)].__name__]
    config.save_pretrained(folder)
    for file in TOKENIZER_FILES:
        if (tokenizer / file).is_file():
            shutil.copyfile(tokenizer / file, folder / file)
    return folder


if __name__ == "__main__":
    main()
