"""SELECT_V2: x where the condition is true, else y; all three broadcast. Numerics: tflite/kernels/select.cc (kVersionTwo)"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.elementwise.selection import bind_selection, keeps_declared_shape, prepare_selection
from oplet_builtin_ops.types import NUMBERS


def prepare(context: Context, node: Node) -> None:
    tensors = prepare_selection(context, node)
    output = node.outputs[0]
    if keeps_declared_shape(node):
        context.resize_tensor(output, output.shape)
        return
    rank = max(tensor.ndim for tensor in tensors)
    alike = len({tensor.shape for tensor in tensors}) == 1
    ensure(rank <= 8 or alike, f"the inputs have up to {rank} dimensions; SELECT_V2 broadcasts 8.")
    padded = [(1,) * (rank - tensor.ndim) + tensor.shape for tensor in tensors]
    shape: list[int] = []
    for dims in zip(*padded):
        wanted = {dim for dim in dims if dim != 1} or {1}
        if len(wanted) != 1:
            given = "{}, {} and {}".format(*(list(tensor.shape) for tensor in tensors))
            ensure(False, f"Given shapes, {given}, are not broadcastable: {', '.join(map(str, tensors))}.")
        shape += wanted
    context.resize_tensor(output, shape)


def bind(context: Context, node: Node) -> Thunk:
    return bind_selection(node)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=NUMBERS)
