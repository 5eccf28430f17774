"""Decides whether a Predictor runs a model in batches: the rows of a batch must be independent, and come out as if each were run
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Tensor
from oplet.errors import OpletError, text_of
from oplet.texts import counted
from oplet_predictor.batch_rules import RULES, Reads, keeps_bits
from oplet_predictor.columns import Column, read_rows
from oplet_predictor.opened_model import OpenedModel

__all__ = ["BatchPlan", "decide"]

Array = NDArray[Any]
#: Opens the model for so many rows, with or without the Predictor's delegates.
Open = Callable[[int, bool], OpenedModel]

#: The largest batch that is chosen without being asked for.
_MOST = 64
#: Bytes of a batch's tensors above which batches were slower than single rows: they leave the cache between two nodes.
_CACHED = 64 << 10
#: The batch with which shapes are compared, a number that no dimension of a row is likely to be mistaken for; and rows of the probe.
_COMPARED, _PROBED = 3, 8
#: The tolerance for floats of the probe, as a part of the largest value.
_TOLERANCE = 1e-3


class BatchPlan(NamedTuple):
    """How many rows are run at once, and why.

    Attributes:
        size: the number of rows of a batch, 1 for row by row.
        why: the reason, in words.
    """

    size: int
    why: str

    def __str__(self) -> str:
        return f"batches of {self.size} rows: {self.why}" if self.size > 1 else f"row by row: {self.why}"


def decide(single: OpenedModel, open_for: Open, asked: int | bool | None, delegates: bool) -> BatchPlan:
    """Decide whether rows are run one by one or in batches, and of which size.

    Args:
        single: the model, allocated for one row.
        open_for: opens the model for a number of rows, with or without delegates.
        asked: the argument `batch` of the Predictor: None (only with equal bits), True or the largest batch.
        delegates: whether the Predictor has delegates.
    """
    if asked is not None and asked is not True and asked == 1:
        return BatchPlan(1, "batch=1 asks for it")
    if asked is None and delegates:
        return BatchPlan(1, "the bits of a delegate's results may depend on the batch; batch=True allows that")
    why = _not_resizable(single)
    if why:
        return BatchPlan(1, why)
    size = asked if asked is not None and asked is not True else _cached_size(single)
    if size < 2:
        used = max(single.subgraph.arena_bytes, 1) / 1024
        return BatchPlan(1, f"one row takes {used:.0f} KiB between its nodes, and batches of that are no faster")
    opened: list[OpenedModel] = []
    try:
        return _examine(single, open_for, size, asked is not None, delegates, opened)
    finally:
        for each in opened:
            each.close()


def _examine(
    single: OpenedModel, open_for: Open, size: int, tolerant: bool, delegates: bool, opened: list[OpenedModel]
) -> BatchPlan:
    def open_and_note(rows: int, with_delegates: bool) -> OpenedModel:
        opened.append(open_for(rows, with_delegates))
        return opened[-1]

    try:
        one = open_and_note(1, False) if delegates else single
        several = open_and_note(_COMPARED, False)
    except OpletError as error:
        return BatchPlan(1, f"the model does not take {_COMPARED} rows at once: {_reason(error)}")
    why = mixing(one, several) or ("" if tolerant else rounding(several))
    if why:
        return BatchPlan(1, why)
    while True:
        try:
            batch = open_and_note(size, True)
            break
        except OpletError as error:
            if size == 2:
                return BatchPlan(1, f"the model does not take 2 rows at once: {_reason(error)}")
            size //= 2
    try:
        why = _probe(single, batch, size, tolerant)
    except OpletError as error:
        why = f"random rows do not run, so that batches cannot be compared with them: {_reason(error)}"
    if why:
        return BatchPlan(1, why)
    bits = (
        "floats may differ in their last bits from those of single rows"
        if tolerant and rounding(several)
        else "the bits are those of single rows"
    )
    return BatchPlan(size, f"every node keeps rows apart; {bits}")


def _not_resizable(single: OpenedModel) -> str:
    """Explain why the model cannot take several rows at once, whatever its nodes compute; "" if it may."""
    if not single.subgraph.ready:
        return "the model cannot be allocated before the shapes of its rows are known"
    if single.has_variables:
        return "the model keeps state, which begins anew for each row"
    for column in single.inputs.values():
        if not column.fills_batch:
            return f"the input '{column.name}' has no dimension for rows"
        if -1 in column.shape:
            return f"rows of the input '{column.name}' may have several shapes"
    if single.subgraph.is_dynamic:
        return "shapes depend on the rows' values"
    return ""


def _cached_size(single: OpenedModel) -> int:
    nbytes = max(single.subgraph.arena_bytes, 1)
    return min(_MOST, _CACHED // nbytes)


def mixing(one: OpenedModel, several: OpenedModel) -> str:
    """Explain why rows of a batch might influence one another; "" if every node treats them independently.

    Args:
        one: the model, allocated for one row.
        several: the model, allocated for several rows.
    """
    rows, tensors = several.size, one.subgraph.tensors
    batched = {tensors[column.index] for column in one.inputs.values()}
    varying: set[Tensor] = set()
    for index in one.subgraph.execution_plan:
        node = one.subgraph.nodes[index]
        there = [several.subgraph.tensors[tensor.index] for tensor in node.outputs]
        place = f"node {node.index} ({node.op_name})"
        if node.outputs and all(a.is_constant and b.is_constant for a, b in zip(node.outputs, there)):
            for a, b in zip(node.outputs, there):
                if not same_bits(np.asarray(a.data), np.asarray(b.data)):
                    (batched if _repeats(a, b, rows) else varying).add(a)
            continue
        rule = RULES.get(node.op)
        if batched.isdisjoint(tensor for tensor in node.inputs if tensor is not None):
            return f"{place} computes something that is not from the rows, and may be the same for each or not"
        why = f"{node.op_name} may mix rows" if rule is None else rule(Reads(node, batched, varying))
        if why:
            return f"{place} may not keep rows apart: {why}" if rule is not None else f"{place} may mix rows"
        for a, b in zip(node.outputs, there):
            if not a.shape or b.shape != (a.shape[0] * rows, *a.shape[1:]):
                return f"{place} makes {list(b.shape)} of {rows} rows where one row gives {list(a.shape)}, which is not one part for each"
            if a.quantization is not None and len(a.quantization.scales) > 1 and a.quantization.quantized_dimension == 0:
                return f"{place} has a scale for each slice along the rows"
            batched.add(a)
    for column in one.outputs.values():
        if tensors[column.index] not in batched:
            return f"the output '{column.name}' does not come from the rows"
    return ""


def rounding(model: OpenedModel) -> str:
    """Explain why a batch may differ in floats' last bits from the same rows run one by one; "" if it cannot."""
    for index in model.subgraph.execution_plan:
        node = model.subgraph.nodes[index]
        if not keeps_bits(node) and not all(tensor.is_constant for tensor in node.outputs):
            return (
                f"the floats of node {node.index} ({node.op_name}) may differ in their last bits with the size of the batch; batch=True "
                "allows that"
            )
    return ""


def same_bits(a: Array, b: Array) -> bool:
    """Return whether two arrays have the same shape, dtype and bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.array_equal(a, b)) if a.dtype.hasobject else a.tobytes() == b.tobytes()


def _repeats(one: Tensor, several: Tensor, rows: int) -> bool:
    """Return whether a constant that grows with the number of rows has the same values for each row."""
    a, b = np.asarray(one.data), np.asarray(several.data)
    if not a.ndim or b.shape != (a.shape[0] * rows, *a.shape[1:]):
        return False
    return same_bits(b, np.concatenate([a] * rows))


def _probe(single: OpenedModel, batch: OpenedModel, size: int, tolerant: bool) -> str:
    """Explain how random rows differ in a batch from single rows, "" if they do not; if `tolerant`, by more than last bits."""
    random = np.random.default_rng(0)
    different = min(_PROBED, size)
    order = np.arange(size) % different
    values = {name: _random_rows(column, different, random)[order] for name, column in single.inputs.items()}
    rows = read_rows(single.inputs, values, "the model")
    alone, together = single.collect(different), single.collect(size)
    for row in range(different):
        single.run_row(rows, row, alone, row)
    batch.run_batch(rows, 0, size, together)
    for name, a, b in zip(single.outputs, alone, together):
        if not _agree(a.rows[order], b.rows, tolerant):
            return f"the output '{name}' of {counted(size, 'row')} is not that of the same rows one by one"
    return ""


def _reason(error: OpletError) -> str:
    """Return the first sentence of an error's message."""
    return re.split(r"\.(?: (?=[A-Z])|$)", text_of(error))[0]


def _random_rows(column: Column, count: int, random: np.random.Generator) -> Array:
    shape, dtype = (count, *column.shape), column.dtype
    if dtype.hasobject:
        texts = np.empty(shape, object)
        texts.reshape(-1)[:] = [b"%d" % number for number in range(texts.size)]
        return texts
    if dtype.kind in "iu":
        if np.any(column.details["quantization_parameters"]["scales"]):
            return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
        return random.integers(0, 9, shape, endpoint=True).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    return np.asarray(random.random(shape) - 0.25).astype(dtype)


def _agree(alone: Array, together: Array, tolerant: bool) -> bool:
    if not tolerant or alone.dtype.kind not in "fciu" or alone.shape != together.shape:
        return same_bits(alone, together)
    if alone.dtype.kind in "iu":  # a quantized value between two steps may be rounded the other way
        return not alone.size or int(np.abs(alone.astype(np.int64) - together.astype(np.int64)).max()) <= 1
    finite = np.abs(alone[np.isfinite(alone)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(alone, together, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True))
