"""Checks of kernels: of the inputs they get, the shapes and temporaries they request, and the tensors they write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from oplet.errors import PluginError
from oplet.ops.context import EnsureError, Node, ensure
from oplet.ops.node import Thunk
from oplet.ops.strings import MAX_RANK
from oplet.ops.tensor import Allocation, Array, Shape, Tensor
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.schema.enums import BuiltinOperator

__all__ = ["check_inputs", "check_prepared", "checked_shape", "ensure_temporary", "with_write_check"]

#: The allocation types that a kernel may request.
_TEMPORARY = (Allocation.ARENA, Allocation.PERSISTENT, Allocation.DYNAMIC)
#: More elements than any address space holds.
_LARGEST = 2**60
_KNOWN = Allocation.CONSTANT, Allocation.COMPUTED
#: From so many inputs and outputs on, the bytes that a kernel keeps for each of them (views, offsets) are charged.
_MANY, _OPERAND = 1000, 512
#: The largest size of a dimension, which the format and LiteRT store in 32 bits.
_LONGEST = 2**31 - 1


def ensure_temporary(allocation: Allocation) -> None:
    """Check that a temporary may have this allocation type: ARENA, PERSISTENT or DYNAMIC.

    Raises:
        EnsureError: the allocation type is another one.
    """
    ensure(
        allocation in _TEMPORARY,
        lambda: (
            f"a temporary is of allocation type {getattr(allocation, 'name', repr(allocation))}; ARENA, PERSISTENT and DYNAMIC are possible."
        ),
    )


def checked_shape(tensor: Tensor, shape: Sequence[int]) -> Shape:
    """Return the shape as a tuple of ints, if a tensor can have it.

    Raises:
        EnsureError: the shape is no sequence, has too many dimensions, a negative or too large one, or too many elements.
    """
    if shape.__class__ is tuple and (known := _usual(shape)) is not None:
        return known
    if not hasattr(shape, "__len__") or isinstance(shape, (str, bytes)):
        raise EnsureError(f"{tensor} cannot take {shape!r} as its shape; a shape is a sequence of sizes, such as (2, 3).")
    if len(shape) > MAX_RANK:
        raise EnsureError(f"{tensor} cannot take a shape of {len(shape)} dimensions; {MAX_RANK} are possible.")
    wanted = tuple(map(int, shape))
    if wanted != tuple(shape):
        raise EnsureError(f"{tensor} cannot take the shape {list(shape)}: a dimension is a whole number.")
    if not wanted:
        return wanted
    if min(wanted) < 0:
        raise EnsureError(f"{tensor} cannot take the shape {list(wanted)}: a dimension must not be negative.")
    if max(wanted) > _LONGEST:
        raise EnsureError(f"{tensor} cannot take the shape {list(wanted)}: a dimension is at most {_LONGEST}.")
    if math.prod(wanted) > _LARGEST:
        raise EnsureError(f"BytesRequired number of elements overflowed. {tensor} cannot take the shape {list(wanted)}.")
    return wanted


@lru_cache(maxsize=4096)
def _usual(shape: tuple[int, ...]) -> Shape | None:
    """Return the shape as ints if it is valid and not empty, else None; cached, as most shapes are checked again and again."""
    wanted = tuple(map(int, shape))
    return wanted if len(wanted) <= MAX_RANK and all(size > 0 for size in wanted) and math.prod(wanted) <= _LONGEST else None


def check_prepared(node: Node, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Check a node after its kernel's `prepare`, and restore its lists of tensors if the kernel changed them.

    Args:
        node: the node.
        inputs: the node's inputs before `prepare`.
        outputs: the node's outputs before `prepare`.

    Raises:
        PluginError: the kernel changed the lists, or has wrong temporaries or in-place inputs.
        EnsureError: an output or temporary has a shape that no tensor can have.
    """
    if node.inputs != inputs or node.outputs != outputs:
        node.inputs, node.outputs = list(inputs), list(outputs)
        raise PluginError("The kernel changes the list of its node's tensors; they are the graph's")
    for tensor in outputs:
        tensor.shape = checked_shape(tensor, tensor.shape)
    for tensor in node.temporaries:
        if not isinstance(tensor, Tensor):
            node.temporaries = []
            raise PluginError(f"The kernel has {tensor!r} among its temporaries, which is no tensor")
        tensor.shape = checked_shape(tensor, tensor.shape)
    for tensor in node.in_place:
        if tensor not in inputs and not any(tensor in other.inputs for other in node.absorbed):
            node.in_place = ()
            raise PluginError(f"The kernel offers to write over {tensor!r}, which is no input of its node")


def check_inputs(node: Node, memory: MemoryAccount) -> None:
    """Check a node's inputs before its kernel's `prepare`.

    Raises:
        EnsureError: an input is stored sparse, and the kernel does not declare that it reads sparse constants there.
        LimitError: a tensor is larger than is allowed (of sparse ones the dense size), or there are so many operands that a kernel's
            own memory for each would be more than is allowed.
    """
    count = len(node.inputs) + len(node.outputs)
    if count > _MANY:
        memory.charge(count * _OPERAND)
    registration = node.registration
    for position, tensor in enumerate(node.inputs):
        if tensor is None or (tensor.allocation in _KNOWN and tensor.sparsity is None):
            continue
        memory.check_tensor(tensor)
        if tensor.sparsity is not None and registration is not None and position not in registration.sparse:
            ensure(
                node.op is BuiltinOperator.DELEGATE,
                f"{tensor} is stored sparse, which this kernel does not read as input {position}; a DENSIFY node makes it dense.",
            )


def with_write_check(node: Node, thunk: Thunk) -> Thunk:
    """Return the thunk, followed by a check that its kernel wrote its outputs, temporaries and variables only.

    The check copies every input at every run, so that it is off unless `Interpreter(..., checks=True)` asks for it.

    Args:
        node: the node.
        thunk: the function that runs it.
    """

    def run() -> None:
        lists = list(node.inputs), list(node.outputs)
        mine = {t for t in node.inputs if t is not None and (t.is_variable or t in node.outputs or node.writes_over(t))}
        read_only = [t for t in node.inputs if t is not None and t not in mine and t.has_data]
        before = [(tensor, tensor.data, tensor.shape, _value(tensor)) for tensor in read_only]
        arrays = [(tensor, tensor.data) for tensor in node.outputs if not tensor.is_dynamic and tensor.has_data]
        thunk()
        if (node.inputs, node.outputs) != lists:
            node.inputs, node.outputs = lists
            raise PluginError("The kernel changes the list of its node's tensors; they are the graph's")
        for tensor, array, shape, value in before:
            if tensor.shape != shape or tensor.data is not array or not _same(_value(tensor), value):
                raise PluginError(f"The kernel changes its input {tensor}, which others read too")
        for tensor, array in arrays:
            if tensor.data is not array and not tensor.resized:
                raise PluginError(f"The kernel replaces the array of its output {tensor}")
        for tensor in node.outputs:
            if tensor.has_data and (tensor.data.shape != tensor.shape or tensor.data.dtype != tensor.dtype):
                raise PluginError(f"The kernel leaves an array of {tensor.data.dtype} {list(tensor.data.shape)} in {tensor}")

    return run


def _value(tensor: Tensor) -> Array:
    return np.array(tensor.data)


def _same(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.hasobject:
        return all(a is b or a == b for a, b in zip(one.ravel().tolist(), other.ravel().tolist()))
    return one.tobytes() == other.tobytes()
