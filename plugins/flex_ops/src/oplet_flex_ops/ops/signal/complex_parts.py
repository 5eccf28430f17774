"""Complex numbers from parts, and their parts (real, imaginary, angle, magnitude). Numerics:
tensorflow/core/kernels/cwise_op_*.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import types
from oplet_flex_ops.numerics.elementwise import broadcast_pair, unary
from oplet_flex_ops.numerics.operator import operator, writing

_REAL_OF = {TensorType.COMPLEX64: TensorType.FLOAT32, TensorType.COMPLEX128: TensorType.FLOAT64}


def _ensure_parts(node: Node, whole: int) -> None:
    """Raise an error unless both tensors have one precision; the complex one is the input if `whole` is 0, the output if 1."""
    tensors = [node.inputs[0], node.outputs[0]]
    wanted = _REAL_OF[tensors[whole].type]
    ensure(tensors[1 - whole].type is wanted, f"the parts of {tensors[whole]} are {wanted.name}, {tensors[1 - whole]} is not.")


def _part(function: Callable[[Array, Array], Any]) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _ensure_parts(node, 0)
        return [node.inputs[0].shape]

    return operator("T=COMPLEX64 -> Tout=FLOAT32", shapes, T=types.COMPLEX, Tout=types.WIDE_FLOATS)(writing(function))


def _complex_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    _ensure_parts(node, 1)
    return broadcast_pair(node, attributes)


@operator("T=FLOAT32, T -> Tout=COMPLEX64", _complex_shapes, T=types.WIDE_FLOATS, Tout=types.COMPLEX)
@writing
def COMPLEX(real: Array, imaginary: Array, output: Array) -> None:
    output.real, output.imag = real, imaginary


ANGLE = _part(lambda x, out: np.arctan2(x.imag, x.real, out))
COMPLEXABS = _part(np.abs)
CONJ = unary(np.conjugate, *types.COMPLEX)
IMAG = _part(lambda x, out: np.copyto(out, x.imag))
REAL = _part(lambda x, out: np.copyto(out, x.real))
