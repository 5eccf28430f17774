"""RaggedTensorToVariant and RaggedTensorFromVariant: ragged tensors encoded as single values, whole or row by row.

Numerics: tensorflow/core/kernels/{ragged_tensor_to_variant_op.cc,ragged_tensor_from_variant_op.cc}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import kept_copy, listed, paced
from oplet_flex_ops.attributes import TYPES, Attributes
from oplet_flex_ops.kernel import computed
from oplet_flex_ops.ops.ragged.ranges import ensure_splits

__all__ = ["Ragged"]

#: Bytes of a row as a value: the tuples and arrays that refer to its values, for itself and for each level of splits.
_ROW, _LEVEL = 320, 200
_SPLITS = (TensorType.INT64, TensorType.INT32)


class Ragged(NamedTuple):
    """A ragged tensor as one value of a VARIANT tensor; its arrays are read-only.

    Attributes:
        splits: the row splits of each level, the outermost first.
        values: the values of all rows.
    """

    splits: tuple[Array, ...]
    values: Array


class _Writing(NamedTuple):
    rank: int
    batched: bool


def _writing(attributes: Attributes) -> _Writing:
    return _Writing(attributes.integer("RAGGED_RANK", least=0, most=255), attributes.flag("batched_input"))


@computed(
    "RaggedTensorToVariant",
    "rt_nested_splits: RAGGED_RANK*Tsplits[1], rt_dense_values: Tvalues -> encoded_ragged: VARIANT",
    _writing,
    pure=False,
    Tsplits=_SPLITS,
)
def RAGGEDTENSORTOVARIANT(given: _Writing, *operands: Array) -> Array:
    splits, values = operands[: given.rank], operands[given.rank]
    ensure_splits(splits, len(values) if values.ndim else 0)
    if not given.batched:
        return _variants([Ragged(tuple(kept_copy(level) for level in splits), kept_copy(values, besides=_ROW))], ())
    ensure(values.ndim >= 1, "a batch must have at least one dimension.")
    count = splits[0].size - 1 if splits else len(values)
    # What the rows have of their own lives as long as the array that all of them refer to, at most.
    values = kept_copy(values, besides=count * (_ROW + _LEVEL * len(splits)) + sum(level.nbytes for level in splits[1:]))
    if not given.rank:
        # Of one dimension too, rows are arrays, which keep the one that they are charged with.
        return _variants([Ragged((), values[number, ...]) for number in paced(range(len(values)))], (len(values),))
    rows = []
    for start, end in paced(zip(listed(splits[0]), listed(splits[0][1:]))):
        inner = []
        for level in splits[1:]:
            part = level[start : end + 1]
            start, end = int(part[0]), int(part[-1])
            inner.append(part - part[0])
        rows.append(Ragged(tuple(inner), values[start:end]))
    return _variants(rows, (len(rows),))


def _variants(items: list[Ragged], shape: tuple[int, ...]) -> Array:
    found = np.empty(len(items), object)
    for number, item in enumerate(paced(items)):
        found[number] = item
    return found.reshape(shape)


class _Reading(NamedTuple):
    inner: int
    rank: int
    dtype: Any


def _reading(attributes: Attributes) -> _Reading:
    type = attributes.type("Tvalues", *TYPES.values())
    ensure(
        type not in (TensorType.RESOURCE, TensorType.VARIANT, TensorType.BFLOAT16),
        f"a ragged tensor of {type.name} cannot be read here.",
    )
    dtype = np.dtype(object) if type == TensorType.STRING else type
    return _Reading(
        attributes.integer("input_ragged_rank", least=-1, most=255),
        attributes.integer("output_ragged_rank", least=0, most=255),
        dtype,
    )


@computed(
    "RaggedTensorFromVariant",
    "encoded_ragged: VARIANT -> output_nested_splits: output_ragged_rank*Tsplits, output_dense_values: Tvalues",
    _reading,
    pure=False,
    Tsplits=_SPLITS,
)
def RAGGEDTENSORFROMVARIANT(given: _Reading, encoded: Array) -> Any:
    inner = given.rank - encoded.ndim if given.inner == -1 else given.inner
    ensure(inner >= 0, f"output_ragged_rank is {given.rank}, less than the {encoded.ndim} axes of the variants.")
    ensure(
        given.rank == inner + encoded.ndim,
        f"output_ragged_rank is {given.rank}; {encoded.ndim} axes of variants and {inner} levels give {inner + encoded.ndim}.",
    )
    items = encoded.reshape(-1).tolist()
    for item in paced(items):
        ensure(
            isinstance(item, Ragged) and len(item.splits) == inner,
            f"a variant holds {type(item).__name__}, or another number of levels; a ragged tensor of {inner} levels is wanted.",
        )
    if encoded.ndim == 0:
        levels: list[Array] = list(items[0].splits)
        values = items[0].values
    else:
        levels = _levels(encoded, items, inner)
        ensure(len({item.values.shape[1:] for item in paced(items)}) <= 1, "the variants hold values of different shapes.")
        values = np.concatenate([item.values for item in paced(items)]) if items else np.zeros(0, _dtype(given.dtype))
    ensure(values.dtype == _dtype(given.dtype), f"the variants hold {values.dtype}, where {_dtype(given.dtype)} is wanted.")
    return [*levels, values] if levels else values


def _dtype(type: Any) -> np.dtype[Any]:
    return type if isinstance(type, np.dtype) else np.dtype(type.name.lower())


def _levels(encoded: Array, items: list[Ragged], inner: int) -> list[Array]:
    """Return the row splits of a tensor of variants: of its axes, of the items' rows, and of the `inner` levels in the items."""
    counts = [1]
    for size in encoded.shape:
        counts.append(counts[-1] * size)
    levels: list[Array] = [np.arange(counts[axis] + 1) * encoded.shape[axis] for axis in range(1, encoded.ndim)]
    lengths = [item.splits[0].size - 1 if inner else len(item.values) for item in paced(items)]
    levels.append(np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))))
    for level in range(inner):
        parts = [np.zeros(1, np.int64)]
        for item in paced(items):
            parts.append(item.splits[level][1:] + parts[-1][-1])
        levels.append(np.concatenate(parts))
    return levels
