"""ADD and SUB, which share all but a sign. Numerics: tflite/kernels/add.cc, sub.cc, internal/reference/add.h, sub.h."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.activations import activation_range
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import (
    clip,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    quotient,
    saturating_rounding_doubling_high_mul,
    wrapping_divide_by_pot,
)
from oplet.kernels.shapes import offer_in_place
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import AddOptions, SubOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero, power_of_two_exponent, rescaler, rounding_shift
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.elementwise import binary_arithmetic as binary
from oplet_builtin_ops.elementwise.binary_arithmetic import Share, SumScaling

if TYPE_CHECKING:
    from numpy.typing import NDArray

EIGHT_BITS = (TensorType.INT8, TensorType.UINT8)


class _PowersOfTwo(Row):
    """Plan for int16 inputs with power-of-two scales: one input is shifted right, nothing is rescaled."""

    shifts: tuple[int, int]
    bounds: tuple[int, int]


def additive_registration(
    ufunc: np.ufunc,
    options: type[AddOptions] | type[SubOptions],
    plain: tuple[TensorType, ...],
    plain_int16: bool,
    *,
    fine_output: bool = False,
) -> Registration:
    """Build the registration of ADD or SUB.

    Args:
        ufunc: np.add or np.subtract.
        options: the op's options table.
        plain: the types that are computed without quantization scales.
        plain_int16: whether int16 tensors may lack scales; their integers are then added.
        fine_output: whether the output's scale may be much smaller than the inputs', even 0.
    """
    types = (*plain, *EIGHT_BITS, TensorType.INT16)

    def prepare(context: Context, node: Node) -> None:
        a, b, output = binary.prepare_binary(context, node)
        ensure_type(a, *types)
        context.set_type(output, a.type)
        chosen = node.options(options)
        activation = chosen.fused_activation_function
        node.prepared = activation
        offer_in_place(node)
        if a.type in plain:
            return
        if a.type == TensorType.INT16 and plain_int16 and not binary.is_quantized(a) and not binary.is_quantized(output):
            return
        ensure_quantized(a, b, output)
        if a.type in EIGHT_BITS:
            node.prepared = _general(a, b, output, activation, 20, fine_output)
            binary.add_pair_scratch(context, node)
            return
        ensure_zero_point_is_zero(a, b, output)
        exponents = [power_of_two_exponent(tensor.scale) for tensor in (a, b, output)]
        if chosen.pot_scale_int16 and None not in exponents:
            node.prepared = plan = _powers_of_two(exponents, output, activation)
            context.add_temporary(node, output.shape, TensorType.INT32)
            for _ in ("shifted", "signs"):
                context.add_temporary(node, a.shape if plan.shifts[0] else b.shape, TensorType.INT32)
            return
        node.prepared = _general(a, b, output, activation, 15, fine_output)
        for _ in ("wide", "scratch"):
            context.add_temporary(node, output.shape, TensorType.INT64)
        for tensor in (a, b):
            if not tensor.is_constant:
                context.add_temporary(node, tensor.shape, TensorType.INT32)

    def bind(context: Context, node: Node) -> Thunk:
        plan = node.prepared
        if isinstance(plan, _PowersOfTwo):
            return _bind_powers_of_two(ufunc, node, plan)
        if not isinstance(plan, SumScaling):
            return binary.bind_elementwise(ufunc, node, plan, context)
        if plan.shift > 0:
            return _bind_fine(ufunc, node, plan)
        if node.inputs[0].type == TensorType.INT16:
            return _bind_int16(ufunc, node, plan)

        def rule(a: NDArray[np.int64], b: NDArray[np.int64]) -> Array:
            total = ufunc(plan.shares[0].of(a), plan.shares[1].of(b))
            scaled = multiply_by_quantized_multiplier(total, plan.multiplier, plan.shift)
            scaled += np.int32(plan.zero_point)  # which may wrap around, as in LiteRT
            clip(scaled, *(np.array(bound, np.int32) for bound in plan.bounds), scaled)
            return scaled

        return binary.bind_pairs(node, rule)

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


def _general(
    a: Tensor, b: Tensor, output: Tensor, activation: ActivationFunctionType, left_shift: int, fine_output: bool
) -> SumScaling:  # fmt: skip
    for tensor in (a, b):
        if not tensor.scale > 0:
            ensure(False, f"{tensor} has scale 0; the inputs of this op have scales above 0.")
    with np.errstate(over="ignore"):
        # LiteRT computes both in single precision.
        twice_larger = float(np.float32(2) * np.float32(max(a.scale, b.scale)))
        steps = float(np.float32(1 << left_shift) * np.float32(output.scale))
    factor = quotient(twice_larger, steps)
    shares = [tensor.scale / twice_larger for tensor in (a, b)]
    ensure(
        0 < factor < 1 or (fine_output and factor > 1),
        lambda: (
            f"{output} has scale {output.scale:g}, too fine for inputs of scales {a.scale:g} and {b.scale:g}: their ratio "
            f"leaves the fixed-point range (factor {factor:g})."
        ),
    )
    ensure(
        min(shares) > 0,
        lambda: f"{a} has scale {a.scale:g} and {b} has scale {b.scale:g}, of which the double is beyond single precision.",
    )
    bounds = activation_range(activation, output.type, output.scale, output.zero_point)
    first, second = (Share(tensor.zero_point, left_shift, *quantize_multiplier(share)) for tensor, share in zip((a, b), shares))
    return SumScaling((first, second), *quantize_multiplier(factor), output.zero_point, bounds)


def _powers_of_two(exponents: list[Any], output: Tensor, activation: ActivationFunctionType) -> _PowersOfTwo:
    shifts = exponents[2] - exponents[0], exponents[2] - exponents[1]
    ensure(
        min(shifts) == 0,
        f"with scales that are powers of two, one input must have the output's scale and the other a finer one; "
        f"they are 2**{exponents[0]} and 2**{exponents[1]}, the output's is 2**{exponents[2]}.",
    )
    return _PowersOfTwo(shifts, activation_range(activation, output.type, output.scale, 0))


@functools.lru_cache(maxsize=16)
def _share_table(share: Share) -> NDArray[np.int32]:
    """Tabulate the rescaled summand of every int16 value, in the order of their bit patterns."""
    from oplet_builtin_ops.arithmetic.lookup import every_value

    return share.of(every_value(TensorType.INT16))


def _bind_int16(ufunc: np.ufunc, node: Node, plan: SumScaling) -> Thunk:
    from oplet_builtin_ops.arithmetic.lookup import lookup

    output = node.outputs[0].data
    wide, scratch, *temporaries = (temporary.data for temporary in node.temporaries)
    parts, steps = [], []
    for position, (tensor, share) in enumerate(zip(node.inputs, plan.shares)):
        if tensor.is_constant:
            parts.append(node.cached(("share", position, share), [tensor], functools.partial(share.of, tensor.data), shared=True))
        else:
            parts.append(temporaries.pop(0))
            steps.append(lookup(_share_table(share), tensor.data, parts[-1]))
    a, b = parts
    bounds = plan.bounds
    # The sum is in memory that the rescaler writes only after it has read the sum.
    total = scratch.reshape(-1).view(np.int32)[: output.size]
    summed = total.reshape(output.shape)
    finish = rescaler(
        total, wide.reshape(-1), scratch.reshape(-1), plan.multiplier, plan.shift, plan.zero_point, bounds, output.reshape(-1)
    )

    def run() -> None:
        for step in steps:
            step()
        ufunc(a, b, summed)
        finish()

    return run


def _bind_fine(ufunc: np.ufunc, node: Node, plan: SumScaling) -> Thunk:
    """Return the function that adds when the output scale is so small that sums are shifted left.

    LiteRT's kernel only supports right shifts and returns little more than the sign here: for eight values at a time, if nothing is
    broadcast, exactly the sign, and for others the result of x86's shift by a negative amount.
    """
    a, b = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    grouped = output.size // 8 * 8 if a.shape == b.shape else 0
    low, high = (np.array(bound, np.int32) for bound in plan.bounds)

    def run() -> None:
        total = ufunc(plan.shares[0].of(a), plan.shares[1].of(b))
        products = saturating_rounding_doubling_high_mul(total, plan.multiplier).reshape(-1)
        steps = wrapping_divide_by_pot(products, -plan.shift)
        steps[:grouped] = np.where(products[:grouped] >= 0, 1, -1)
        steps += np.int32(plan.zero_point)
        output[...] = clip(steps, low, high).reshape(output.shape)

    return run


def _bind_powers_of_two(ufunc: np.ufunc, node: Node, plan: _PowersOfTwo) -> Thunk:
    a, b = (tensor.data for tensor in node.inputs)
    output = node.outputs[0].data
    total, shifted, signs = (temporary.data for temporary in node.temporaries)
    exponent = max(plan.shifts)
    low, high = (np.array(bound, np.int32) for bound in plan.bounds)
    source = a if plan.shifts[0] else b
    shift = rounding_shift(shifted, signs, exponent)
    first, second = (shifted, b) if plan.shifts[0] else (a, shifted)

    def run() -> None:
        shifted[...] = source
        shift()
        ufunc(first, second, total)
        clip(total, low, high, total)
        output[...] = total

    return run


ADD = additive_registration(
    np.add,
    AddOptions,
    plain=(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.INT32, TensorType.INT64),
    plain_int16=True,
)
SUB = takes_halves(
    additive_registration(
        np.subtract,
        SubOptions,
        plain=(TensorType.FLOAT32, TensorType.INT32, TensorType.INT64),
        plain_int16=False,
        fine_output=True,
    )
)
