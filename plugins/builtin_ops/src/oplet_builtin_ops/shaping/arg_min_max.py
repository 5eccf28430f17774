"""ARG_MAX and ARG_MIN: the position along an axis of the largest or smallest value, the first of equal ones; NaN only if there is
nothing else.

Numerics: tflite/kernels/arg_min_max.cc
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.axes import read_int, resolve_axis
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet.schema.options import ArgMaxOptions, ArgMinOptions
from oplet_builtin_ops.layers.program import Call, run_program

__all__ = ["TYPES"]

#: A function that finds the position of the extreme value of each line along an axis.
Search = Callable[[Array, int], Array]

#: The longest axis for which comparing whole columns is faster than searching each line, and the fewest lines.
_SHORT, _MANY = 24, 128
#: The values that are compared at a time, which stay in the cache.
_BLOCK = 1 << 16

_AXES = (TensorType.INT32, TensorType.INT64)
#: The integer type for an 8-bit value and an 8-bit position.
_KEYS = {TensorType.INT8: TensorType.INT16, TensorType.UINT8: TensorType.UINT16}
TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.INT32, TensorType.BOOL)


def _axis(node: Node) -> int:
    return resolve_axis(read_int(node.inputs[1]), node.inputs[0].ndim)


def _shapes(node: Node) -> list[Shape]:
    source, axis = node.inputs[0], _axis(node)
    ensure(source.shape[axis] > 0, f"axis {axis} of {source} is empty, so that there is nothing to choose from.")
    return [source.shape[:axis] + source.shape[axis + 1 :]]


def _prepare(context: Context, node: Node, options: type[ArgMaxOptions] | type[ArgMinOptions]) -> None:
    """Check an ARG_MAX or ARG_MIN node; set its output shape if the axis is constant."""
    ensure_operands(node, 2)
    source, axis = node.inputs
    ensure_type(source, *TYPES)
    ensure_type(axis, *_AXES)
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    ensure(axis.size == 1, f"{axis} must hold exactly one value, not {axis.size}.")
    wanted = node.options(options).output_type
    ensure(wanted in _AXES, f"output_type is {wanted!r}; it must be INT32 or INT64.")
    context.set_type(node.outputs[0], wanted)
    defer_or_resize(context, node, [axis], _shapes)
    if node.prepared and _suits_columns(source.shape, _axis(node)):
        length = source.shape[-1]
        lines = min(_BLOCK // length, source.size // length)
        context.add_temporary(node, (length, lines), source.type)
        context.add_temporary(node, (lines,), source.type)
        context.add_temporary(node, (length, lines), TensorType.BOOL)
        context.add_temporary(node, (lines,), TensorType.UINT8)
    elif node.prepared and _suits_keys(source.type, source.shape, _axis(node)):
        length = source.shape[-1]
        lines = min(_BLOCK // length, source.size // length)
        for shape in ((lines, length), (lines,)):
            context.add_temporary(node, shape, _KEYS[source.type])


def _bind_max(context: Context, node: Node) -> Thunk:
    """Return the function that runs ARG_MAX."""
    return defer_or_run(context, node, _shapes, lambda node: _bind(node, np.argmax, np.maximum, -np.inf), node.inputs[1:])


def _bind_min(context: Context, node: Node) -> Thunk:
    """Return the function that runs ARG_MIN."""
    return defer_or_run(context, node, _shapes, lambda node: _bind(node, np.argmin, np.minimum, np.inf), node.inputs[1:])


def _suits_columns(shape: Shape, axis: int) -> bool:
    return axis == len(shape) - 1 and 1 < shape[-1] <= _SHORT and math.prod(shape[:-1]) >= _MANY


def _suits_keys(type: TensorType, shape: Shape, axis: int) -> bool:
    return type in _KEYS and axis == len(shape) - 1 and _SHORT < shape[-1] <= 256 and math.prod(shape[:-1]) >= _MANY


def _key_calls(node: Node, extreme: np.ufunc) -> Iterator[Call]:
    """Yield numpy calls for longer lines of 8-bit values: reduce keys of value and position, so that the low byte gives the first
    position.
    """
    keys, best = (temporary.data for temporary in node.temporaries)
    length = keys.shape[1]
    source, output = node.inputs[0].data.reshape(-1, length), node.outputs[0].data.reshape(-1)
    octet, bits = np.array(255, keys.dtype), np.array(8, keys.dtype)
    flip = octet if extreme is np.maximum else np.zeros_like(octet)
    order = np.arange(length, dtype=keys.dtype) ^ flip
    for start in range(0, len(source), len(best)):
        lines = source[start : start + len(best)]
        made, found = keys[: len(lines)], best[: len(lines)]
        calls: list[Call] = [
            (np.copyto, (made, lines)),
            (np.left_shift, (made, bits, made)),
            (np.bitwise_or, (made, order, made)),
            (extreme.reduce, (made, 1, None, found)),
            (np.bitwise_and, (found, octet, found)),
            (np.bitwise_xor, (found, flip, found)),
            (np.copyto, (output[start : start + len(lines)], found)),
        ]
        yield from calls


def _column_calls(node: Node, extreme: np.ufunc) -> Iterator[Call]:
    """Yield numpy calls for many short lines: mark values equal to the line's extreme, weighted so that the first one wins."""
    columns, best, equal, points = (temporary.data for temporary in node.temporaries)
    length = len(columns)
    source, output = node.inputs[0].data.reshape(-1, length), node.outputs[0].data.reshape(-1)
    worth = np.arange(255, 255 - length, -1, dtype=np.uint8)[:, None]
    for start in range(0, len(source), len(best)):
        lines = source[start : start + len(best)]
        count = len(lines)
        values, most, hits, score = columns[:, :count], best[:count], equal[:, :count], points[:count]
        weights = hits.view(np.uint8)
        calls: list[Call] = [
            (np.copyto, (values, lines.T)),
            (extreme.reduce, (values, 0, None, most)),
            (np.equal, (values, most, hits)),
            (np.multiply, (weights, worth, weights)),
            (np.maximum.reduce, (weights, 0, None, score)),
            (np.subtract, (np.uint8(255), score, score)),
            (np.copyto, (output[start : start + count], score)),
        ]
        yield from calls


def _bind(node: Node, search: Search, extreme: np.ufunc, worst: float) -> Thunk:
    source, output, axis = node.inputs[0].data, node.outputs[0].data, _axis(node)
    floats = source.dtype.kind == "f"
    if not output.size:
        return lambda: None
    many = None
    if node.temporaries:
        many = run_program(partial(_key_calls if len(node.temporaries) == 2 else _column_calls, node, extreme))

    def run() -> None:
        # numpy would prefer a NaN to any number; the maximum is NaN if there is one.
        if floats and np.isnan(np.maximum.reduce(source, None)):
            output[...] = _ignoring_nan(source, search, worst, axis)
        elif many is not None:
            many()
        else:
            output[...] = search(source, axis)

    return run


def _picked(values: Array, at: Array, axis: int) -> Array:
    return np.take_along_axis(values, np.expand_dims(at, axis), axis).squeeze(axis)


def _ignoring_nan(source: Array, search: Search, worst: float, axis: int) -> Array:
    masked = np.where(np.isnan(source), np.float32(worst), source)
    found = search(masked, axis)
    # If nothing is better than the value in place of NaN, the first number counts; if all are NaN, the first of all.
    return np.where(_picked(masked, found, axis) == worst, np.argmax(~np.isnan(source), axis), found)


ARG_MAX = Registration(prepare=partial(_prepare, options=ArgMaxOptions), bind=_bind_max, pure=True, types=TYPES)
ARG_MIN = Registration(prepare=partial(_prepare, options=ArgMinOptions), bind=_bind_min, pure=True, types=TYPES)
