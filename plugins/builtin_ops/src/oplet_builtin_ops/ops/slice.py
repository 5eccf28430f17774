"""SLICE: a box of a tensor, from `begin`, of `size`; a size of -1 reaches to the end. Numerics: tflite/kernels/slice.cc"""

from __future__ import annotations

from typing import Any

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet_builtin_ops.shaping.bounds import box


def _ensure_a_value_per_axis(source: Tensor, parameter: Tensor) -> None:
    if parameter.shape != (source.ndim,):
        ensure(False, f"{parameter} must have one value for each of the {source.ndim} axes of {source}.")


def _box(node: Node) -> tuple[slice, ...]:
    source = node.inputs[0]
    for parameter in node.inputs[1:]:
        _ensure_a_value_per_axis(source, parameter)
    return box(source, read_ints(node.inputs[1]), read_ints(node.inputs[2]))


def _extent(parts: tuple[slice, ...]) -> Shape:
    return tuple(part.stop - part.start for part in parts)


def _index(parts: tuple[slice, ...]) -> tuple[Any, ...]:
    # The ellipsis gives a view also of a scalar, which has no axis to slice.
    return (*parts, ...)


def _shape(node: Node) -> Shape | None:
    """Return the output shape if it can be known without the values of `begin` and `size`, else None."""
    _, begin, size = node.inputs
    if size.is_constant and (begin.is_constant or -1 not in read_ints(size)):
        sizes = tuple(read_ints(size))
        return _extent(_box(node)) if sizes and min(sizes) < 0 else sizes
    # As in LiteRT, a fully declared shape is trusted, so that the following shapes stay static.
    declared = node.outputs[0].shape_signature
    return declared if declared and -1 not in declared else None


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3)
    source, begin, size = node.inputs
    output = node.outputs[0]
    ensure_same_type(source, output)
    for tensor in (begin, size):
        ensure_type(tensor, TensorType.INT32, TensorType.INT64)
        if tensor.is_constant:  # else its shape may be a placeholder until a resize
            _ensure_a_value_per_axis(source, tensor)
    node.prepared = _shape(node)
    if node.prepared is None:
        context.set_dynamic(output)
    else:
        context.resize_tensor(output, node.prepared)


def bind(context: Context, node: Node) -> Thunk:
    source, output, known = node.inputs[0], node.outputs[0], node.prepared
    if known is not None and all(tensor.is_constant for tensor in node.inputs[1:]):
        return copier(output.data, source.data[_index(_box(node))])

    def run() -> None:
        parts = _box(node)
        if known is None:
            context.resize_tensor(output, _extent(parts))
        else:
            ensure(
                _extent(parts) == known, f"the slice has the shape {list(_extent(parts))}, but {output} is declared otherwise."
            )
        output.data[...] = source.data[_index(parts)]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, absorbable=True)
