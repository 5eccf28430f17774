"""Registrations of ops that map each string to one value, and accounting of strings' memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet_flex_ops.attributes import Attributes, checked_attributes

__all__ = ["charge_strings", "checked", "elementwise", "put_strings"]

Item = TypeVar("Item")
#: Items between two looks at the run's deadline.
_STRIDE = 1024
#: Bytes of a bytes object besides its characters, with the reference to it.
_STRING = 41


def elementwise(make: Callable[[Attributes], Callable[[bytes], Any]], *types: TensorType) -> Registration:
    """Build the registration of an op that maps each string of its input to one value.

    Args:
        make: returns, for the node's attributes, the function of one string.
        types: the types that the output may have; STRING if none are given.
    """

    def prepare(context: Context, node: Node) -> None:
        attributes = checked_attributes(node, 1)
        ensure_type(node.inputs[0], TensorType.STRING)
        ensure_type(node.outputs[0], *(types or (TensorType.STRING,)))
        node.prepared = make(attributes)
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(context: Context, node: Node) -> Thunk:
        source, target, function = node.inputs[0].data, node.outputs[0].data, node.prepared

        def run() -> None:
            put_strings(target, [function(string) for string in checked(source.ravel().tolist())])

        return run

    return Registration(prepare=prepare, bind=bind, pure=True)


def put_strings(target: Array, values: list[Any]) -> None:
    """Write the values into the array in row-major order."""
    target.reshape(-1)[:] = values


def checked(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, with a deadline check (checkpoint) every few items."""
    for number, item in enumerate(items):
        if not number % _STRIDE:
            checkpoint()
        yield item


def charge_strings(count: int, characters: int) -> None:
    """Charge the memory of strings that are about to be created to the limit.

    Raises:
        LimitError: they take more memory than is allowed.
    """
    charge(_STRING * count + characters)
