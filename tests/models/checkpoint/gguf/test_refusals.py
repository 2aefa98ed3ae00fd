"""A GGUF file whose keys or tensors aren't all understood is refused by name, before any work."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("gguf")

import gguf
from tiny_gguf import ARCHITECTURES, CONTEXT, write

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.checkpoint.gguf import loading as gguf_loading
from edgeinfinite.models.checkpoint.loading import load_backbone

ONES = np.ones(64, np.float32)
LINEAR = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
YARN = {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}


def refused(path, says):
    with pytest.raises(EdgeInfiniteError, match=says) as caught:
        load_backbone(str(path))
    assert "\n" not in str(caught.value)


@pytest.fixture(autouse=True)
def no_weights(monkeypatch):
    """Whatever is refused here must be before the first weight is read."""

    def read(*_args, **_named):
        raise AssertionError("a weight was read")

    monkeypatch.setattr(gguf_loading, "float_parts", read)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_one_more_key_is_refused_by_its_name(name, tmp_path):
    path = write(tmp_path / "tiny.gguf", name, keys={"strange.setting": 1})
    refused(path, r"its key [\w-]+\.strange\.setting isn't known")


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_one_more_tensor_is_refused_by_its_name(name, tmp_path):
    path = write(tmp_path / "tiny.gguf", name, more={"blk.1.strange.weight": ONES})
    refused(path, r"its tensor blk\.1\.strange\.weight isn't one")


@pytest.mark.parametrize(
    ("name", "keys", "says"),
    [
        ("llama", {"general.strange": 1}, r"general\.strange isn't known"),
        ("llama", {"odd.key": 1}, r"odd\.key isn't known"),
        ("llama", {"general.type": "adapter"}, "LoRA adapter"),
        ("llama", {"general.type": "mmproj"}, "image or audio part"),
        ("llama", {"general.quantization_version": 1}, "quantization_version is 1"),
        ("llama", {"attention.causal": False}, r"llama\.attention\.causal is False"),
        ("gemma3", {"embedding_length": 1}, "settings don't fit together: The hidden size"),
        ("llama", {"block_count": 3}, "block_count is 3, it has tensors of 2 layers"),
        ("llama", {"block_count": 1}, r"block_count is 1, and the file has the tensor blk\.1"),
        ("llama", {"block_count": "2"}, "block_count is '2', which is no whole number"),
        ("llama", {"context_length": None}, r"lacks the key llama\.context_length"),
        ("llama", {"vocab_size": 300}, r"vocab_size is 300, token_embd\.weight has 320 rows"),
        ("llama", {"attention.key_length": 32}, "value_length is 16, keys have 32"),
        ("llama", {"attention.head_count_kv": [2, 1]}, "head_count_kv differs by layer"),
        ("llama", {"rope.dimension_count": 8}, "dimension_count is 8, but llama turns whole heads"),
        ("llama", {"rope.dimension_sections": [8, 4, 4, 0]}, "dimension_sections isn't 0"),
        ("llama", {"rope.scaling.type": "dynamic"}, "scaling.type is 'dynamic'"),
        ("llama", {"rope.scaling.alpha": 2.0}, r"rope\.scaling\.alpha isn't known"),
        ("llama", {"attention.scale": 0.5}, r"llama\.attention\.scale isn't known"),
        ("llama", YARN | {"rope.scaling.yarn_beta_fast": 8.0}, "yarn_beta_fast isn't YaRN's own"),
        ("llama", YARN | {"rope.scaling.yarn_ext_factor": 0.5}, "yarn_ext_factor is 0.5"),
        ("mixtral", {"expert_used_count": 5}, "expert_used_count is 5, of 4 experts"),
        ("granite", {"expert_count": 4}, "expert_count is 4, and granite is read without"),
        ("granite", {"rope.scaling.finetuned": False}, "finetuned is false"),
        ("granite", {"logit_scale": None}, r"lacks the key granite\.logit_scale"),
        ("gemma2", {"rope.freq_base_swa": 500.0}, "Gemma 2 has one base"),
        ("gemma2", {"final_logit_softcapping": 0.0}, "final_logit_softcapping is 0.0"),
        ("gemma3", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping isn't known"),
        ("mistral3", {"attention.temperature_scale": 0.1}, "temperature_scale isn't known"),
        ("lfm2", {"shortconv.l_cache": None}, r"lacks the key lfm2\.shortconv\.l_cache"),
        ("lfm2", {"shortconv.l_cache": 1}, r"shortconv\.l_cache is 1; it must be 2 or more"),
        ("lfm2", {"shortconv.l_cache": 4}, r"conv\.weight has shape \[64, 3\], .* \[64, 1, 4\]"),
        ("lfm2", {"attention.head_count_kv": [0, 2]}, "has 2 entries for 4 layers"),
        ("lfm2", {"attention.head_count_kv": [0, 2, 0, 1]}, "all layers that attend must have the"),
        ("lfm2", {"attention.head_count_kv": [0, 0, 0, 0]}, "must have the same, above 0"),
        ("lfm2", {"attention.head_count_kv": [0, 2, 2, 0]}, "its tensor blk.2.shortconv.conv"),
        ("lfm2", {"attention.sliding_window": 40}, "sliding_window is 40: LFM2 without a window"),
        ("granitehybrid", {"ssm.inner_size": 192}, "inner_size is 192; of Granite it is twice"),
        ("granitehybrid", {"ssm.time_step_rank": 7}, "time_step_rank is 7, of 128 channels"),
        ("granitehybrid", {"ssm.group_count": 3}, "group_count is 3, of 8 heads"),
        ("granitehybrid", {"ssm.conv_kernel": 1}, "conv_kernel is 1; it must be 2 or more"),
        (
            "granitehybrid",
            {"ssm.state_size": None},
            r"lacks the key granitehybrid\.ssm\.state_size",
        ),
        ("granitehybrid", {"rope.dimension_count": 8}, "but granitehybrid turns whole heads"),
        ("granitehybrid-experts", {"expert_shared_feed_forward_length": None}, "without a shared"),
        ("falcon-h1", {"attention.scale": 0.5}, r"falcon-h1\.attention\.scale isn't known"),
        ("gemma3n", {"altup.num_inputs": 3}, "num_inputs is 3: llama.cpp computes with 4"),
        ("gemma3n", {"attention.shared_kv_layers": 2}, "shared_kv_layers is 2: llama.cpp"),
        ("gemma3n", {"activation_sparsity_scale": [0.5] * 6}, "isn't that of a sparsity of 0.95"),
        (
            "gemma3n-shared",
            {"attention.sliding_window_pattern": [index % 5 < 3 for index in range(22)]},
            "cache is read by others",
        ),
        ("gemma4", {"attention.sliding_window_pattern": [True] * 7}, "ends with a sliding layer"),
        ("gemma4", {"attention.shared_kv_layers": 2}, "layer 4, whose cache is read by others"),
        ("gemma4", {"attention.head_count_kv": [2, 2, 1, 1, 2, 2, 1]}, "among layers of one type"),
        ("gemma4-plain", {"attention.head_count_kv": [2, 1, 2, 1]}, "with keys as values alone"),
        ("gemma4", {"feed_forward_length": [96] * 6 + [192]}, "twice as much where caches are"),
        ("gemma4", {"rope.dimension_count_swa": None}, "dimension_count_swa isn't 16"),
        ("gemma4", LINEAR, "scaling.type scales: Gemma 4 with scaled RoPE"),
        ("gemma4", {"expert_count": 4}, "expert_count is 4, and gemma4 is read without"),
        ("olmoe", {"expert_count": None}, "expert_count is 0, and olmoe is read with experts"),
        ("granitemoe", {"logit_scale": None}, r"lacks the key granitemoe\.logit_scale"),
        ("gpt-oss", {"rope.freq_base_swa": 500.0}, "one base for all layers is read"),
        ("lfm2moe", {"expert_gating_func": 1}, r"gating_func is 1: only sigmoid \(2\) is read"),
        ("lfm2moe", {"expert_weights_scale": 2.0}, r"lfm2moe\.expert_weights_scale isn't known"),
        ("lfm2", {"expert_count": 4}, "expert_count is 4, and lfm2 is read without"),
        ("qwen35", {"attention.layer_norm_rms_epsilon": 1e-5}, "delta rule with another than"),
        ("qwen35", {"ssm.group_count": 4}, "group_count is 4, of 6 heads"),
        ("qwen35", {"ssm.inner_size": 64}, "inner_size is 64: 6 heads have 16 dimensions"),
        ("qwen35", {"ssm.conv_kernel": 1}, "conv_kernel is 1; it must be 2 or more"),
        ("qwen35", {"attention.recurrent_layers": [True]}, "doesn't say which of 4 blocks"),
        ("qwen35", {"rope.dimension_sections": [8, 0, 0, 0]}, "angle 1 has no position"),
        ("qwen35", {"rope.dimension_sections": None}, r"lacks the key qwen35\.rope\.dimension_sec"),
        ("qwen35-predicting", {"nextn_predict_layers": 5}, "nextn_predict_layers is 5, of 5"),
        (
            "qwen35-predicting",
            {"nextn_predict_layers": None},
            r"blk\.4\.nextn\.\w+\.weight isn't one",
        ),
    ],
)
def test_a_setting_that_cant_be_right_is_refused_with_its_reason(name, keys, says, tmp_path):
    refused(write(tmp_path / "tiny.gguf", name, keys=keys), says)


@pytest.mark.parametrize(
    ("name", "tensor", "says"),
    [
        ("qwen2", "blk.0.attn_output.bias", r"blk\.0\.attn_output\.bias isn't one"),
        ("qwen2", "output.bias", r"output\.bias isn't one"),
        ("qwen2", "rope_freqs.weight", r"rope_freqs\.weight isn't one"),
        ("llama", "rope_factors_long.weight", "isn't longrope, and the file has rope_factors_long"),
        ("llama", "rope_freqs.weight", r"rope_freqs\.weight isn't 8 positive numbers"),
        ("lfm2", "blk.0.attn_q.weight", r"blk\.0\.attn_q\.weight isn't one"),
        ("lfm2", "blk.1.shortconv.conv.weight", r"blk\.1\.shortconv\.conv\.weight isn't one"),
        ("lfm2", "blk.0.shortconv.conv.bias", r"blk\.0\.shortconv\.conv\.bias isn't one"),
        ("lfm2", "output_norm.weight", r"output_norm\.weight isn't one"),
        ("granitehybrid", "rope_freqs.weight", r"rope_freqs\.weight isn't one"),
        ("falcon-h1", "blk.0.attn_output.bias", r"attn_output\.bias isn't one"),
        ("falcon-h1", "blk.0.ssm_norm.weight", r"ssm_norm\.weight as .* has shape"),
        ("gemma3n", "blk.0.attn_q.bias", r"blk\.0\.attn_q\.bias isn't one"),
        ("gemma4", "rope_freqs.weight", "isn't 16 positive numbers"),
        ("gemma4", "blk.3.attn_v.weight", "differs by layer, which is read with keys as values"),
        ("gemma4-plain", "per_layer_proj_norm.weight", r"per_layer_proj_norm\.weight isn't one"),
        ("granitemoe", "blk.0.ffn_up_shexp.weight", r"ffn_up_shexp\.weight isn't one"),
        ("lfm2moe", "blk.0.ffn_gate_inp.weight", r"blk\.0\.ffn_gate_inp\.weight isn't one"),
        ("mixtral", "blk.0.attn_q.bias", r"blk\.0\.attn_q\.bias isn't one"),
        ("llama", "blk.2.attn_norm.weight", r"block_count is 2, and the file has .*blk\.2"),
        ("llama", "blk.0.attn_q.bias", None),
    ],
)
def test_a_tensor_without_a_place_is_refused_by_its_name(name, tensor, says, tmp_path):
    path = write(tmp_path / "tiny.gguf", name, more={tensor: ONES})
    if says is None:
        with pytest.raises(EdgeInfiniteError, match="a weight was read"):
            load_backbone(str(path))
    else:
        refused(path, says)


def test_a_missing_convolution_is_named(tmp_path):
    lacking = "blk.2.shortconv.conv.weight"
    path = write(tmp_path / "tiny.gguf", "lfm2", without=lacking)
    refused(path, f"lacks the tensor {lacking} for model.layers.2.conv.conv")


@pytest.mark.parametrize(
    ("name", "lacking", "says"),
    [
        ("granitehybrid", "blk.0.ffn_up.weight", "shared_mlp.input_linear"),
        ("granitehybrid", "blk.2.ssm_dt.bias", "mamba.dt_bias"),
        ("granitehybrid-experts", "blk.1.ffn_gate_exps.weight", "experts.gate_up_proj"),
        ("falcon-h1", "blk.1.ssm_a", "mamba.A_log"),
        ("falcon-h1-norm", "blk.1.ssm_norm.weight", "mamba.norm"),
        ("gemma3n", "blk.4.altup_router.weight", "altup.modality_router"),
        ("gemma4", "blk.0.attn_v.weight", "self_attn.v_proj"),
        ("gpt-oss", "blk.1.attn_sinks.weight", "self_attn.sinks"),
        ("gpt-oss", "blk.1.ffn_up_exps.bias", "experts.gate_up_proj_bias"),
        ("lfm2moe", "blk.1.ffn_up.weight", "feed_forward.w3"),
        ("qwen35", "blk.1.ssm_beta.weight", "linear_attn.in_proj_b"),
    ],
)
def test_a_missing_part_of_a_layer_is_named(name, lacking, says, tmp_path):
    path = write(tmp_path / "tiny.gguf", name, without=lacking)
    refused(path, f"lacks the tensor {lacking} for model.layers.{lacking[4]}.*{says}")


@pytest.mark.parametrize("name", ["mixtral", "phi3", "starcoder2", "gemma3", "lfm2"])
def test_a_missing_tensor_is_named(name, tmp_path):
    lacking = "blk.1.attn_output.bias" if name == "starcoder2" else "blk.1.attn_output.weight"
    path = write(tmp_path / "tiny.gguf", name, without=lacking)
    refused(path, f"lacks the tensor {lacking} for model.layers.1")


@pytest.mark.parametrize(
    ("architecture", "says"),
    [
        ("gpt2", "no rotary position embedding"),
        ("falcon", "doesn't use the attention interface"),
        ("mamba", "layers that don't attend"),
        ("minimax-m2", "its experts are chosen with biases"),
        ("qwen3next", "experts beside a gated delta rule"),
        ("made-up", "isn't read from GGUF, only .*gemma, gemma2"),
    ],
)
def test_an_architecture_that_cant_be_right_says_why(architecture, says, tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "tiny.gguf", architecture)
    writer.add_block_count(1)
    writer.add_tensor("token_embd.weight", np.ones((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    refused(tmp_path / "tiny.gguf", says)


def test_a_tensor_type_that_cant_be_read_is_named(tmp_path):
    integers = np.ones((64,), np.int32)
    path = write(tmp_path / "tiny.gguf", more={"blk.0.attn_norm.weight": integers})
    refused(path, r"blk\.0\.attn_norm\.weight is stored as I32")


def test_a_big_endian_file_says_how_to_convert_it(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "t.gguf", "llama", endianess=gguf.GGUFEndian.BIG)
    writer.add_context_length(CONTEXT)
    writer.add_tensor("token_embd.weight", np.ones((4, 4), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    refused(tmp_path / "t.gguf", "big-endian; convert it")


def test_a_file_cut_short_says_where_it_ends(tmp_path):
    path = write(tmp_path / "tiny.gguf")
    path.write_bytes(path.read_bytes()[:-1000])
    refused(path, "ends at byte .*download the file again")


@pytest.mark.parametrize("end", [100, 2000, -1])
def test_a_header_cut_short_anywhere_says_where_it_ends(end, tmp_path):
    path = write(tmp_path / "tiny.gguf", "llama")
    header = gguf.GGUFReader(path).data_offset
    path.write_bytes(path.read_bytes()[: end % header])
    refused(path, "it ends at byte")


def test_strings_that_claim_to_be_longer_than_the_file_are_refused(tmp_path):
    path = write(tmp_path / "tiny.gguf", "llama")
    field = gguf.GGUFReader(path).fields["tokenizer.ggml.tokens"]
    data = bytearray(path.read_bytes())
    at = field.offset + sum(part.nbytes for part in field.parts[:5])
    data[at : at + 8] = (2**63).to_bytes(8, "little")
    path.write_bytes(data)
    refused(path, "it ends at byte")


def test_harmless_metadata_passes(tmp_path):
    keys = {"general.author": "someone", "mradermacher.quantize_version": "2", "pooling_type": 3}
    path = write(tmp_path / "tiny.gguf", keys=keys | {"general.alignment": 32})
    with pytest.raises(EdgeInfiniteError, match="a weight was read"):
        load_backbone(str(path))
