"""Mini-sequences (MOM, arXiv 2504.12526): a prompt's MLPs in chunks, its last layer for one token.

The largest activations of a prefill are the MLP's, `[B, T, 3 * intermediate]`, and the LM head's,
`[B, T, V]`. A token's MLP doesn't depend on other tokens, so it runs over `size` tokens at a time.
Of the last layer, only the last token's output is read. So what follows its attention, the final
norm and the LM head run for that token alone. Letters: B batch, T tokens, E width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.mom.row_rounding import chunks, like_many

_MLP_NAMES = ("mlp", "feed_forward", "ffn", "block_sparse_moe")
_OUTPUT_PROJECTIONS = ("o_proj", "out_proj", "dense")


class MiniSequence:
    """What `apply_mini_sequence` changed; `remove`, or the end of a `with` block, undoes it."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def remove(self) -> None:
        """Gives the model its own forward pass back; a second call does nothing."""
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()


def apply_mini_sequence(
    model: PreTrainedModel, size: int, *, last_token_only: bool = True
) -> MiniSequence:
    """Lets a model read long prompts with small activations and the same logits.

        with apply_mini_sequence(model, 512):
            logits = model(tokens).logits  # [B, 1, V]

    Batches work; pad them on the left, as `generate` does, because the last position is kept.

    Args:
        model: a causal LM of transformers whose decoder layers have an MLP.
        size: tokens that an MLP reads at a time.
        last_token_only: the model returns the logits of the last token, `[B, 1, V]`. False returns
            what the model would, `[B, T, V]`, and only runs the MLPs in chunks.

    Raises:
        EdgeInfiniteError: `size` is below 1, the model has no MLPs, or it is applied already.
    """
    if size < 1:
        raise EdgeInfiniteError(f"mini-sequence size is {size}; give at least 1 token")
    layers = decoder_layers(model)
    mlps = [_mlp_of(model, layer) for layer in layers]
    if any("forward" in vars(mlp) for mlp in mlps):
        raise EdgeInfiniteError("the model has mini-sequences already; remove them first")
    applied = MiniSequence()
    for mlp in mlps:
        mlp.forward = _by_chunks(mlp.forward, size)
        applied._undo.append(lambda mlp=mlp: delattr(mlp, "forward"))  # type: ignore[misc]
    if last_token_only:
        last = LastTokens(model)
        applied._undo.append(last.remove)
    return applied


def decoder_layers(model: PreTrainedModel) -> list[nn.Module]:
    """The decoder's layers, first to last.

    Raises:
        EdgeInfiniteError: the model isn't a decoder, or doesn't have its layers where
            transformers' decoders of today have them.
    """
    decoder = None if model.config.is_encoder_decoder else model.get_decoder()
    layers = list(getattr(decoder, "layers", []))
    if not layers:
        raise _refused(model, "its decoder has no list of layers")
    return layers


class LastTokens:
    """Hooks on the last layer: what follows its attention runs for the last `keep` tokens alone.

    The layer's residual is added by broadcasting (one token) or isn't needed (see `keep`), so its
    output is right for the kept tokens only, and only they leave the layer. One token's products
    are computed in as many rows as round like the whole prompt's.

    Args:
        model: a causal LM whose layers have an MLP.

    Attributes:
        keep: how many of the last tokens to compute. With more than one, what follows the
            attention runs for all tokens, and only the layer's output is cut.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.keep = 1
        self._attended = False
        self._tokens = 1
        layer = decoder_layers(model)[-1]
        attention = getattr(layer, "self_attn", None)
        self._handles: list[RemovableHandle] = [
            layer.register_forward_pre_hook(self._begin, with_kwargs=True),
            layer.register_forward_hook(self._end),
        ]
        if attention is not None:
            self._cut_layer(model, layer, attention)
        head = model.get_output_embeddings()
        if isinstance(head, nn.Module):
            self._round_like_many(head)

    def _cut_layer(self, model: PreTrainedModel, layer: nn.Module, attention: nn.Module) -> None:
        mlp = _mlp_of(model, layer)
        self._handles.append(attention.register_forward_hook(self._after_attention))
        projection = _first(attention, _OUTPUT_PROJECTIONS)
        if projection is not None:
            self._handles.append(projection.register_forward_pre_hook(self._cut_input))
            self._round_like_many(projection)
        for child in layer.children():
            if child is not attention:
                cut = child.register_forward_pre_hook(self._cut_after_attention)
                self._handles.append(cut)
        self._round_like_many(mlp)

    def restart(self) -> None:
        """Before another run of the layer's own forward."""
        self._attended = False

    def remove(self) -> None:
        """Removes the hooks."""
        for handle in self._handles:
            handle.remove()

    def _begin(self, module: nn.Module, arguments: Any, named: Any) -> None:
        self.restart()
        hidden = arguments[0] if arguments else named["hidden_states"]
        self._tokens = hidden.shape[1]

    def _after_attention(self, module: nn.Module, arguments: Any, output: Any) -> None:
        self._attended = True

    def _cut_after_attention(self, module: nn.Module, arguments: Any) -> Any:
        return self._cut_input(module, arguments) if self._attended else None

    def _cut_input(self, module: nn.Module, arguments: Any) -> Any:
        if self.keep > 1 or not arguments or not isinstance(arguments[0], torch.Tensor):
            return None
        return arguments[0][:, -1:].contiguous(), *arguments[1:]

    def _round_like_many(self, module: nn.Module) -> None:
        """Lets a module compute one token's row several times, and keeps one of them."""
        repeats = False

        def repeat(_: nn.Module, arguments: Any) -> Any:
            nonlocal repeats
            row = arguments[0] if arguments else None
            repeats = False
            if self._tokens < 2 or not isinstance(row, torch.Tensor) or row.dim() != 3:
                return None
            repeats = row.shape[1] == 1
            if not repeats:
                return None
            rows = row.expand(-1, like_many(self._tokens), -1).contiguous()
            return rows, *arguments[1:]

        def last(_: nn.Module, __: Any, output: torch.Tensor) -> Any:
            return output[:, -1:] if repeats else None

        self._handles.append(module.register_forward_pre_hook(repeat))
        self._handles.append(module.register_forward_hook(last))

    def _end(self, module: nn.Module, arguments: Any, output: Any) -> Any:
        self.restart()
        if isinstance(output, tuple):
            return output[0][:, -self.keep :], *output[1:]
        return output[:, -self.keep :]


def _by_chunks(forward: Callable[..., Any], size: int) -> Callable[..., Any]:
    """`[B, T, E]` → `[B, T, E]`, about `size` tokens at a time, see `mom.row_rounding.chunks`."""

    def chunked(hidden: torch.Tensor, *arguments: Any, **named: Any) -> Any:
        tokens = hidden.shape[1] if hidden.dim() == 3 else 0
        bounds = list(chunks(tokens, size))
        if len(bounds) < 2:
            return forward(hidden, *arguments, **named)

        def part(start: int, end: int) -> torch.Tensor:
            # Contiguous, because mixtures of experts `view` their input.
            result: torch.Tensor = forward(hidden[:, start:end].contiguous(), *arguments, **named)
            return result

        if torch.is_grad_enabled():
            return torch.cat([part(*pair) for pair in bounds], 1)
        whole = torch.empty_like(hidden)
        for start, end in bounds:
            whole[:, start:end] = part(start, end)
        return whole

    return chunked


def _mlp_of(model: PreTrainedModel, layer: nn.Module) -> nn.Module:
    mlp = _first(layer, _MLP_NAMES)
    if mlp is None:
        raise _refused(model, f"its {type(layer).__name__} has no MLP submodule")
    return mlp


def _first(module: nn.Module, names: tuple[str, ...]) -> nn.Module | None:
    found = (getattr(module, name, None) for name in names)
    return next((child for child in found if isinstance(child, nn.Module)), None)


def _refused(model: PreTrainedModel, lacks: str) -> EdgeInfiniteError:
    return EdgeInfiniteError(
        f"{type(model).__name__} can't be read in mini-sequences: {lacks}; use a decoder such as "
        "Llama, Qwen, Mistral, SmolLM, Phi-3, Granite, OLMo or Gemma"
    )
