"""The rules of the format that the FlatBuffer's own structure does not say, checked before anything runs.

One pass over the tables, linear in their number. What a kernel wants of its node, the kernel checks.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oplet.errors import ModelError
from oplet.model.model import Model, operator_code
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["bytes_needed", "verify"]

#: Bits of one value of each packed type.
PACKED_BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
_BITS = {
    TensorType.FLOAT32: 32, TensorType.FLOAT16: 16, TensorType.INT32: 32, TensorType.UINT8: 8, TensorType.INT64: 64,
    TensorType.BOOL: 8, TensorType.INT16: 16, TensorType.COMPLEX64: 64, TensorType.INT8: 8, TensorType.FLOAT64: 64,
    TensorType.COMPLEX128: 128, TensorType.UINT64: 64, TensorType.UINT32: 32, TensorType.UINT16: 16,
    TensorType.BFLOAT16: 16, TensorType.FLOAT8_E4M3FN: 8, TensorType.FLOAT8_E5M2: 8, **PACKED_BITS,
}  # fmt: skip
_LARGEST = 2**63 - 1


def bytes_needed(shape: Iterable[int], type: TensorType) -> int | None:
    """Bytes that a tensor's values take in a file; None for strings, resources and variants, which have no fixed size."""
    bits = _BITS.get(type)
    if bits is None:
        return None
    count = 1
    for dim in shape:
        count *= int(dim)
    return (count * bits + 7) // 8


def verify(model: Model) -> None:
    """Check a model's indices, shapes, buffers, quantization, signatures and the order of its graph.

    Raises:
        ModelError: a rule is broken; the message names the subgraph, node or tensor and the value.
    """
    root = model.root
    if not root.subgraphs:
        raise ModelError(f"No subgraph in the model. {model.name} has no 'subgraphs'; convert it again.")
    if not root.buffers:
        raise ModelError(f"No buffers in the model. {model.name} has no 'buffers'; convert it again.")
    if root.buffers[0].data is not None and root.buffers[0].data.size:
        raise ModelError("The 0th entry of the model buffer must be an empty buffer. Tensors without data refer to it.")
    _verify_operator_codes(root)
    for index, subgraph in enumerate(root.subgraphs):
        _verify_subgraph(model, subgraph, f"subgraph {index}" + (f" ('{subgraph.name}')" if subgraph.name else ""))
    _verify_signatures(root)


def _verify_operator_codes(root: tables.Model) -> None:
    highest = max(BuiltinOperator)
    known = set(BuiltinOperator)
    for index, code in enumerate(root.operator_codes or []):
        number = operator_code(code)
        if number not in known:
            raise ModelError(
                f"Op builtin_code out of range: {number}. Are you using old TFLite binary with newer model? "
                f"Operator code {index} is not in this schema, whose highest is {int(highest)} ({highest.name}); upgrade oplet."
            )
        if number == BuiltinOperator.CUSTOM and not code.custom_code:
            raise ModelError(f"Operator with CUSTOM builtin_code has no custom_code. It is operator code {index}.")


def _verify_subgraph(model: Model, subgraph: tables.SubGraph, where: str) -> None:
    tensors = subgraph.tensors or []
    count = len(tensors)
    if subgraph.tensors is None:
        raise ModelError(f"Did not get tensors in {where}. The subgraph has no 'tensors'.")
    for index, tensor in enumerate(tensors):
        _verify_tensor(model, tensor, f"Tensor {index} ('{tensor.name or ''}') of {where}")
    for role, indices in (("input", subgraph.inputs), ("output", subgraph.outputs)):
        for position, index in enumerate(() if indices is None else indices.tolist()):
            if not 0 <= index < count:
                raise ModelError(
                    f"{where[0].upper()}{where[1:]} has {role} {position} at tensor {index}; it has {count} tensors."
                )
    _verify_graph(model, subgraph, where)


def _verify_tensor(model: Model, tensor: tables.Tensor, what: str) -> None:
    if not isinstance(tensor.type, TensorType):
        raise ModelError(f"Unsupported data type {tensor.type} in tensor. {what} has a type that this schema does not know.")
    shape = () if tensor.shape is None else tensor.shape.tolist()
    if any(dim < 0 for dim in shape):
        raise ModelError(f"{what} has the shape {shape}; a dimension must not be negative.")
    needed = bytes_needed(shape, tensor.type)
    if (needed or 0) > _LARGEST:
        raise ModelError(f"BytesRequired number of elements overflowed. {what} has the shape {shape}.")
    buffers = model.root.buffers or []
    if tensor.buffer >= len(buffers):
        raise ModelError(f"Tensor specifies out of range buffer {tensor.buffer} (only {len(buffers)} buffers). {what} does.")
    if tensor.is_variable and (tensor.external_buffer or model.buffer(tensor.buffer) is not None):
        raise ModelError(f"{what} is a variable tensor with buffer or external buffer. It's not supported now.")
    if tensor.sparsity is None and needed is not None and not tensor.external_buffer:
        data = model.buffer(tensor.buffer)
        if data is not None and data.size < needed:
            raise ModelError(
                f"{what} requires {needed} bytes for the shape {shape} of {tensor.type.name}, but its buffer {tensor.buffer} has {data.size}."
            )
    if tensor.quantization is not None:
        _verify_quantization(tensor.quantization, shape, what)


def _verify_quantization(quantization: tables.QuantizationParameters, shape: list[int] | tuple[int, ...], what: str) -> None:
    scales, zero_points = quantization.scale, quantization.zero_point
    if scales is None or not scales.size:
        return
    if zero_points is None:
        raise ModelError(
            f"Quantization parameters has non-null scale but null zero_point. {what} has invalid quantization parameters."
        )
    if zero_points.size != scales.size:
        raise ModelError(
            f"QuantizationParam has {zero_points.size} zero_point values and {scales.size} scale values. Must have same number. "
            f"{what} has invalid quantization parameters."
        )
    dimension = quantization.quantized_dimension
    if scales.size > 1:
        if not 0 <= dimension < max(len(shape), 1):
            raise ModelError(f"quantized_dimension must be in range [0, {len(shape)}). Was {dimension}. {what} has it.")
        if shape and scales.size != shape[dimension]:
            raise ModelError(
                f"num_scales must be 1 for per-layer quantization, or {shape[dimension]} for per-axis quantization, but got {scales.size}. "
                f"{what} has them."
            )
    if not np.isfinite(scales).all() or bool((scales < 0).any()):
        raise ModelError(
            f"{what} has a scale of {scales[~(np.isfinite(scales) & (scales >= 0))][0]}; scales are positive numbers."
        )


def _verify_graph(model: Model, subgraph: tables.SubGraph, where: str) -> None:
    """Check the nodes in order: what they refer to exists, and what they read was written before."""
    codes = model.root.operator_codes or []
    tensors = subgraph.tensors or []
    count = len(tensors)
    writer: dict[int, str] = {}
    graph_inputs = set([] if subgraph.inputs is None else subgraph.inputs.tolist())
    operators = subgraph.operators or []
    late_writers: dict[int, int] | None = None
    for number, operator in enumerate(operators):
        if operator.opcode_index >= len(codes):
            raise ModelError(
                f"Missing registration for opcode_index {operator.opcode_index}. Node {number} of {where} refers to it; "
                f"the model has {len(codes)} operator codes."
            )
        node = f"Node {number} ({model.op_of(operator)[1]}) of {where}"
        for position, index in enumerate([] if operator.inputs is None else operator.inputs.tolist()):
            if index == -1:
                continue
            if not 0 <= index < count:
                raise ModelError(f"{node} has input {position} at tensor {index}; the subgraph has {count} tensors.")
            if index in writer or index in graph_inputs or _has_value(model, tensors[index]):
                continue
            if late_writers is None:
                late_writers = _writers(operators)
            later = late_writers.get(index)
            if later is not None:
                raise ModelError(
                    f"{node} reads tensor {index} ('{tensors[index].name or ''}'), which node {later} writes only later: "
                    "the graph has a cycle or is out of order."
                )
            raise ModelError(
                f"Input tensor {index} lacks data. {node} reads it ('{tensors[index].name or ''}'), but it is no input of the graph, "
                "no constant, and no node writes it."
            )
        for position, index in enumerate([] if operator.outputs is None else operator.outputs.tolist()):
            if not 0 <= index < count:
                raise ModelError(f"{node} has output {position} at tensor {index}; the subgraph has {count} tensors.")
            name = tensors[index].name or ""
            if index in writer:
                raise ModelError(f"{node} writes tensor {index} ('{name}'), which {writer[index]} writes already.")
            if model.tensor_bytes(tensors[index]) is not None:
                raise ModelError(f"{node} writes tensor {index} ('{name}'), which is a constant.")
            if operator.inputs is not None and index in operator.inputs.tolist() and operator.builtin_options is not None:
                raise ModelError(f"{node}: Tensor {index} is both input and output ('{name}').")
            writer[index] = node
        for index in [] if operator.intermediates is None else operator.intermediates.tolist():
            if not 0 <= index < count:
                raise ModelError(f"{node} has an intermediate at tensor {index}; the subgraph has {count} tensors.")
        model.custom_options(operator)


def _has_value(model: Model, tensor: tables.Tensor) -> bool:
    empty = tensor.shape is not None and not np.prod(tensor.shape, dtype=np.float64)
    return tensor.is_variable or empty or model.tensor_bytes(tensor) is not None


def _writers(operators: list[tables.Operator]) -> dict[int, int]:
    return {i: n for n, op in enumerate(operators) for i in ([] if op.outputs is None else op.outputs.tolist())}


def _verify_signatures(root: tables.Model) -> None:
    subgraphs = root.subgraphs or []
    seen: set[str] = set()
    for signature in root.signature_defs or []:
        key = signature.signature_key
        if key is None:
            raise ModelError("Missing exported method name for SignatureDef. A signature of the model has no key.")
        if key in seen:
            raise ModelError(f"The model has two signatures called '{key}'.")
        seen.add(key)
        if signature.subgraph_index >= len(subgraphs):
            raise ModelError(f"Signature '{key}' refers to subgraph {signature.subgraph_index}; the model has {len(subgraphs)}.")
        count = len(subgraphs[signature.subgraph_index].tensors or [])
        for role, entries in (("input", signature.inputs), ("output", signature.outputs)):
            for entry in entries or []:
                if entry.name is None or entry.tensor_index >= count:
                    raise ModelError(
                        f"Signature '{key}' has the {role} '{entry.name}' at tensor {entry.tensor_index}; its subgraph has {count} tensors."
                    )
