"""REVERSE_V2: the order along some axes reversed. Numerics: tflite/kernels/reverse.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk, copier
from oplet.kernels.axes import read_ints, resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.INT64, TensorType.BOOL,
)  # fmt: skip


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, axes = node.inputs
    ensure(axes.ndim == 1 and axes.size <= source.ndim, f"{axes} must be a vector of at most {source.ndim} axes of {source}.")
    ensure(source.ndim <= 8, f"{source} has {source.ndim} dimensions; this op takes at most 8.")
    ensure_type(source, *_TYPES)
    ensure_type(axes, TensorType.INT32)
    ensure_same_type(source, node.outputs[0])
    context.resize_tensor(node.outputs[0], source.shape)


def _bind(node: Node) -> Thunk:
    source = node.inputs[0].data
    axes = sorted(resolve_axis(axis, source.ndim) for axis in read_ints(node.inputs[1]))
    ensure(len(set(axes)) == len(axes), f"the axes {axes} must be different ones.")
    backwards = tuple(slice(None, None, -1) if axis in axes else slice(None) for axis in range(source.ndim))
    return copier(node.outputs[0].data, source[backwards])


def bind(context: Context, node: Node) -> Thunk:
    return _bind(node) if node.inputs[1].is_constant else lambda: _bind(node)()


REGISTRATION = Registration(
    prepare=prepare, bind=bind, pure=True, types=_TYPES, differences="the axes need not be neighbours, which LiteRT asks for"
)
