"""Runs an artifact for transformers' `ExportedModel`. T tokens of one text, V vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from transformers.exporters import ExportMetadata, ModelRunner

from edgeinfinite.artifact.manifest import load_manifest
from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.export.hf.exporter import ArtifactProgram
from edgeinfinite.runtime_py.answer.generation import MAX_NEW_TOKENS, Generation
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.runtime_py.engines import Engine, load_engine
from edgeinfinite.runtime_py.session.session import Session
from edgeinfinite.runtime_py.text.tokenizer import load_tokenizer


class EdgeInfiniteModelRunner(ModelRunner):
    """One text at a time, of any length, on the CPU. Every call begins a new text.

    Args:
        engine: the artifact's.
        stop_ids: tokens that end an answer.
        metadata: what the exporter recorded.
    """

    def __init__(self, engine: Engine, stop_ids: frozenset[int], metadata: ExportMetadata) -> None:
        super().__init__(metadata)
        self.engine = engine
        self.stop_ids = stop_ids

    @classmethod
    def from_program(
        cls,
        program: ArtifactProgram,
        metadata: ExportMetadata,
        device: torch.device | str | None = None,
        threads: int | None = None,
    ) -> EdgeInfiniteModelRunner:
        """Opens the artifact.

        Args:
            program: as exported or loaded.
            metadata: its own.
            device: None or the CPU.
            threads: CPU threads, None for the engine's default.

        Raises:
            EdgeInfiniteError: another device is asked for, or as in `load_engine`.
        """
        if device is not None and torch.device(device).type != "cpu":
            raise EdgeInfiniteError(f"an artifact runs on the CPU; leave out the device {device}")
        manifest = load_manifest(program.folder)
        tokenizer = load_tokenizer(program.folder, vocabulary=manifest.backbone.vocabulary)
        engine = load_engine(program.folder, manifest=manifest, threads=threads)
        return cls(engine, frozenset(tokenizer.stop_ids), metadata)

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    def __call__(
        self,
        share_inputs: bool = True,
        share_outputs: bool = False,
        *,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
    ) -> Any:
        """Reads a text.

        Args:
            share_inputs, share_outputs: change nothing here.
            input_ids: int64 [1, T].
            attention_mask: ones [1, T].

        Returns:
            The model's output with the logits of the last token, float32 [1, 1, V], as the model
            gives for `logits_to_keep=1`.

        Raises:
            EdgeInfiniteError: more than one text, padding, or as in `Session.append`.
        """
        logits = Session(self.engine).append(_tokens(input_ids, attention_mask))
        return self.unflatten([torch.from_numpy(logits)[None, None]])

    def generate(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        max_new_tokens: int = MAX_NEW_TOKENS,
        **sampling: Any,
    ) -> torch.Tensor:
        """Answers as `model.generate` does, until a token that ends an answer.

        Args:
            input_ids: int64 [1, T].
            attention_mask: ones [1, T].
            max_new_tokens: the most that the answer may have.
            sampling: of `SamplingOptions`; without any, the likeliest token.

        Returns:
            int64 [1, T + new], without the token that ended the answer.

        Raises:
            EdgeInfiniteError: more than one text, padding, or an option is out of range.
        """
        tokens = _tokens(input_ids, attention_mask)
        sampler = Sampler(SamplingOptions(**sampling))
        answer = Generation(
            Session(self.engine),
            tokens,
            sampler=sampler,
            stop_ids=self.stop_ids,
            max_new_tokens=max_new_tokens,
        )
        return torch.tensor([[*tokens, *answer]])


def _tokens(input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> list[int]:
    if input_ids.dim() != 2 or len(input_ids) != 1:
        raise EdgeInfiniteError(
            f"an artifact reads one text at a time, [1, T]; input_ids is {list(input_ids.shape)}"
        )
    if attention_mask is not None and not bool((attention_mask == 1).all()):
        raise EdgeInfiniteError("attention_mask hides tokens; give the text without padding")
    tokens: list[int] = input_ids[0].tolist()
    return tokens
