"""GGUF's architectures of Gemma whose layers read earlier ones' caches: Gemma 3n and 4."""

from __future__ import annotations

from collections.abc import Mapping

from edgeinfinite.models.checkpoint.gguf.architecture import (
    ATTENTION,
    GEMMA_NORMS,
    HEAD_NORMS,
    MLP,
    GgufArchitecture,
)
from edgeinfinite.models.checkpoint.gguf.places import To

ALTUP = 4
"""Streams of Gemma 3n's AltUp; llama.cpp knows no other number."""

_EMBEDDINGS_BY_LAYER = {
    "per_layer_token_embd": "embed_tokens_per_layer",
    "per_layer_model_proj": "per_layer_model_projection",
    "per_layer_proj_norm": "per_layer_projection_norm",
}
_INPUT_OF_LAYER = {
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
}
_LAYER = ATTENTION | MLP | GEMMA_NORMS | HEAD_NORMS | _INPUT_OF_LAYER

GEMMAS: Mapping[str, GgufArchitecture] = {
    "gemma3n": GgufArchitecture(
        "gemma3n_text",
        layer=_LAYER
        | {
            "altup_correct_coef": "altup.correction_coefs",
            "altup_correct_scale.weight": To("altup.correct_output_scale"),
            "altup_predict_coef": "altup.prediction_coefs",
            "altup_router": "altup.modality_router",
            "altup_router_norm": "altup.router_norm",
            "laurel_l": "laurel.linear_left",
            "laurel_r": "laurel.linear_right",
            "laurel_post_norm": "laurel.post_laurel_norm",
        },
        model=_EMBEDDINGS_BY_LAYER
        | {
            "altup_proj.weight": To("altup_projections.{}.weight", each=ALTUP - 1),
            "altup_unembd_proj.weight": To("altup_unembed_projections.{}.weight", each=ALTUP - 1),
        },
        own_head=True,
    ),
    "gemma4": GgufArchitecture(
        "gemma4_text",
        layer=_LAYER | {"layer_output_scale.weight": To("layer_scalar")},
        model=_EMBEDDINGS_BY_LAYER,
        by_layer=True,
        own_head=True,
        rope_tensors=("rope_freqs",),
    ),
}
