"""Shared parts of unary elementwise ops: checks, functions of plain numbers, and look-up tables for quantized types.

Numerics: tflite/kernels/elementwise.cc, exp.cc, neg.cc, floor.cc, round.cc
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import offer_in_place
from oplet_builtin_ops.arithmetic.lookup import interpolated, interpolation_table, lookup, refuse_below, sampled_table
from oplet_builtin_ops.arithmetic.quantization import ensure_quantized
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.elementwise.binary_arithmetic import is_quantized

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "Elementwise",
    "bind_table",
    "elementwise_registration",
    "ensure_nothing_below",
    "function_table",
    "prepare_elementwise",
    "table_registration",
    "uses_table",
]

#: Writes a function of the first array into the second, element by element.
Elementwise = Callable[[Array, Array], Any]


def prepare_elementwise(context: Context, node: Node, *types: TensorType, derive: bool = False) -> tuple[Tensor, Tensor]:
    """Check a unary node whose input and output have one type, and give the output the input's shape.

    Args:
        context: the node's context.
        node: the node.
        types: the types that the op takes.
        derive: set the output's type to the input's, too, instead of the declared one, as some of LiteRT's kernels do.
    """
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, *types)
    if derive:
        context.set_type(output, source.type)
    ensure_same_type(source, output)
    context.resize_tensor(output, source.shape)
    return source, output


def elementwise_registration(compute: Elementwise, *types: TensorType, derive: bool = False) -> Registration:
    """Build the registration of a unary op on `types` from the numpy function that computes it; `derive` as in
    `prepare_elementwise`.
    """

    def prepare(context: Context, node: Node) -> None:
        prepare_elementwise(context, node, *types, derive=derive)
        offer_in_place(node)

    def bind(context: Context, node: Node) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        return lambda: compute(source, output)

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


def function_table(source: Tensor, output: Tensor, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Array:
    """Return the look-up table of a quantized unary op: the quantized output for each 8-bit or int16 input, by its bit pattern.

    Args:
        source: the input.
        output: the output.
        function: the op on real values, from float32 to float32, computed in double precision.
    """
    if source.per_channel or output.per_channel:
        ensure_quantized(source, output)  # which refuses them
    parameters = source.scale, source.zero_point, output.scale, output.zero_point
    if source.type != TensorType.INT16:
        return sampled_table(source.type, function, *parameters)
    return interpolated(interpolation_table(function, *parameters))


def uses_table(source: Tensor, output: Tensor) -> bool:
    """Return whether a node of ABS, LOG, SQRT or RSQRT is quantized, and so runs by look-up table.

    Raises:
        EnsureError: quantized tensors have no scales, or an int16 tensor has a zero point.
    """
    if source.type not in (TensorType.INT8, TensorType.INT16) or (source.type == TensorType.INT16 and not is_quantized(source)):
        return False
    ensure_quantized(source, output)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    return True


def table_registration(
    compute: Elementwise,
    table: Callable[[Tensor, Tensor], Array],
    plain: Sequence[TensorType],
    quantized: Sequence[TensorType],
    *,
    positive: bool = False,
) -> Registration:
    """Build the registration of a unary op that uses a look-up table for quantized nodes.

    Args:
        compute: computes the op on unquantized numbers.
        table: returns the look-up table, from input and output tensor.
        plain: the types that are computed without scales; int16 may be in both lists.
        quantized: the types that are computed by the table.
        positive: whether values below the zero point are an error.
    """

    types = tuple(dict.fromkeys((*plain, *quantized)))

    def prepare(context: Context, node: Node) -> None:
        source, output = prepare_elementwise(context, node, *types)
        offer_in_place(node)
        node.prepared = None
        if uses_table(source, output):
            node.prepared = node.cached(("table", source.type, output.type), (), lambda: table(source, output))
        else:
            ensure(source.type in plain, lambda: f"{source} must be quantized; it has no scale.")

    def bind(context: Context, node: Node) -> Thunk:
        source, output = node.inputs[0].data, node.outputs[0].data
        if node.prepared is None:
            return lambda: compute(source, output)
        run = bind_table(node)
        return ensure_nothing_below(node.inputs[0], run) if positive else run

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


def bind_table(node: Node) -> Thunk:
    """Return the function that runs a node through the look-up table that `prepare` stored in `node.prepared`."""
    return lookup(node.prepared, node.inputs[0].data, node.outputs[0].data)


def ensure_nothing_below(source: Tensor, run: Thunk) -> Thunk:
    """Wrap `run`: the function raises an error if a value of `source` is below its zero point (negative), else it calls `run`."""
    values, zero_point = source.data, source.zero_point
    if not values.size:
        return run

    def check() -> None:
        lowest = int(values.min())
        if lowest < zero_point:
            refuse_below(source, lowest)
        run()

    return check
