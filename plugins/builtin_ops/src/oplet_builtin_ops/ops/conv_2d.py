"""CONV_2D: windows over the height and width, each multiplied with every filter; in groups of channels if filters have fewer
channels.

Float, quantized (uint8, int8, int16 activations with int8 or int4 weights) and hybrid (float activations, integer weights).

Numerics: tflite/kernels/conv.cc, tflite/kernels/internal/reference/conv.h and integer_ops/conv.h
"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark
from oplet_builtin_ops.layers.checked_convolution import SOURCES


def prepare(context: Context, node: Node) -> None:
    from oplet_builtin_ops.layers import numpy_convolution  # here, as compiled kernels serve most of them

    numpy_convolution.prepare(context, node)


def bind(context: Context, node: Node) -> Thunk:
    from oplet_builtin_ops.layers import numpy_convolution

    return numpy_convolution.bind(context, node)


REGISTRATION = takes_halves(
    Registration(
        prepare=prepare,
        bind=bind,
        pure=True,
        types=SOURCES,
        remark=remark,
        differences="the bias may be missing, dilations may exceed 32767 and groups may have hybrid weights with a single scale",
    ),
    0,
    1,
    mixed=True,
)
