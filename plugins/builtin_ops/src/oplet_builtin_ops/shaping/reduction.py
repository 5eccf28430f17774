"""REDUCE_ALL, _ANY, _MAX and _MIN, and shared parts of reductions: axes, output shape, sums, reductions by one ufunc.

Numerics: tflite/kernels/reduce.cc
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_ints, resolve_axes
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import ReducerOptions
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.arithmetic.single_precision import takes_halves

__all__ = [
    "NUMBERS",
    "NUMBERS_AND_BOOL",
    "QUANTIZED",
    "bind_by_ufunc",
    "bind_reduction",
    "highest",
    "kept_shape",
    "lowest",
    "prepare_reduction",
    "reduced_axes",
    "summing",
]

#: The types of most reductions.
NUMBERS = (
    TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.UINT8, TensorType.INT8, TensorType.INT16,
)  # fmt: skip
#: For booleans, a sum is a logical OR, and a product a logical AND.
NUMBERS_AND_BOOL = (*NUMBERS, TensorType.BOOL)
QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Return the reduced axes, ascending, without duplicates."""
    return resolve_axes(read_ints(node.inputs[1]), node.inputs[0].ndim)


def kept_shape(node: Node) -> Shape:
    """Return the output's shape with every reduced axis kept with size 1."""
    axes = reduced_axes(node)
    return tuple(1 if axis in axes else dim for axis, dim in enumerate(node.inputs[0].shape))


def _shapes(node: Node) -> list[Shape]:
    kept = kept_shape(node)
    if node.options(ReducerOptions).keep_dims:
        return [kept]
    axes = reduced_axes(node)
    return [tuple(dim for axis, dim in enumerate(kept) if axis not in axes)]


def prepare_reduction(context: Context, node: Node, *types: TensorType) -> None:
    """Check a reduction node of one of `types`; set its output shape if the axes are constant."""
    ensure_operands(node, 2)
    source, axes = node.inputs
    output = node.outputs[0]
    ensure_type(source, *types)
    ensure_same_type(source, output)
    ensure_type(axes, TensorType.INT32)
    if source.type == TensorType.INT16:
        for tensor in (source, output):
            ensure(tensor.zero_point == 0, f"{tensor} has zero point {tensor.zero_point}; int16 takes 0 here.")
    defer_or_resize(context, node, [axes], _shapes)


def bind_reduction(context: Context, node: Node, bind: Callable[[Node], Thunk]) -> Thunk:
    """Return the function that runs a reduction; `bind` builds it when the output's shape is known."""
    return defer_or_run(context, node, _shapes, bind, node.inputs[1:])


def lowest(dtype: np.dtype[Any]) -> float:
    """Return the lowest finite value of a dtype."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else int(dtype.kind != "b" and np.iinfo(dtype).min)


def highest(dtype: np.dtype[Any]) -> float:
    """Return the highest finite value of a dtype."""
    return float(np.finfo(dtype).max) if dtype.kind == "f" else int(dtype.kind == "b" or np.iinfo(dtype).max)


def summing(source: Array, axes: tuple[int, ...], output: Array) -> Thunk:
    """Return a function: output = sums over `axes` (kept with size 1), accumulated in the input's type; integers wrap around."""
    if source.dtype == np.float32 and axes and axes == tuple(range(axes[0], axes[-1] + 1)):
        # Neighbouring axes are one axis of a matrix, or of a stack of matrices, whose columns BLAS adds up.
        before, after = prod(source.shape[: axes[0]]), prod(source.shape[axes[-1] + 1 :])
        ones = np.ones((1, prod(source.shape[axis] for axis in axes)), np.float32)
        stack = source.reshape(before, ones.shape[1], after)
        if after == 1:
            return partial(np.matmul, stack.reshape(before, ones.shape[1]), ones[0], output.reshape(before))
        return partial(np.matmul, ones, stack, output.reshape(before, 1, after))
    return partial(np.add.reduce, source, axes, output.dtype, output, True)


def bind_by_ufunc(node: Node, combine: np.ufunc, of_nothing: Callable[[np.dtype[Any]], float]) -> Thunk:
    """Return a function that reduces by the ufunc `combine`; `of_nothing` returns the result of an empty reduction for a dtype."""
    source, output, axes = node.inputs[0].data, node.outputs[0].data, reduced_axes(node)
    if not source.size:
        return partial(output.fill, of_nothing(output.dtype))
    if axes == (source.ndim - 1,):
        from oplet_builtin_ops.shaping.row_folds import fold_rows

        return fold_rows(combine, source, output)
    return partial(combine.reduce, source, axes, output.dtype, output.reshape(kept_shape(node)), keepdims=True)


def reduction_by_ufunc(combine: np.ufunc, of_nothing: Callable[[np.dtype[Any]], float], *types: TensorType) -> Registration:
    """Build the registration of a reduction by the ufunc `combine` on `types`; quantized inputs must have the output's
    quantization.
    """

    def prepare(context: Context, node: Node) -> None:
        prepare_reduction(context, node, *types)
        if node.inputs[0].type in QUANTIZED:
            ensure_same_quantization(node.inputs[0], node.outputs[0])

    def bind(context: Context, node: Node) -> Thunk:
        return bind_reduction(context, node, lambda node: bind_by_ufunc(node, combine, of_nothing))

    return Registration(prepare=prepare, bind=bind, pure=True, types=types)


REDUCE_ALL = reduction_by_ufunc(np.logical_and, lambda dtype: True, TensorType.BOOL)
REDUCE_ANY = reduction_by_ufunc(np.logical_or, lambda dtype: False, TensorType.BOOL)
# fmax and fmin, as LiteRT's comparisons ignore NaN.
REDUCE_MAX = takes_halves(reduction_by_ufunc(np.fmax, lowest, *NUMBERS_AND_BOOL))
REDUCE_MIN = takes_halves(reduction_by_ufunc(np.fmin, highest, *NUMBERS_AND_BOOL))
