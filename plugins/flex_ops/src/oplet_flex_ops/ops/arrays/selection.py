"""Ops that select by condition, bound or order: Where, Select(V2), Bucketize, bounds, TopKV2, InTopKV2, NthElement.

Numerics: tensorflow/core/kernels/{where_op.cc,cwise_op_select.cc,bucketize_op.cc,searchsorted_op.cc,topk_op.cc,in_topk_op.h,nth_element_op.cc}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_int
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled
from oplet_flex_ops.numerics.dense import PORTION, portions
from oplet_flex_ops.signature import INDICES, NUMBERS, REALS

_SHORT = (*INDICES, TensorType.INT16)


@computed("Where", "input: T -> index: INT64", T=(TensorType.BOOL, *NUMBERS))
def WHERE(given: Any, values: Array) -> Array:
    ensure(values.ndim >= 1, "the input must have at least one dimension.")
    return np.stack((values != 0).nonzero(), 1)


def _select_shapes(node: Node, given: Any) -> list[Shape]:
    condition, then, other = node.inputs
    ensure(then.shape == other.shape, f"{then} and {other} must have one shape.")
    fits = condition.shape in ((), then.shape) or (condition.ndim == 1 and condition.shape == then.shape[:1])
    ensure(fits, f"{condition} must be a scalar, of the shape of {then}, or a vector with an element for each of its rows.")
    return [then.shape]


@filled("Select", "condition: BOOL, t: T, e: T -> output: T", _select_shapes)
def SELECT(given: Any, outputs: list[Array], condition: Array, then: Array, other: Array) -> None:
    rows = condition.reshape(condition.shape + (1,) * (then.ndim - condition.ndim)) if condition.ndim == 1 else condition
    outputs[0][...] = other
    np.copyto(outputs[0], then, where=rows)


def _select_v2_shapes(node: Node, given: Any) -> list[Shape]:
    try:
        return [np.broadcast_shapes(*(tensor.shape for tensor in node.inputs))]
    except ValueError:
        ensure(False, f"{node.inputs[0]}, {node.inputs[1]} and {node.inputs[2]} cannot be broadcast together.")
        raise


@filled("SelectV2", "condition: BOOL, t: T, e: T -> output: T", _select_v2_shapes)
def SELECTV2(given: Any, outputs: list[Array], condition: Array, then: Array, other: Array) -> None:
    outputs[0][...] = other
    np.copyto(outputs[0], then, where=condition)


def _boundaries(attributes: Attributes) -> Array:
    value = attributes.node_def.attributes.get("boundaries", [])
    ensure(
        isinstance(value, list) and all(isinstance(item, float) for item in value),
        "the attribute 'boundaries' must be a list of floats.",
    )
    found = np.array(value, np.float32)
    ensure(bool((found[1:] >= found[:-1]).all()), f"the boundaries {value!r:.60} must be ascending.")
    return found


@filled(
    "Bucketize",
    "input: T -> output: INT32",
    lambda node, given: [node.inputs[0].shape],
    _boundaries,
    T=(TensorType.INT32, TensorType.INT64, TensorType.FLOAT32, TensorType.FLOAT64),
)
def BUCKETIZE(boundaries: Array, outputs: list[Array], values: Array) -> None:
    # Floats and integers are compared with the boundaries as floats, doubles as doubles.
    wide = np.float64 if values.dtype == np.float64 else np.float32
    for part in portions(values.shape):
        outputs[0][part] = np.searchsorted(boundaries.astype(wide), values[part].astype(wide, copy=False), "right")


def _bound(op: str, side: Any) -> Registration:
    def shapes(node: Node, given: Any) -> list[Shape]:
        table, values = node.inputs
        ensure(table.shape[0] == values.shape[0], f"{table} and {values} must have the same number of rows.")
        return [values.shape]

    def compute(given: Any, outputs: list[Array], table: Array, values: Array) -> None:
        for row, sought, found in paced(zip(table, values, outputs[0]), 16):
            found[...] = np.searchsorted(row, sought, side)

    text = "sorted_inputs: T[2], values: T[2] -> output: out_type"
    return filled(op, text, shapes, T=REALS, out_type=INDICES)(compute)


LOWERBOUND = _bound("LowerBound", "left")
UPPERBOUND = _bound("UpperBound", "right")


def _ensure_k(node: Node, k: int) -> list[Shape]:
    source = node.inputs[0]
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    ensure(
        0 <= k <= source.shape[-1], f"k is {k}; it must be in 0 to {source.shape[-1]}, the length of the last axis of {source}."
    )
    return [(*source.shape[:-1], k)] * 2


def _descending(values: Array) -> Array:
    """Return each row's argsort in descending order; of equal values the first comes first."""
    if values.dtype.kind in "iu":
        return np.argsort(np.invert(values), -1, "stable")
    wide = values.astype(np.float32) if values.dtype.itemsize == 2 else values
    return np.argsort(np.negative(wide), -1, "stable")


@filled(
    "TopKV2",
    "input: T, k: Tk[0]! -> values: T, indices: index_type",
    lambda node, given: _ensure_k(node, read_int(node.inputs[1])),
    T=REALS,
    Tk=_SHORT,
    index_type=_SHORT,
)
def TOPKV2(given: Any, outputs: list[Array], values: Array, *k: Array) -> None:
    if outputs[0].size:
        best = _descending(values)[..., : outputs[0].shape[-1]]
        outputs[1][...] = best
        outputs[0][...] = np.take_along_axis(values, best, -1)


def _in_top_k_shapes(node: Node, given: Any) -> list[Shape]:
    predictions, targets = node.inputs[:2]
    ensure(predictions.shape[0] == targets.shape[0], f"{predictions} and {targets} must have the same number of rows.")
    return [targets.shape]


def _in_top_k(k: int | None, outputs: list[Array], predictions: Array, targets: Array, *more: Array) -> None:
    most = int(more[0]) if k is None else k
    classes = predictions.shape[1]
    there = (targets >= 0) & (targets < classes)
    if not classes:
        outputs[0].fill(False)
        return
    chosen = np.take_along_axis(predictions, np.where(there, targets, 0)[:, None].astype(np.intp), 1)
    known = there & np.isfinite(chosen[:, 0]) & np.isfinite(predictions).all(1)
    outputs[0][...] = known & ((predictions > chosen).sum(1) < most)


INTOPK = filled(
    "InTopK",
    "predictions: FLOAT32[2], targets: T[1] -> precision: BOOL",
    _in_top_k_shapes,
    lambda attributes: attributes.integer("k"),
    T=INDICES,
)(_in_top_k)
INTOPKV2 = filled("InTopKV2", "predictions: FLOAT32[2], targets: T[1], k: T[0] -> precision: BOOL", _in_top_k_shapes, T=INDICES)(
    _in_top_k
)


def _nth_shapes(node: Node, reverse: bool) -> list[Shape]:
    source, n = node.inputs[0], read_int(node.inputs[1])
    ensure(source.ndim >= 1, f"{source} must have at least one dimension.")
    ensure(
        0 <= n < source.shape[-1], f"n is {n}; it must be in 0 to {source.shape[-1] - 1}, the last place of a row of {source}."
    )
    return [source.shape[:-1]]


@filled(
    "NthElement",
    "input: T, n: INT32[0]! -> values: T",
    _nth_shapes,
    lambda attributes: attributes.flag("reverse", default=False),
    T=REALS,
)
def NTHELEMENT(reverse: bool, outputs: list[Array], values: Array, n: Array) -> None:
    length = values.shape[-1]
    place = length - 1 - int(n) if reverse else int(n)
    rows, found = values.reshape(-1, length), outputs[0].reshape(-1)
    for [part] in portions((len(rows),), max(1, PORTION // length)):  # a large tensor has no room for a copy
        some = rows[part]
        if values.dtype.kind == "V":  # numpy does not partition bfloat16
            some = np.sort(some.astype(np.float32), -1)
        else:
            some = np.partition(some, place, -1)
        found[part] = some[:, place]
