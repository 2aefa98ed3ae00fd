"""Whole decoder layers over chunks of a prompt, one layer after the other.

Mini-sequences keep the MLP's activations small. This keeps all of them small: a layer reads the
prompt chunk by chunk, with its own keys and values of the chunks before, and only then comes the
next layer. So a prefill holds `[T, E]` once, one layer's keys and values, and the activations of
one chunk. Letters: B batch, T tokens, E width, D head dimension.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from edgeinfinite.models.architecture import check_all_attend
from edgeinfinite.models.mini_sequence import LastTokens, MiniSequence, decoder_layers
from edgeinfinite.models.mom.row_rounding import chunks
from edgeinfinite.models.rotary_embedding import rotary_embedding

_LENGTH_DEPENDENT_ROPE = ("dynamic", "longrope")


class LayerChunks(MiniSequence):
    """Patches a model's layers; `remove`, or the end of a `with` block, undoes it.

    The model must be called without gradients, with a KV cache and without a mask. It returns the
    logits of the last `keep` tokens.

    Args:
        model: a supported causal LM.
        size: tokens of a chunk.

    Attributes:
        keep: how many of the last tokens' logits the next call returns. More than one only in a
            call of at most `size` tokens.
        before_chunk: called before each chunk of each layer with the chunk's number of tokens; an
            exception from it ends the call.

    Raises:
        EdgeInfiniteError: the model isn't supported.
    """

    def __init__(self, model: PreTrainedModel, size: int) -> None:
        super().__init__()
        check_all_attend(model, "reading layer by layer")
        self.size = size
        self.before_chunk: Callable[[int], None] | None = None
        layers = decoder_layers(model)
        self._last = LastTokens(model)
        self._undo.append(self._last.remove)
        for layer in layers:
            self._patch(layer, self._layer(layer, is_last=layer is layers[-1]))
        rotary: Any = rotary_embedding(model.get_decoder())
        if not _depends_on_length(rotary):
            self._patch(rotary, self._rotary(rotary.forward))

    @property
    def keep(self) -> int:
        """See the class."""
        return self._last.keep

    @keep.setter
    def keep(self, count: int) -> None:
        self._last.keep = count

    def _patch(self, module: nn.Module, forward: Callable[..., Any]) -> None:
        module.forward = forward
        self._undo.append(lambda: delattr(module, "forward"))

    def _layer(self, layer: nn.Module, *, is_last: bool) -> Callable[..., torch.Tensor]:
        forward = layer.forward
        signature = inspect.signature(forward)

        def by_chunks(*arguments: Any, **named: Any) -> torch.Tensor:
            named |= signature.bind_partial(*arguments).arguments
            hidden: torch.Tensor = named.pop("hidden_states")
            tokens = hidden.shape[1]
            for start, end in chunks(tokens, self.size):
                if self.before_chunk is not None:
                    self.before_chunk(end - start)
                self._last.restart()
                cut = {name: _cut(value, start, end, tokens) for name, value in named.items()}
                part = forward(hidden[:, start:end], **cut)
                part = part[0] if isinstance(part, tuple) else part
                if end - start == tokens or (is_last and end == tokens):
                    return part
                if not is_last:  # of the last layer, keys and values are enough
                    hidden[:, start:end] = part
            return hidden

        return by_chunks

    def _rotary(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def lazily(
            hidden: torch.Tensor, position_ids: torch.Tensor, *arguments: Any, **named: Any
        ) -> Any:
            if position_ids.shape[1] <= self.size:
                return forward(hidden, position_ids, *arguments, **named)
            like = hidden[:, :1]  # only its dtype and device are read
            return _Angles(
                lambda start, end: forward(like, position_ids[:, start:end], *arguments, **named)
            )

        return lazily


class _Angles:
    """RoPE's cosines and sines, computed chunk by chunk: whole, `[2, T, D]` is as much as K and V
    of a small model.
    """

    def __init__(self, of: Callable[[int, int], Any]) -> None:
        self.of = of


def _cut(value: Any, start: int, end: int, tokens: int) -> Any:
    """A layer's argument for tokens `start`..`end - 1`."""
    if isinstance(value, _Angles):
        return value.of(start, end)
    if isinstance(value, tuple):
        return tuple(_cut(part, start, end, tokens) for part in value)
    if isinstance(value, torch.Tensor) and value.dim() > 1 and value.shape[1] == tokens:
        return value[:, start:end]
    return value


def _depends_on_length(rotary: nn.Module) -> bool:
    """Whether RoPE's frequencies depend on the prompt's length, so that chunks would differ."""
    types = getattr(rotary, "rope_type", "default")
    names = types.values() if isinstance(types, dict) else [types]
    return any(kind in str(name) for name in names for kind in _LENGTH_DEPENDENT_ROPE)
