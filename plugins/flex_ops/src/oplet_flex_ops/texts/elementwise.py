"""Registrations of ops that map each string to one value, and looks at the clock in loops over strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.limits import paced
from oplet.kernels.strings import StringMeter, make_strings
from oplet_flex_ops.attributes import Attributes, checked_attributes

__all__ = ["checked", "elementwise", "put_strings"]

Item = TypeVar("Item")
#: What an item counts for besides its bytes, in looks at the clock by bytes.
_ITEM = 1024
#: Values that are written at once.
_TOGETHER = 4096


def elementwise(
    make: Callable[[Attributes], Callable[[bytes], Any]], *types: TensorType, growth: int = 1, scratch: int = 0
) -> Registration:
    """Build the registration of an op that maps each string of its input to one value.

    Args:
        make: returns the function of one string, from the node's attributes.
        types: the types that the output may have; STRING if none are given.
        growth: the most bytes of a value per byte of its string, besides 4 bytes.
        scratch: the bytes of memory that the function uses per byte of its string, besides the value.
    """

    def prepare(context: Context, node: Node) -> None:
        attributes = checked_attributes(node, 1)
        ensure_type(node.inputs[0], TensorType.STRING)
        ensure_type(node.outputs[0], *(types or (TensorType.STRING,)))
        node.prepared = make(attributes)
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(context: Context, node: Node) -> Thunk:
        source, target, function = node.inputs[0].data, node.outputs[0].data, node.prepared
        size = _number if types else len

        def run() -> None:
            items = source.ravel().tolist()
            put_strings(target, make_strings(function, items, _most, growth=growth, scratch=scratch, size=size))

        return run

    return Registration(prepare=prepare, bind=bind, pure=True)


def put_strings(target: Array, values: Sequence[Any]) -> None:
    """Write the values, as many as the array has elements, into it in row-major order."""
    flat = target.reshape(-1)
    for first in paced(range(0, len(values), _TOGETHER)):  # numpy makes an array of what it is given
        flat[first : first + _TOGETHER] = values[first : first + _TOGETHER]


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items; check every few items, or megabytes of strings, whether the run was cancelled or its deadline passed."""
    meter = StringMeter()
    for item in items:
        meter.read(_ITEM + (len(item) if isinstance(item, bytes) else 0))
        yield item


def _most(string: bytes) -> int:
    return len(string) + 4


def _number(value: Any) -> int:
    return 0
