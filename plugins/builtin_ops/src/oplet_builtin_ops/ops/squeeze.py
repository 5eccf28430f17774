"""SQUEEZE: drop dimensions of 1, those named or all. Numerics: tflite/kernels/squeeze.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet.kernels.axes import resolve_axis
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import SqueezeOptions
from oplet_builtin_ops.ops.reshape import bind_reshaped


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_same_type(source, output)
    named = node.options(SqueezeOptions).squeeze_dims
    if named is None or not len(named):
        shape = [dim for dim in source.shape if dim != 1]
    else:
        dropped = {resolve_axis(axis, source.ndim, "a squeezed dimension") for axis in named.tolist()}
        for axis in dropped:
            ensure(source.shape[axis] == 1, f"dimension {axis} of {source} is {source.shape[axis]}; only 1 can be squeezed.")
        shape = [dim for axis, dim in enumerate(source.shape) if axis not in dropped]
    context.resize_tensor(output, shape)
    node.in_place = [source]


def bind(context: Context, node: Node) -> Thunk:
    return bind_reshaped(node)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True)
