"""An exporter of transformers: a model in memory becomes an artifact.

The model is written as a checkpoint first and goes the way of `edgeinfinite export` from there,
with all of its checks. A folder of `ExportedModel.save_pretrained` is the artifact; it holds
transformers' own files beside it.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.exporters import ExportedModel, ExportMetadata, HfExporter
from transformers.exporters.metadata import record_output_structure
from transformers.modeling_outputs import CausalLMOutput

from edgeinfinite.artifact.manifest import MANIFEST_FILE, load_manifest, read_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.exporter import export_artifact
from edgeinfinite.export.hf.config import EdgeInfiniteExportConfig
from edgeinfinite.export.hf.registration import FORMAT
from edgeinfinite.models.checkpoint.loading import parameters_digest

INPUTS = ("input_ids", "attention_mask")
_PACKAGES = ("edgeinfinite", "transformers", "torch")


@dataclass(frozen=True)
class ArtifactProgram:
    """The program that is exported: an artifact.

    Args:
        folder: the artifact; what `edgeinfinite generate` and `load_engine` take.
        owner: deletes the folder when the program is given up; None for one that was loaded.
    """

    folder: Path
    owner: tempfile.TemporaryDirectory[str] | None = field(default=None, repr=False)


class EdgeInfiniteExporter(HfExporter):
    """See `register_exporter`. `export` and `export_for_generation` both export the whole model."""

    export_format = FORMAT
    config_class = EdgeInfiniteExportConfig
    program_suffix = ".edgeinfinite"

    def export_for_generation(
        self,
        model: PreTrainedModel,
        sample_inputs: Mapping[str, torch.Tensor],
        config: EdgeInfiniteExportConfig | dict[str, Any],
        *,
        generation_config: GenerationConfig | None = None,
        multi_token_decode: bool = False,
    ) -> ExportedModel:
        """As `export`: an artifact reads and generates with one state, and has no parts.

        Args:
            model, sample_inputs, config: see `export_program`.
            generation_config: goes into the artifact in place of the model's own.
            multi_token_decode: an artifact always reads any number of tokens.

        Returns:
            One component, `model`.
        """
        own = model.generation_config
        model.generation_config = generation_config or own
        try:
            return self.export(model, sample_inputs, config)
        finally:
            model.generation_config = own

    def export_program(
        self,
        model: PreTrainedModel,
        sample_inputs: Mapping[str, torch.Tensor],
        config: EdgeInfiniteExportConfig,
    ) -> tuple[ArtifactProgram, ExportMetadata]:
        """Exports and checks.

        Args:
            model: a causal LM.
            sample_inputs: `input_ids`, `attention_mask`, or nothing: an artifact has no shapes that
                they could fix.
            config: the options.

        Raises:
            EdgeInfiniteError: as `export_artifact`; also if there is no tokenizer, an input isn't a
                text's, or the checkpoint that transformers writes isn't the model in memory.
        """
        others = ", ".join(name for name in sample_inputs if name not in INPUTS)
        if others:
            raise EdgeInfiniteError(
                f"an artifact reads texts, by {' and '.join(INPUTS)}; leave out {others}"
            )
        tokenizer = _tokenizer(model, config.tokenizer)
        owner = tempfile.TemporaryDirectory(prefix="edgeinfinite-export-")
        folder = Path(owner.name) / "artifact"
        with tempfile.TemporaryDirectory(prefix="edgeinfinite-checkpoint-") as parent:
            checkpoint = Path(parent) / (
                Path(model.name_or_path or "").name or type(model).__name__
            )
            model.save_pretrained(checkpoint)
            tokenizer.save_pretrained(checkpoint)
            export_artifact(config.options(checkpoint, folder))
        _refuse_another(model, folder)
        return ArtifactProgram(folder, owner), _metadata(model)

    @classmethod
    def save_program(cls, program: ArtifactProgram, path: str | Path) -> None:
        """Copies the artifact's files beside `path`, a file that says which artifact it is."""
        path = Path(path)
        for file in program.folder.iterdir():
            shutil.copyfile(file, path.parent / file.name)
        path.write_text(_digest(program.folder) + "\n", encoding="ascii")

    @classmethod
    def load_program(cls, path: str | Path) -> ArtifactProgram:
        """The artifact that `save_program` wrote.

        Raises:
            EdgeInfiniteError: its files aren't all there, are damaged, or are another artifact's.
        """
        path = Path(path)
        folder = path.parent
        if not (folder / MANIFEST_FILE).is_file():
            raise EdgeInfiniteError(
                f"{folder} has no {MANIFEST_FILE}: of a repository on the hub transformers fetches "
                "its own files alone; fetch all of it (hf download ID --local-dir FOLDER), and "
                "give that folder"
            )
        load_manifest(folder)
        if path.read_text(encoding="ascii").strip() != _digest(folder):
            raise EdgeInfiniteError(
                f"{folder} holds another artifact than {path.name} was written with; export again"
            )
        return ArtifactProgram(folder)

    @classmethod
    def program_files(cls, filename: str) -> list[str]:
        """Those whose names are known before the manifest is read."""
        return [filename, MANIFEST_FILE]


def _tokenizer(
    model: PreTrainedModel, given: PreTrainedTokenizerBase | str | None
) -> PreTrainedTokenizerBase:
    if isinstance(given, PreTrainedTokenizerBase):
        return given
    source = given or model.name_or_path
    if not source:
        raise EdgeInfiniteError(
            "the model wasn't loaded from a checkpoint, so its tokenizer isn't known; give one in "
            "the configuration: tokenizer=..."
        )
    try:
        return AutoTokenizer.from_pretrained(source)
    except (OSError, ValueError) as error:
        raise EdgeInfiniteError(
            f"{source} has no tokenizer that can be loaded ({str(error).splitlines()[0]}); give "
            "one in the configuration: tokenizer=..."
        ) from error


def _refuse_another(model: PreTrainedModel, folder: Path) -> None:
    """What is written may not be what is in memory: adapters and packed weights are left out."""
    written = read_manifest(folder).backbone
    if written.architecture != type(model).__name__:
        return  # the text part of a model that reads pictures too
    if written.weights_sha256 != parameters_digest(model, gates=False):
        raise EdgeInfiniteError(
            "the checkpoint that transformers writes of this model has other weights than the "
            "model; merge its adapters and undo its quantization first"
        )


def _metadata(model: PreTrainedModel) -> ExportMetadata:
    """What transformers' `ExportedModel` has to know of a call: its inputs and outputs."""
    metadata = ExportMetadata(
        architecture=type(model).__name__,
        packages={package: version(package) for package in _PACKAGES},
        export_dtype="float32",
        export_device="cpu",
        kwargs={name: {"rank": 2, "dtype": "int64"} for name in INPUTS},
    )
    record_output_structure(metadata, CausalLMOutput(logits=torch.zeros(1, 1, 1)))
    return metadata


def _digest(folder: Path) -> str:
    return hashlib.sha256((folder / MANIFEST_FILE).read_bytes()).hexdigest()
