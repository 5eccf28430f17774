"""STABLEHLO_IOTA: 0, 1, 2, ... along one axis, in the shape that the model gives the output."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.schema.stablehlo_options import StablehloIotaOptions
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, declared_shape, ensure_axes

#: The numbers that are written at a time.
_PART = 1 << 20


def prepare(context: Context, node: Node) -> None:
    ensure(not node.inputs and len(node.outputs) == 1, "STABLEHLO_IOTA takes no input and gives one output.")
    output = node.outputs[0]
    ensure_type(output, *FLOATS, *INTEGERS, *COMPLEX)
    shape = declared_shape(output)
    ensure_axes("iota_dimension", [node.options(StablehloIotaOptions).iota_dimension], len(shape))
    context.resize_tensor(output, shape)


def bind(context: Context, node: Node) -> Thunk:
    axis, output = node.options(StablehloIotaOptions).iota_dimension, node.outputs[0].data
    last = np.moveaxis(output, axis, -1)

    def run() -> None:
        for start in range(0, last.shape[-1] if output.size else 0, _PART):
            end = min(start + _PART, last.shape[-1])
            last[..., start:end] = np.arange(start, end).astype(output.dtype)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS, *COMPLEX))
