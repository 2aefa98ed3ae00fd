"""A turned residual stream: the same function, and no channel that is larger than the others."""

from __future__ import annotations

import copy

import pytest
import torch
from architectures import ARCHITECTURES

from edgeinfinite.export.mixing.rotation import TurnedNorm, rotate_residual
from tiny import VOCABULARY, tiny_family, tiny_llama

TEXTS = torch.randint(0, VOCABULARY, (2, 40), generator=torch.Generator().manual_seed(0))

NOT_TURNED = {
    *("Gemma2", "Gemma3", "Glm4", "Olmo2"),  # norms stand behind what writes the stream
    "Cohere",  # its norms take the mean of the channels off
    "NanoChat",  # its norms are no modules with a weight
}


def with_norms(model):
    """Norms that do something: fresh ones multiply by 1."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data += 0.3 * torch.randn(parameter.shape, generator=generator)
        elif name.endswith("bias"):
            parameter.data.normal_(0, 0.3, generator=generator)
    return model.requires_grad_(False).eval()


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_turned_model_computes_the_same(name, tied):
    model = with_norms(tiny_family(name, tie_word_embeddings=tied))
    twin = copy.deepcopy(model)
    turned = rotate_residual(twin)
    assert turned == (ARCHITECTURES[name].family not in NOT_TURNED)
    with torch.inference_mode():
        before = model(input_ids=TEXTS).logits
        after = twin(input_ids=TEXTS).logits
    assert float((after - before).abs().max()) < 1e-4 * float(before.abs().max())
    if not turned:
        assert all(map(torch.equal, model.parameters(), twin.parameters()))
    else:
        assert isinstance(twin.get_decoder().norm, TurnedNorm) == tied


def test_keys_and_values_stay():
    """So a scorer that was trained on them ranks as before, and a session can change engines."""
    model = with_norms(tiny_llama())
    twin = copy.deepcopy(model)
    rotate_residual(twin)
    for before, after in zip(model.model.layers, twin.model.layers, strict=True):
        names = ("self_attn.k_proj", "self_attn.v_proj")
        seen = [_outputs(m, layer, names) for m, layer in ((model, before), (twin, after))]
        for one, other in zip(*seen, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-3, atol=1e-4)


def test_a_large_channel_is_spread_over_the_others():
    model = with_norms(tiny_llama())
    model.model.layers[0].mlp.down_proj.weight[5] *= 100.0
    before = _largest_share(model)
    rotate_residual(model)
    assert before > 3 * _largest_share(model)


def _outputs(model, layer, names):
    seen = []
    handles = [
        layer.get_submodule(name).register_forward_hook(lambda _, __, y: seen.append(y))
        for name in names
    ]
    with torch.inference_mode():
        model(input_ids=TEXTS)
    for handle in handles:
        handle.remove()
    return seen


def _largest_share(model) -> float:
    """The largest channel of what the second layer reads, beside the mean of all."""
    seen = []
    handle = model.model.layers[1].register_forward_pre_hook(lambda _, x: seen.append(x[0]))
    with torch.inference_mode():
        model.model(input_ids=TEXTS)
    handle.remove()
    channels = seen[0].abs().mean((0, 1))
    return float(channels.max() / channels.mean())
