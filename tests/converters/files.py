"""What is read from a file without any interpreter: LiteRT's own table classes of the format."""

from __future__ import annotations

from typing import Any

import numpy as np
from ai_edge_litert import schema_py_generated as schema

from .cases import Array, Step

__all__ = ["fit_inputs", "opened", "operators"]

#: numpy's types of those tensors whose inputs a framework gives otherwise: wider, or not quantized.
_INTEGERS = {
    schema.TensorType.INT8: np.int8,
    schema.TensorType.UINT8: np.uint8,
    schema.TensorType.INT16: np.int16,
    schema.TensorType.INT32: np.int32,
    schema.TensorType.INT64: np.int64,
}


def opened(model: bytes) -> Any:
    """The tables of a model, as objects."""
    return schema.ModelT.InitFromPackedBuf(model, 0)


def fit_inputs(model: bytes, steps: list[Step]) -> None:
    """Turn inputs into the types that the signatures have: a converter narrows 64 bits to 32, a quantizer asks for integers."""
    tables = opened(model)
    signatures = {found.signatureKey.decode(): found for found in tables.signatureDefs or []}
    for step in steps:
        found = signatures.get(step.signature or "")
        for entry in found.inputs if found else []:
            tensor = tables.subgraphs[found.subgraphIndex].tensors[entry.tensorIndex]
            name, kind = entry.name.decode(), _INTEGERS.get(tensor.type)
            value: Array | None = step.inputs.get(name)
            if value is None or kind is None:
                continue
            if value.dtype.kind == "f":
                limits, scale, zero = np.iinfo(kind), tensor.quantization.scale[0], tensor.quantization.zeroPoint[0]
                value = np.clip(np.round(value / scale) + zero, limits.min, limits.max)
            step.inputs[name] = value.astype(kind)


_NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}


def operators(model: bytes) -> list[str]:
    """The names of the operators in a model, each once."""
    return sorted({operator_name(code) for code in opened(model).operatorCodes or []})


def operator_name(code: Any) -> str:
    """The name of an operator code; a custom one's own name."""
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    name = code.customCode.decode() if code.customCode else ""
    return name or _NAMES[number]
