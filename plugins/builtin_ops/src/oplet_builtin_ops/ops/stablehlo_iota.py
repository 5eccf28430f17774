"""STABLEHLO_IOTA: 0, 1, 2, ... along one axis, in the shape that the model gives the output."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, ensure, ensure_type
from oplet.schema.stablehlo_options import StablehloIotaOptions
from oplet_builtin_ops.shaping.shapes import Thunk, copier
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, declared_shape, ensure_axes


def prepare(context: Context, node: Node) -> None:
    ensure(not node.inputs and len(node.outputs) == 1, "STABLEHLO_IOTA takes no input and gives one output.")
    output = node.outputs[0]
    ensure_type(output, *FLOATS, *INTEGERS, *COMPLEX)
    shape = declared_shape(output)
    ensure_axes("iota_dimension", [node.options(StablehloIotaOptions).iota_dimension], len(shape))
    context.resize_tensor(output, shape)


def bind(context: Context, node: Node) -> Thunk:
    axis, output = node.options(StablehloIotaOptions).iota_dimension, node.outputs[0].data
    counted = np.arange(output.shape[axis]).astype(output.dtype)
    return copier(output, counted.reshape([-1 if i == axis else 1 for i in range(output.ndim)]))


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(*FLOATS, *INTEGERS, *COMPLEX))
