"""DENSIFY: the dense form of a sparse constant. Numerics: tflite/kernels/densify.cc"""

from __future__ import annotations

from collections.abc import Callable

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.layers.sparse import densify

_TYPES = (TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT8)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *_TYPES)
    context.set_type(output, source.type)
    ensure(source.is_constant, lambda: f"{source} must be a constant.")
    ensure(source.sparsity is not None, lambda: f"{source} is not sparse; DENSIFY takes a tensor with sparsity metadata.")
    context.resize_tensor(output, source.shape)


def expands(source: Tensor, output: Tensor) -> Callable[[Array, Array], Array] | None:
    sparsity, shape = source.sparsity, source.shape
    if sparsity is None or source.type not in _TYPES or output.type is not source.type:
        return None
    return lambda stored, values: densify(stored, sparsity, shape, values)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]

    def run() -> None:
        if source.sparsity is not None:
            densify(source.data, source.sparsity, source.shape, output.data)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, sparse=frozenset({0}), expands=expands, types=_TYPES)
