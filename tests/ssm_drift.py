"""How far rounding drives an SSM's state off over a text: the artifact's, and transformers' own.

    python tests/ssm_drift.py 200000                          prints the relative errors
    python tests/ssm_drift.py 200000 --backend executorch     in chunks

A tiny random Granite 4 H whose first layer keeps a state. Its heads forget in half a token to
thousands. Both renew the state in float32, token by token. Beside them stands the same recurrence
with a state in half precision: what half the memory would cost.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import torch
from recurrent_artifacts import exported
from tiny_mamba2 import tiny_granite_h
from torch.nn.functional import conv1d, pad, silu, softplus
from transformers import DynamicCache

from edgeinfinite.runtime_py.session.session import Session
from tiny import random_tokens

FIRST_ALONE = ("linear_attention", "full_attention")
"""What the first layer keeps depends on the tokens alone, whatever is evicted after it."""


def drift(folder: Path, count: int, *options: str) -> dict[str, float]:
    """The relative error of what the first layer keeps after a text, against float64.

    Args:
        folder: for a checkpoint and its artifact.
        count: tokens of the text.
        options: of the export.
    """
    tokens = random_tokens(count)
    session = Session(exported(tiny_granite_h(FIRST_ALONE), folder, *options))
    session.append(tokens)
    model = tiny_granite_h(FIRST_ALONE)
    layer = model.model.layers[0]
    with torch.no_grad():
        rows = model.model.embed_tokens(torch.tensor([tokens])) * model.config.embedding_multiplier
        rows = layer.input_layernorm(rows)
        cache = DynamicCache(config=model.config)
        for at in range(count):
            layer.mamba(rows[:, at : at + 1], cache_params=cache)
        wanted = kept(layer.mamba.double(), rows[0].double())
        halved = kept(layer.mamba, rows[0].double(), half=2048.0 / float(wanted.abs().max()))
    found = {
        "artifact": torch.from_numpy(session.state.arrays["recurrent_state_0"]),
        "transformers": cache.layers[0].recurrent_states[0].transpose(2, 3),
        "float16": halved,
    }
    return {
        name: float((t[0] - wanted).abs().max() / wanted.abs().max()) for name, t in found.items()
    }


def kept(mixer: torch.nn.Module, rows: torch.Tensor, half: float | None = None) -> torch.Tensor:
    """`[U, I, J]` by the recurrence as it is defined, in float64; transformers keeps float32.

    Args:
        mixer: in float64.
        rows: what it reads, `[T, d]`.
        half: the state times this is rounded to float16 after each token; None doesn't.
    """
    sizes = mixer.intermediate_size, mixer.conv_dim, mixer.num_heads
    _, mixed, steps = mixer.in_proj(rows).split(sizes, dim=1)
    mixed = pad(mixed.T, (mixer.conv_kernel_size - 1, 0))[None]
    mixed = conv1d(mixed, mixer.conv1d.weight, mixer.conv1d.bias, groups=mixer.conv_dim)
    of_key = mixer.n_groups * mixer.ssm_state_size
    values, keys, _ = silu(mixed)[0].T.split((mixer.intermediate_size, of_key, of_key), dim=1)
    steps = softplus(steps + mixer.dt_bias)
    decays = (-mixer.A_log.exp() * steps).exp()
    values = values.unflatten(1, (mixer.num_heads, -1)) * steps.unsqueeze(-1)
    keys = keys.unflatten(1, (mixer.n_groups, -1))
    keys = keys.repeat_interleave(mixer.num_heads // mixer.n_groups, dim=1)
    state = torch.zeros(mixer.num_heads, mixer.ssm_state_size, mixer.head_dim, dtype=rows.dtype)
    for key, value, decay in zip(keys, values, decays, strict=True):
        state = state * decay[:, None, None] + key.unsqueeze(-1) * value.unsqueeze(1)
        if half is not None:
            state = (state * half).half().to(rows.dtype) / half
    return state


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(drift(Path(scratch), int(sys.argv[1]), *sys.argv[2:]))
