"""Shared parts of kernels: checks of row splits, tables in constant inputs, outputs of run-time size.

Processing of many strings in batches, so that scratch memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Tensor, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.strings import StringMeter, make_strings

__all__ = ["ensure_row_splits", "give", "give_all", "makes", "string_vector", "table_of"]

Value = TypeVar("Value")


def string_vector(values: Sequence[bytes]) -> NDArray[Any]:
    """Return the strings as a one-dimensional object array."""
    array = np.empty(len(values), object)
    array[:] = values
    return array


def makes(context: Context, node: Node, *types: TensorType | tuple[TensorType, ...]) -> None:
    """Check the types of a node's outputs, each one or a choice, the last for all outputs behind, and make their shapes dynamic."""
    for number, output in enumerate(node.outputs):
        allowed = types[min(number, len(types) - 1)]
        ensure_type(output, *(allowed if isinstance(allowed, tuple) else (allowed,)))
        context.set_dynamic(output)


def give(context: Context, tensor: Tensor, values: NDArray[Any] | Sequence[Any]) -> None:
    """Resize a dynamic output to the shape of `values` and write them; a list of bytes becomes a string vector."""
    array = (
        values
        if isinstance(values, np.ndarray)
        else string_vector(values)
        if tensor.dtype.hasobject
        else np.asarray(values, tensor.dtype)
    )
    context.resize_tensor(tensor, array.shape)
    tensor.data[...] = array


def give_all(context: Context, node: Node, *values: NDArray[Any] | Sequence[Any]) -> None:
    """Resize and write all outputs of the node."""
    for tensor, each in zip(node.outputs, values):
        give(context, tensor, each)


def ensure_row_splits(splits: Tensor, values: int) -> NDArray[np.int64]:
    """Check and return row splits: they start at 0, never decrease, and end at `values`.

    Raises:
        EnsureError: the row splits are invalid.
    """
    found = splits.data.astype(np.int64)
    ensure(
        found.ndim == 1 and found.size > 0 and found[0] == 0 and found[-1] == values and not (found[1:] < found[:-1]).any(),
        lambda: f"{splits} must have row splits that begin with 0, never fall and end with the number of values, {values}.",
    )
    return found


def table_of(node: Node, tensor: Tensor, key: str, make: Callable[[bytes], Value]) -> Value:
    """Return a table that `make` parses from a tensor of bytes, or of one string.

    The table is cached on the node, under `key`, as long as the tensor is the same constant.
    """
    ensure(tensor.size > 0, lambda: f"{tensor} is empty; it must hold the bytes of a table.")

    def read() -> Value:
        data = tensor.data
        return make(data.reshape(-1)[0] if data.dtype.hasobject else data.tobytes())

    return node.cached(key, [tensor], read)


#: Bytes of text that are worked on at once, unless a single string is longer.
_AT_ONCE = 1 << 20


def parts(texts: Sequence[bytes], scratch: int, at_once: int = _AT_ONCE) -> Iterator[Sequence[bytes]]:
    """Yield the strings in batches of about `at_once` bytes (a megabyte).

    Before each batch, `scratch` bytes per byte of text are charged against the memory limit.
    """
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1)
    first, before = 0, 0
    while first < len(texts):
        last = max(first + 1, int(np.searchsorted(ends, before + at_once, side="right")))
        checkpoint()
        charge(scratch * (int(ends[last - 1]) - before))
        yield texts[first:last]
        first, before = last, int(ends[last - 1])


def each_text(change: Callable[[bytes, StringMeter], bytes], texts: Sequence[bytes]) -> list[bytes]:
    """Apply `change` to each string; return the results.

    The memory of results as long as their strings is charged beforehand; `change` charges what it adds, by the meter it is given.
    """
    meter = StringMeter()
    return make_strings(lambda text: change(text, meter), texts, len, meter=meter)
