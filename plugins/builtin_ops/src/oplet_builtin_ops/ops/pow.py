"""POW: the first input to the power of the second. Numerics: tflite/kernels/pow.cc, optimized_ops.h (BroadcastPow4D)"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet_builtin_ops.elementwise.pairwise import bind_steps, prepare_pairwise

#: A single float exponent of many bases counts as an integer within this distance, as in LiteRT.
_TOLERANCE = np.float32(1e-5)
_TYPES = (TensorType.FLOAT32, TensorType.INT32)


def prepare(context: Context, node: Node) -> None:
    a, b, _ = prepare_pairwise(context, node, *_TYPES)
    node.prepared = b.size == 1 and a.shape != b.shape


def bind(context: Context, node: Node) -> Thunk:
    one_exponent = bool(node.prepared)
    if node.inputs[0].type == TensorType.INT32:
        return bind_steps(node, _multiplied if one_exponent else _power_of_integers)
    if not one_exponent:
        return bind_steps(node, np.power)
    bases, exponent = node.inputs[0].data, node.inputs[1].data.reshape(-1)
    # A base of more dimensions has the output's shape; one of fewer dimensions has as many elements.
    output = node.outputs[0].data.reshape(bases.shape)

    def run() -> None:
        power = exponent[0]
        nearest = np.rint(power)
        if nearest >= 1 and abs(power - nearest) < _TOLERANCE:
            power = nearest
        if power == 2:
            np.square(bases, output)
        else:
            np.power(bases, power, output)

    return run


def _ensure_not_negative(exponents: Array) -> None:
    lowest = int(exponents.min(initial=0))
    ensure(lowest >= 0, f"POW does not support negative value for int32: an exponent is {lowest}.")


def _multiplied(bases: Array, exponents: Array, output: Array) -> None:
    """Compute integer powers with a single exponent by repeated multiplication, which wraps around."""
    _ensure_not_negative(exponents)
    np.power(bases, exponents, output)


def _power_of_integers(bases: Array, exponents: Array, output: Array) -> None:
    """Compute integer powers with many exponents in float64; results beyond int32 become the lowest int32."""
    _ensure_not_negative(exponents)
    charge(10 * output.size)  # a double and two booleans each
    powers, fits = np.empty(output.shape, np.float64), np.empty(output.shape, np.bool_)
    np.power(bases, exponents, out=powers, dtype=np.float64)
    np.greater(powers, -(2.0**31), out=fits)
    np.logical_and(fits, powers < 2.0**31, out=fits)
    np.copyto(powers, -(2.0**31), where=np.logical_not(fits, out=fits))
    output[...] = powers


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
