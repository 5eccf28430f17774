"""The custom operator Atan: the angle whose tangent is x, element by element.

TensorFlow's converter writes `tf.math.atan` as this op when `allow_custom_ops` is set.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, MutableOpResolver, Node, Registration, TensorType, Work, WorkTable, ensure_type, hookimpl
from oplet.kernels.operands import ensure_operands


def prepare(context: Context, node: Node) -> None:
    """Check the node and set its output's shape; called again whenever the input is resized."""
    ensure_operands(node, 1)
    x, y = node.inputs[0], node.outputs[0]
    ensure_type(x, TensorType.FLOAT32, TensorType.FLOAT64)
    ensure_type(y, x.type)
    context.resize_tensor(y, x.shape)


def invoke(context: Context, node: Node) -> None:
    """Compute the arctangent of the input into the output's array, without allocating memory."""
    np.arctan(node.inputs[0].data, out=node.outputs[0].data)


#: `pure`: the output depends on the input alone, so nodes whose input is constant run once.
ATAN = Registration(prepare=prepare, invoke=invoke, pure=True)


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the op with the resolver, under its custom-op name in models."""
    resolver.add_custom("Atan", ATAN)


@hookimpl
def register_work(table: WorkTable) -> None:
    """Register the op's count of operations for profiles: one function evaluation per value."""
    table.add("Atan", lambda node: Work(operations=node.outputs[0].size))
