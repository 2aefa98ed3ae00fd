"""Weights in 4 bits by our rounding and by libraries', on one checkpoint and one set of texts.

python experiments/quantizers.py CHECKPOINT ROWS.jsonl --calibrate TEXT --data HELD_OUT/*.txt \
    --methods nearest,gptq,awq,awq-gptq,ort-nearest,ort-k-quant,ort-hqq,ort-gptq,torchao,torchao-hqq
python experiments/quantizers.py CHECKPOINT ROWS.jsonl --calibrate TEXT --data HELD_OUT/*.txt \
    --methods llmcompressor-gptq          # in an environment of its own; also autoround, gptqmodel

All linear layers but the LM head get groups of 32 with zero points (`torchao-hqq` has none). They
are computed with in float32, so that only the choice of the codes differs; embedding and head stay
as they are. Every method that calibrates reads the same 8 stretches of 512 tokens. A row has the
mean loss above that of the checkpoint, with its 95 % interval over documents, and the seconds of
processor time of rounding. Our own methods and `ort-gptq` share the statistics of one reading,
`reading_s`.

`ort-gptq` calls the function behind onnxruntime's GPTQ with these statistics: its quantizer wants a
whole ONNX model, and runs it again for every layer.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer

GROUP = 32
_LENGTH = 512
_STRETCHES = 8


def main() -> None:
    """The script."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--calibrate", type=Path, required=True)
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--methods", required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = AutoTokenizer.from_pretrained(options.checkpoint)
    texts = [_tokens(tokenizer, path, options.tokens, 20_000) for path in options.data]
    calibration = _stretches(tokenizer, options.calibrate)
    model = AutoModelForCausalLM.from_pretrained(options.checkpoint, dtype=torch.float32)
    model.eval().requires_grad_(False)
    kept = options.rows.with_suffix(".base.json")
    if kept.exists():
        base = json.loads(kept.read_text())
    else:
        base = _losses(model, texts)
        kept.write_text(json.dumps(base))
    shared = Shared(model, calibration)
    for method in options.methods.split(","):
        started = time.process_time()
        reading = shared.reading_s
        changed = METHODS[method](shared, tokenizer)
        seconds = time.process_time() - started - (shared.reading_s - reading)
        row = {"checkpoint": options.checkpoint.name, "method": method, "tokens": options.tokens}
        differences = np.subtract(_losses(changed, texts), base)
        spread = statistics.stdev(differences) / len(differences) ** 0.5 * 2.365
        row |= {"nats": round(float(differences.mean()), 4), "interval": round(spread, 4)}
        row |= {"rounding_s": round(seconds, 1), "reading_s": round(shared.reading_s, 1)}
        row |= {"threads": options.threads, "documents": len(texts)}
        with options.rows.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)
        shared.restore()


class Shared:
    """The model with its float weights, and the statistics of the texts, taken once."""

    def __init__(self, model: Any, calibration: list[list[int]]) -> None:
        self.model, self.calibration = model, calibration
        self.reading_s = 0.0
        self._floats = {name: p.clone() for name, p in model.named_parameters()}
        self._found: Any = None

    def statistics(self) -> Any:
        """Of all weights, by name; copies, because scaling changes them."""
        from edgeinfinite.export.mixing.curvature import WeightStatistics, collect

        if self._found is None:
            started = time.process_time()
            self._found = collect(self.model, self.calibration, lambda *_: None)
            self.reading_s = time.process_time() - started
        copies: dict[int, torch.Tensor] = {}
        return {
            name: WeightStatistics(
                None
                if found.inputs is None
                else copies.setdefault(id(found.inputs), found.inputs.clone()),
                found.outputs,
                found.looked_up,
                found.gradients,
                found.forwards,
            )
            for name, found in self._found.items()
        }

    def linears(self) -> Iterator[tuple[str, nn.Linear]]:
        """All but the LM head."""
        head = self.model.get_output_embeddings()
        for name, module in self.model.named_modules():
            if isinstance(module, nn.Linear) and module is not head:
                yield name, module

    def replace(self, rounded: Callable[[str, torch.Tensor], torch.Tensor]) -> Any:
        """The model, every linear weight replaced."""
        for name, linear in self.linears():
            linear.weight.data = rounded(f"{name}.weight", linear.weight.detach()).float()
        return self.model

    def restore(self) -> None:
        """The float weights; what a library added beside them stays."""
        for name, weight in self._floats.items():
            self.model.get_parameter(name).data = weight.clone()


def _tokens(tokenizer: Any, path: Path, count: int, start: int) -> list[int]:
    text = path.read_text(encoding="utf-8", errors="ignore")[start : start + 16 * count]
    return list(tokenizer(text).input_ids)[:count]


def _stretches(tokenizer: Any, path: Path) -> list[list[int]]:
    from edgeinfinite.export.mixing.calibration import calibration_texts

    text = path.read_text(encoding="utf-8")
    return [list(s) for s in calibration_texts(tokenizer, text, sequences=_STRETCHES).short]


@torch.inference_mode()
def _losses(model: Any, texts: list[list[int]]) -> list[float]:
    """Mean nats a token of each text, the logits in parts."""
    found = []
    for text in texts:
        ids = torch.tensor([text])
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0]
        head, total = model.get_output_embeddings(), 0.0
        for start in range(0, len(text) - 1, 64):
            part = hidden[start : min(start + 64, len(text) - 1)]
            wanted = ids[0, start + 1 : start + 1 + len(part)]
            total += float(nn.functional.cross_entropy(head(part).float(), wanted, reduction="sum"))
        found.append(total / (len(text) - 1))
    return found


def _nearest(shared: Shared, _: Any) -> Any:
    from edgeinfinite.export.onnx import BACKEND
    from edgeinfinite.export.recipes import WeightFormat

    form = WeightFormat(4, GROUP, symmetric=False)
    return shared.replace(lambda _, weight: BACKEND.rounded(weight, form, embedding=False)[0])


def _ours(*, scaled: bool, by_inputs: bool) -> Callable[[Shared, Any], Any]:
    def run(shared: Shared, tokenizer: Any) -> Any:
        from edgeinfinite.export.mixing.rounding import inverse_factor, round_by_inputs
        from edgeinfinite.export.mixing.scaling import scale_inputs
        from edgeinfinite.export.onnx import BACKEND
        from edgeinfinite.export.recipes import WeightFormat

        found = shared.statistics()
        if scaled:
            scale_inputs(shared.model, found, ())
        if not by_inputs:
            return _nearest(shared, tokenizer)
        form = WeightFormat(4, GROUP, symmetric=False)
        last: list[Any] = [None, None]

        def rounded(name: str, weight: torch.Tensor) -> torch.Tensor:
            inputs = found[name].inputs
            if inputs is not last[0]:
                last[:] = inputs, inverse_factor(inputs)
            return round_by_inputs(weight, last[1], form, BACKEND.menu.scale_type).dequantized()

        return shared.replace(rounded)

    return run


def _onnxruntime(name: str) -> Callable[[Shared, Any], Any]:
    """Through `MatMulNBitsQuantizer`, weight by weight."""

    def run(shared: Shared, _: Any) -> Any:
        from onnxruntime.quantization import matmul_nbits_quantizer as ort

        def config() -> Any:
            if name == "hqq":
                return ort.HQQWeightOnlyQuantConfig(block_size=GROUP, bits=4)
            if name == "k-quant":
                return ort.KQuantWeightOnlyQuantConfig()
            return ort.DefaultWeightOnlyQuantConfig(block_size=GROUP, is_symmetric=False)

        def rounded(_: str, weight: torch.Tensor) -> torch.Tensor:
            quantizer = ort.MatMulNBitsQuantizer(
                _product(weight.numpy()), 4, GROUP, is_symmetric=False, algo_config=config()
            )
            quantizer.process()
            return torch.from_numpy(_weight_of(quantizer.model.model, weight.shape))

        return shared.replace(rounded)

    return run


def _product(weight: np.ndarray) -> Any:
    """An ONNX model of one MatMul."""
    from onnx import TensorProto, helper, numpy_helper

    rows, columns = weight.shape
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, columns])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, rows])
    held = numpy_helper.from_array(np.ascontiguousarray(weight.T), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    graph = helper.make_graph([node], "product", [given], [made], [held])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _weight_of(model: Any, shape: Any) -> np.ndarray:
    """What onnxruntime computes with: the quantized product of the identity."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    columns = shape[1]
    products = [
        session.run(None, {"x": row[None]})[0][0] for row in np.eye(columns, dtype=np.float32)
    ]
    return np.stack(products, 1)


def _onnxruntime_gptq(shared: Shared, _: Any) -> Any:
    from onnxruntime.quantization.neural_compressor.weight_only import gptq

    found = shared.statistics()

    def rounded(name: str, weight: torch.Tensor) -> torch.Tensor:
        inputs = found[name].inputs.double().numpy().copy()
        made = gptq(weight.numpy().T.copy(), inputs, 4, GROUP, "asym")
        return torch.from_numpy(np.ascontiguousarray(made.T))

    return shared.replace(rounded)


def _torchao(algorithm: str) -> Callable[[Shared, Any], Any]:
    def run(shared: Shared, _: Any) -> Any:
        from torchao.quantization import IntxWeightOnlyConfig, PerGroup, quantize_
        from torchao.quantization.quant_primitives import MappingType

        config = IntxWeightOnlyConfig(
            weight_dtype=torch.int4,
            granularity=PerGroup(GROUP),
            mapping_type=MappingType.SYMMETRIC if algorithm else MappingType.ASYMMETRIC,
            intx_choose_qparams_algorithm=algorithm or "affine",
        )

        def rounded(_: str, weight: torch.Tensor) -> torch.Tensor:
            linear = nn.Linear(*reversed(weight.shape), bias=False)
            linear.weight.data = weight.clone()
            holder = nn.Sequential(linear)
            quantize_(holder, config)
            return holder[0].weight.dequantize()

        return shared.replace(rounded)

    return run


def _llmcompressor(shared: Shared, tokenizer: Any) -> Any:
    """GPTQModifier, layer by layer; its weights are rounded in place."""
    from datasets import Dataset
    from llmcompressor import oneshot
    from llmcompressor.modifiers.quantization import GPTQModifier

    arguments = {
        "num_bits": 4,
        "type": "int",
        "symmetric": False,
        "strategy": "group",
        "group_size": GROUP,
    }
    groups = {"group_0": {"targets": ["Linear"], "weights": arguments}}
    data = Dataset.from_list(
        [{"input_ids": s, "attention_mask": [1] * len(s)} for s in shared.calibration]
    )
    recipe = [GPTQModifier(config_groups=groups, ignore=["lm_head"])]
    oneshot(
        model=shared.model,
        tokenizer=tokenizer,
        dataset=data,
        recipe=recipe,
        max_seq_length=_LENGTH,
        num_calibration_samples=_STRETCHES,
    )
    return shared.model


def _autoround(shared: Shared, tokenizer: Any) -> Any:
    """AutoRound with 20 steps a layer."""
    from auto_round import AutoRound

    data = [{"input_ids": torch.tensor([s])} for s in shared.calibration]
    rounder = AutoRound(
        shared.model,
        tokenizer,
        bits=4,
        group_size=GROUP,
        sym=False,
        iters=20,
        nsamples=_STRETCHES,
        seqlen=_LENGTH,
        batch_size=4,
        dataset=data,
        device="cpu",
    )
    model, _ = rounder.quantize()
    return model


METHODS: dict[str, Callable[[Shared, Any], Any]] = {
    "nearest": _nearest,
    "gptq": _ours(scaled=False, by_inputs=True),
    "awq": _ours(scaled=True, by_inputs=False),
    "awq-gptq": _ours(scaled=True, by_inputs=True),
    "ort-nearest": _onnxruntime("nearest"),
    "ort-k-quant": _onnxruntime("k-quant"),
    "ort-hqq": _onnxruntime("hqq"),
    "ort-gptq": _onnxruntime_gptq,
    "torchao": _torchao(""),
    "torchao-hqq": _torchao("hqq_scale_only"),
    "llmcompressor-gptq": _llmcompressor,
    "autoround": _autoround,
}


if __name__ == "__main__":
    main()
