"""SnapKV (arXiv 2404.14469) and PyramidKV (2406.02069): the whole prompt is read with full
attention, then each KV head keeps the pairs that the prompt's last tokens attend to most.

Both look at the last w tokens (the observation window), sum their attention to each earlier token,
take the maximum over neighbours (so that words stay whole), and keep the window and the best of the
rest. SnapKV keeps the same number in every layer, PyramidKV fewer in higher layers. Neither was
written for grouped-query attention; here a KV head takes the mean over its query heads. Pairs keep
their positions in the text, so a prompt must fit the backbone's positions. A layer with a sliding
window holds that window and nothing else, before and after.

Letters: H query heads, K KV heads, T new tokens, n pairs, w observation window, D head dimension,
L layers, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.evaluation.placement import new_tensors_on
from edgeinfinite.evaluation.reader import Footprint, Prediction, measured
from edgeinfinite.models.architecture import architecture_of
from edgeinfinite.models.attention.call import AttentionCall
from edgeinfinite.models.attention.exact import causal_attention, weights_of
from edgeinfinite.models.attention.interface import run_tokens

_CHUNK = 256


@dataclass(frozen=True)
class Compression:
    """A way to compress a prompt.

    Args:
        window: w, the newest tokens, which observe and always stay.
        kernel: width of the maximum over neighbours, odd.
        beta: how steeply the layers' budgets fall: beside the window, the highest layer keeps 1 /
            beta of the average; None keeps the same number in every layer.
    """

    window: int
    kernel: int
    beta: int | None = None


COMPRESSIONS = {
    "snapkv": Compression(window=32, kernel=7),
    "pyramidkv": Compression(window=8, kernel=7, beta=20),
}
"""The values of the papers' own code for LongBench."""


def layer_budgets(compression: Compression, average: int, layers: int, tokens: int) -> list[int]:
    """Pairs that every layer keeps, the window included; their mean is `average`.

    PyramidKV's arithmetic sequence: beside the window, the highest layer keeps 1 / beta of the
    average, the lowest twice the average minus that. No layer keeps more pairs than exist.

    Args:
        compression: how.
        average: pairs of an average layer.
        layers: L.
        tokens: length of the prompt.
    """
    if compression.beta is None or layers == 1 or average >= tokens:
        return [min(average, tokens)] * layers
    spare = average - compression.window
    most = min(2 * spare - spare // compression.beta, tokens - compression.window)
    least = 2 * spare - most
    line = np.linspace(most, least, layers)
    # Rounded so that the sum is exact.
    ends = np.rint(np.cumsum(line)).astype(int)
    return [int(n) + compression.window for n in np.diff(ends, prepend=0)]


def most_attended(
    query: torch.Tensor,
    key: torch.Tensor,
    keep: int,
    kernel: int,
    *,
    scaling: float,
    softcap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """The pairs that SnapKV keeps in one layer.

    Args:
        query: `[H, w, D]`, the prompt's last tokens, after RoPE.
        key: `[K, n, D]`, after RoPE.
        keep: pairs to keep, w < keep <= n.
        kernel: see `Compression`.
        scaling: factor on the scores.
        softcap, sinks: see `AttentionCall`.

    Returns:
        Indices `[K, keep]` in text order; the last w are the window.
    """
    heads, window, _ = query.shape
    kv_heads, pairs, _ = key.shape
    grouped = query.float().reshape(kv_heads, heads // kv_heads * window, -1)
    scores = grouped @ key.float().transpose(1, 2) * scaling
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    scores = scores.reshape(kv_heads, heads // kv_heads, window, pairs)
    future = torch.ones(window, pairs, dtype=torch.bool).triu(pairs - window + 1)
    column = None if sinks is None else sinks.view(kv_heads, -1, 1, 1)
    weights = weights_of(scores.masked_fill(future, float("-inf")), column).to(scores.dtype)
    attention = weights[..., : pairs - window].sum(2)
    pooled = functional.max_pool1d(attention, kernel, stride=1, padding=kernel // 2).mean(1)
    best = pooled.topk(keep - window, dim=-1).indices.sort(-1).values
    newest = torch.arange(pairs - window, pairs).expand(kv_heads, window)
    return torch.cat((best, newest), dim=-1)


class GrowingState:
    """An `AttentionState` that grows with the text and can drop pairs, head by head.

    Args:
        sliding_windows: of the L layers, the newest tokens that a token sees, itself included; 0
            where it sees everything.
        window: w, newest queries to remember.
        dtype: of the cache.
    """

    def __init__(self, sliding_windows: Sequence[int], window: int, dtype: torch.dtype) -> None:
        self.has_memory = torch.zeros(1)
        self.read = 0
        self._slides = tuple(sliding_windows)
        self._window, self._dtype = window, dtype
        layers = len(self._slides)
        self.keys: list[torch.Tensor] = [torch.empty(0)] * layers
        self.values: list[torch.Tensor] = [torch.empty(0)] * layers
        self.queries: list[torch.Tensor] = [torch.empty(0)] * layers
        self._scaling: tuple[float, float | None] = (1.0, None)
        self._sinks: list[torch.Tensor | None] = [None] * layers

    def positions(self, tokens: int) -> torch.Tensor:
        """Positions in the text, whatever was dropped."""
        return (self.read + torch.arange(tokens)).unsqueeze(0)

    def memory_of(self, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Raises: there is no memory."""
        raise NotImplementedError(f"layer {layer} has no memory")

    def attend(self, call: AttentionCall) -> torch.Tensor:
        """See `AttentionState.attend`."""
        layer, query = call.layer, call.query
        key, value = call.key.to(self._dtype), call.value.to(self._dtype)
        if len(self.keys[layer]):
            key = torch.cat((self.keys[layer], key), dim=2)
            value = torch.cat((self.values[layer], value), dim=2)
            observed = torch.cat((self.queries[layer], query), dim=2)
        else:
            observed = query
        pairs, window = key.shape[2], self._slides[layer]
        first = max(0, pairs - (window - 1)) if window else 0  # the next token sees itself, too
        self.keys[layer], self.values[layer] = key[:, :, first:], value[:, :, first:]
        self.queries[layer] = observed[:, :, -self._window :].clone()
        self._scaling, self._sinks[layer] = (call.scaling, call.softcap), call.sinks
        return causal_attention(call, key.to(query.dtype), value.to(query.dtype))

    @property
    def nbytes(self) -> int:
        """Bytes of all pairs."""
        return sum(cache.nbytes for cache in (*self.keys, *self.values))

    def compress(self, compression: Compression, average: int) -> None:
        """Keeps `average` pairs in an average layer that sees everything; drops nothing if there
        are no more.
        """
        scaling, softcap = self._scaling
        layers = [layer for layer, window in enumerate(self._slides) if not window]
        budgets = layer_budgets(compression, average, len(layers), self.read)
        for layer, keep in zip(layers, budgets, strict=True):
            keys, values = self.keys[layer][0], self.values[layer][0]
            if keep >= keys.shape[1]:
                continue
            chosen = most_attended(
                self.queries[layer][0],
                keys,
                keep,
                compression.kernel,
                scaling=scaling,
                softcap=softcap,
                sinks=self._sinks[layer],
            )
            rows = chosen.unsqueeze(-1).expand(-1, -1, keys.shape[-1])
            self.keys[layer] = keys.gather(1, rows).unsqueeze(0)
            self.values[layer] = values.gather(1, rows).unsqueeze(0)


class CompressedPromptReader:
    """Like `methods.Reader`: reads a prompt, compresses the cache, and reads on.

    Args:
        model: attached without gates, on the CPU or a GPU.
        compression: how.
        average: pairs of an average layer after the compression, of those that see everything.
        prompt_tokens: tokens of the text after which the cache is compressed; None if `end_prompt`
            says when.
        dtype: of the cache.

    Raises:
        EdgeInfiniteError: `average` isn't larger than the window, or every layer of the model has
            a sliding window.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        compression: Compression,
        average: int,
        prompt_tokens: int | None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        if average <= compression.window:
            raise EdgeInfiniteError(
                f"{average} slots don't hold more than the {compression.window} tokens of the "
                "observation window; give a larger cache"
            )
        self._model, self._compression, self._average = model, compression, average
        self._prompt_tokens = prompt_tokens
        windows = architecture_of(model).sliding_windows
        if all(windows):
            raise EdgeInfiniteError(
                f"every layer of this model sees its newest {max(windows)} tokens only, so snapkv "
                "and pyramidkv have nothing to choose; leave them out of --methods"
            )
        with new_tensors_on(model.device):
            self._state = GrowingState(windows, compression.window, dtype)
        self._last: torch.Tensor | None = None
        self._peak, self._sum = 0, 0

    @property
    def state_bytes(self) -> int:
        """Bytes of the state as it is now."""
        return self._state.nbytes

    @property
    def footprint(self) -> Footprint:
        """See there."""
        return Footprint(self.state_bytes, self._peak, round(self._sum / max(1, self._state.read)))

    @property
    def logits(self) -> np.ndarray:
        """`[V]` float32 after the last token read."""
        assert self._last is not None, "nothing has been read"
        return self._last[-1].cpu().numpy()

    def skip(self, tokens: Sequence[int], progress: Callable[[int], None] | None = None) -> None:
        """Reads on without measuring."""
        self._run(tokens, 1, progress)

    def read(self, tokens: Sequence[int]) -> Prediction:
        """Reads on and measures."""
        predictions = self._run(tokens, 0, None)
        return Prediction(
            np.concatenate([part.nats for part in predictions]),
            np.concatenate([part.best for part in predictions]),
        )

    def _run(
        self, tokens: Sequence[int], kept: int, progress: Callable[[int], None] | None
    ) -> list[Prediction]:
        state, predictions, at = self._state, [], 0
        while at < len(tokens):
            left = (self._prompt_tokens or 0) - state.read
            count = min(_CHUNK, len(tokens) - at, left if left > 0 else _CHUNK)
            ids = torch.tensor([tokens[at : at + count]], device=self._model.device)
            before = state.nbytes
            with torch.inference_mode(), new_tensors_on(self._model.device):
                logits = run_tokens(self._model, ids, state, logits_to_keep=kept)[0].float()
                if not kept:
                    predictions.append(measured(logits, ids[0], self._last))
                self._last = logits[-1:].clone()
                state.read += count
                at += count
                self._peak = max(self._peak, state.nbytes)
                self._sum += (before + state.nbytes) // 2 * count  # the state grows token by token
                if state.read == self._prompt_tokens:
                    state.compress(self._compression, self._average)
            if progress:
                progress(count)
        return predictions

    def end_prompt(self) -> None:
        """Compresses the cache, unless `prompt_tokens` says when."""
        if self._prompt_tokens is None:
            with torch.inference_mode(), new_tensors_on(self._model.device):
                self._state.compress(self._compression, self._average)

    def save(self) -> Callable[[], None]:
        """Saves the state without a copy: its tensors are replaced, never written to."""
        state = self._state
        kept = list(state.keys), list(state.values), list(state.queries), state.read
        counters = self._last, self._peak, self._sum

        def restore() -> None:
            state.keys, state.values, state.queries = (list(tensors) for tensors in kept[:3])
            state.read = kept[3]
            self._last, self._peak, self._sum = counters

        return restore
