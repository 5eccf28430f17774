"""Shared parts of ADD, SUB and MUL: broadcasting, fused activations, rescaling of quantized values from the two inputs' scales to the
output's, and 256x256 tables for pairs of 8-bit values.

Numerics: tflite/kernels/internal/reference/integer_ops/add.h and mul.h
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from oplet import Context, Node, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.broadcasting import broadcast_shape
from oplet.kernels.fixed_point import clip, multiply_by_quantized_multiplier
from oplet.kernels.operands import ensure_operands
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType

# What runs and does not prepare is imported late: compiled kernels run most nodes, in a process whose first answer somebody waits for.
if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet_builtin_ops.layers.program import Call

__all__ = [
    "PairRule",
    "ProductScaling",
    "Share",
    "SumScaling",
    "add_pair_scratch",
    "bind_elementwise",
    "bind_pairs",
    "is_quantized",
    "long_rows",
    "long_shapes",
    "prepare_binary",
]

#: A function from the values of a quantized op's two inputs, which broadcast, to its output values; all int64.
PairRule = Callable[[Array, Array], Array]

#: A length of rows at which the overhead of a loop is small; longer rows would only take more memory.
_LONG: Final = 1024
_LONGEST: Final = 1 << 16
#: The look-ups per block, whose int64 indices stay in the cache.
_BLOCK: Final = 8192

_EIGHT: Final = np.array([8], np.uint16)
_CLAMPS: Final = {
    ActivationFunctionType.RELU: (0, None),
    ActivationFunctionType.RELU_N1_TO_1: (-1, 1),
    ActivationFunctionType.RELU6: (0, 6),
}


class Share(Row):
    """The rescaling of one input of ADD or SUB to a common scale: 2**-left_shift times twice the larger input scale.

    (value - zero_point) * 2**left_shift is scaled by multiplier * 2**(shift - 31).
    """

    zero_point: int
    left_shift: int
    multiplier: int
    shift: int

    def of(self, values: Array) -> NDArray[np.int32]:
        """Return the stored values, rescaled to the common scale, as int32."""
        shifted = (values.astype(np.int64) - self.zero_point) << self.left_shift
        return multiply_by_quantized_multiplier(shifted.astype(np.int32), self.multiplier, self.shift)


class SumScaling(Row):
    """Rescaling of ADD or SUB: the rescaled summands are added, scaled by multiplier * 2**(shift - 31) and clamped.

    Attributes:
        shares: the rescaling of each input.
        multiplier: the fixed-point factor of the sum, with `shift`.
        shift: the exponent of that factor.
        zero_point: the output's zero point.
        bounds: the smallest and largest output, after the fused activation.
    """

    shares: tuple[Share, Share]
    multiplier: int
    shift: int
    zero_point: int
    bounds: tuple[int, int]


class ProductScaling(Row):
    """Rescaling of MUL: (a - zero_point_a) * (b - zero_point_b) is scaled by multiplier * 2**(shift - 31) and clamped.

    Attributes:
        multiplier: the fixed-point factor of the product, with `shift`.
        shift: the exponent of that factor.
        bounds: the smallest and largest output, after the fused activation.
    """

    multiplier: int
    shift: int
    bounds: tuple[int, int]


def prepare_binary(context: Context, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    """Check a binary node with inputs of one type, set its output's broadcast shape, and return (input, input, output)."""
    ensure_operands(node, 2)
    a, b = node.inputs
    ensure(a.type == b.type, lambda: f"the inputs must have the same type: {a}, {b}.")
    context.resize_tensor(node.outputs[0], broadcast_shape(a, b))
    return a, b, node.outputs[0]


def is_quantized(tensor: Tensor) -> bool:
    """Return whether a tensor has a quantization scale (of any value)."""
    return tensor.quantization is not None and len(tensor.quantization.scales) > 0


def long_rows(node: Node, a: Tensor, b: Tensor, output: Tensor) -> tuple[Array, Array, Array]:
    """Return views of a binary op's three arrays in shapes with a long innermost loop, as numpy is slow at short ones.

    A small constant that is broadcast along leading dimensions, such as a bias, is tiled into a longer row, once for all
    interpreters of the model.
    """
    x, y, z = a.data, b.data, output.data
    for small, large in ((b, a), (a, b)):
        axis = _long_axis(small, large, output)
        if axis is not None:
            tail = output.shape[axis:]
            row = math.prod(tail)
            shape = (1,) * (output.ndim - small.ndim) + small.shape
            if shape[-1:] == tail[-1:] and small.size == shape[-1]:  # one value per channel
                tiled = _repeated(node, small, row)
            else:
                tiled = np.broadcast_to(small.data.reshape(shape[axis:]), tail).reshape(1, row)
            rows = large.data.reshape(-1, row)
            z = z.reshape(-1, row)
            return (rows, tiled, z) if small is b else (tiled, rows, z)
    return x, y, z


def _repeated(node: Node, small: Tensor, row: int) -> Array:
    def make() -> Array:
        from oplet_builtin_ops.layers.program import repeated

        return repeated(small.data.reshape(-1), row // small.size).reshape(1, row)

    return node.cached(("repeated", small.index, row), [small], make, shared=True)


def long_shapes(a: Tensor, b: Tensor, output: Tensor) -> tuple[Shape, Shape, Shape]:
    """Return the shapes in which `a`, `b` and `output` are computed, known before they have memory (`long_rows` makes the views).

    A small constant is tiled into a long row, and the other two become rows of that length, as numpy is slow at short ones.
    """
    for small, large in ((b, a), (a, b)):
        axis = _long_axis(small, large, output)
        if axis is not None:
            row = math.prod(output.shape[axis:])
            rows = output.size // row, row
            return (rows, (1, row), rows) if small is b else ((1, row), rows, rows)
    return a.shape, b.shape, output.shape


def _long_axis(small: Tensor, large: Tensor, output: Tensor) -> int | None:
    """Return the first axis of the trailing dimensions over which a small constant is tiled into a row; None if it is not tiled."""
    return _axis_of_rows(small.shape, output.shape) if small.is_constant and large.shape == output.shape else None


@lru_cache(maxsize=1024)
def _axis_of_rows(small: Shape, output: Shape) -> int | None:
    size = math.prod(small)
    if not 1 < size < _LONG or math.prod(output) <= size:
        return None
    axis = len(output) - len(small) + next(i for i, dim in enumerate(small) if dim != 1)
    while axis and math.prod(output[axis:]) < _LONG:
        axis -= 1
    return axis if math.prod(output[axis:]) <= _LONGEST else None


def bind_elementwise(ufunc: np.ufunc, node: Node, activation: ActivationFunctionType, context: Context | None = None) -> Thunk:
    """Return a function that applies a ufunc and fused activation to unquantized values; integers wrap around.

    Args:
        ufunc: the ufunc.
        node: the node.
        activation: the fused activation.
        context: the node's context, to divide the work between threads; only for ufuncs whose result can be computed in parts.
    """
    a, b, output = long_rows(node, node.inputs[0], node.inputs[1], node.outputs[0])
    low, high = _CLAMPS.get(activation, (None, None))
    context = context or Context()
    if low is None and context.num_threads == 1:
        return partial(ufunc, a, b, output)  # a lambda takes a third longer for a few numbers
    from oplet_builtin_ops.elementwise.blocks import run_blocks

    if low is None:
        return run_blocks(context, (a, b, output), 1, lambda *block: [(ufunc, block)])
    most: Any = np.inf if output.dtype.kind == "f" else np.iinfo(output.dtype).max
    # In an unsigned type -1 wraps around, as in LiteRT.
    lowest = np.array(low).astype(output.dtype)
    highest = np.array(most if high is None else high, output.dtype)

    def calls(a: Array, b: Array, output: Array) -> list[Call]:
        return [(ufunc, (a, b, output)), (clip, (output, lowest, highest, output))]

    return run_blocks(context, (a, b, output), 2, calls)


def bind_pairs(node: Node, rule: PairRule) -> Thunk:
    """Return a function that computes a binary 8-bit op by a look-up table of the results of all pairs of inputs.

    Args:
        node: the node.
        rule: computes the op on arrays of integers; its results are in the output's range.
    """
    from oplet_builtin_ops.arithmetic.lookup import every_value, lookup

    a, b = node.inputs
    output = node.outputs[0]
    a_values, b_values = every_value(a.type), every_value(b.type)
    types = a.type, b.type, output.type
    if b.is_constant and b.size == 1:
        row = node.cached(("row of a", types), [b], lambda: rule(a_values, _widened(b)).astype(output.dtype))
        return lookup(row, np.broadcast_to(a.data, output.shape), output.data)
    if a.is_constant and a.size == 1:
        row = node.cached(("row of b", types), [a], lambda: rule(_widened(a), b_values).astype(output.dtype))
        return lookup(row, np.broadcast_to(b.data, output.shape), output.data)

    def pairs() -> Array:  # some rows at a time, so that intermediate values stay in the cache
        rows = np.split(a_values[:, None], a_values.size * b_values.size // _BLOCK)
        return np.concatenate([rule(some, b_values[None, :]).astype(output.dtype) for some in rows], None)

    table = node.cached(("table", types), (), pairs, shared=True)
    high, low = a.data.view(np.uint8), b.data.view(np.uint8)
    index, wide = (temporary.data for temporary in node.temporaries)
    flat = index.reshape(-1)
    find = _lookups(table, flat, wide, output.data.reshape(-1))
    if a.is_constant:
        shifted = node.cached("shifted", [a], lambda: high.astype(np.uint16) << 8, shared=True)

        def run_constant() -> None:
            np.bitwise_or(shifted, low, index)
            find()

        return run_constant

    def run() -> None:
        index[...] = high
        np.left_shift(flat, _EIGHT, flat)
        np.bitwise_or(index, low, index)
        find()

    return run


def add_pair_scratch(context: Context, node: Node) -> None:
    """Request in `prepare` the scratch memory that `bind_pairs` uses."""
    output = node.outputs[0]
    context.add_temporary(node, output.shape, TensorType.UINT16)
    context.add_temporary(node, (min(output.size, _BLOCK),), TensorType.INT64)


def _lookups(table: Array, index: Array, wide: Array, target: Array) -> Thunk:
    """Return a function that looks up table[index] in blocks of len(wide): indices are first widened to int64 in `wide`."""
    from oplet_builtin_ops.layers.program import run_program

    step = max(1, len(wide))

    def calls() -> Iterator[Call]:
        for start in range(0, len(index), step):
            part = target[start : start + step]
            yield np.copyto, (wide[: len(part)], index[start : start + step])
            yield table.take, (wide[: len(part)], None, part, "clip")

    return run_program(calls)


def _widened(tensor: Tensor) -> NDArray[np.int64]:
    values: Array = tensor.data.reshape(-1)
    return values.astype(np.int64)
