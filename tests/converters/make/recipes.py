"""ai-edge-quantizer's recipes, over models that were made before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ai_edge_quantizer import algorithm_manager, qtyping, quantizer, recipe

from ..cases import Case, Step
from ..files import fit_inputs

__all__ = ["RECIPES", "quantize"]

_ALGORITHM = algorithm_manager.AlgorithmName


def _wide_blocks() -> Any:
    return recipe._dynamic_wix_afp32(num_bits=4, granularity=qtyping.QuantGranularity.BLOCKWISE_128)


def _halves() -> Any:
    return [
        {
            "regex": ".*",
            "operation": name,
            "algorithm_key": "float_casting",
            "op_config": {
                "weight_tensor_config": {"num_bits": 16, "dtype": "FLOAT"},
                "compute_precision": "FLOAT",
                "explicit_dequantize": True,
                "skip_checks": False,
            },
        }
        for name in ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "EMBEDDING_LOOKUP")
    ]


RECIPES: dict[str, Callable[[], Any]] = {
    "dynamic8": recipe.dynamic_wi8_afp32,
    "dynamic4": recipe.dynamic_wi4_afp32,
    "dynamic2": recipe.dynamic_wi2c_afp32,
    "blocks32": recipe.dynamic_wi4b32_afp32,
    "blocks32_8bit": recipe.dynamic_wi8b32_afp32,
    "blocks32_2bit": recipe.dynamic_wi2b32_afp32,
    "blocks128": _wide_blocks,
    "hadamard8": recipe.dynamic_wi8c_hr_afp32,
    "hadamard4": recipe.dynamic_wi4c_hr_afp32,
    "weights8": recipe.weight_only_wi8_afp32,
    "weights4": recipe.weight_only_wi4_afp32,
    "static8": recipe.static_wi8_ai8,
    "static16": recipe.static_wi8_ai16,
    "octav4": lambda: recipe.dynamic_wi4_afp32(algorithm_key=_ALGORITHM.OCTAV),
    "legacy8": recipe.dynamic_legacy_wi8_afp32,
    "halves": _halves,
}


def quantize(name: str, case: Case, short: str) -> Case:
    """The case's model by a recipe, fed the same; the framework's own answers are for the float model and fall away."""
    worker = quantizer.Quantizer(bytearray(case.model), RECIPES[short]())
    calibration = None
    if worker.need_calibration:
        data: dict[str, list[Any]] = {}
        for step in case.steps:
            data.setdefault(step.signature or "serving_default", []).append(dict(step.inputs))
        calibration = worker.calibrate(data, num_threads=1)
    done = worker.quantize(calibration, enable_progress_report=False)
    content = bytes(done.quantized_model)
    if content == case.model:
        raise ValueError(f"the recipe {short} changes nothing in {case.name}")
    steps = [Step(dict(step.inputs), {}, step.signature) for step in case.steps]
    fit_inputs(content, steps)
    return Case(name, f"{case.source}, ai-edge-quantizer {short}", content, steps)
