"""DEPTHWISE_CONV_2D: every input channel is convolved with its own filters.

Float, quantized (uint8, int8, int16 activations with int8 or int4 weights) and hybrid (float activations, int8 weights). With a
single input channel it is an ordinary convolution. Numerics: tflite/kernels/depthwise_conv.cc,
tflite/kernels/internal/reference/depthwiseconv_float.h, depthwiseconv_uint8.h and integer_ops/depthwise_conv.h
"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark
from oplet_builtin_ops.layers.checked_convolution import SOURCES


def prepare(context: Context, node: Node) -> None:
    from oplet_builtin_ops.layers import numpy_depthwise  # here, as compiled kernels serve most of them

    numpy_depthwise.prepare(context, node)


def bind(context: Context, node: Node) -> Thunk:
    from oplet_builtin_ops.layers import numpy_depthwise

    return numpy_depthwise.bind(context, node)


REGISTRATION = takes_halves(Registration(prepare=prepare, bind=bind, pure=True, types=SOURCES, remark=remark), 0, 1, mixed=True)
