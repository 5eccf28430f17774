"""Runs float16 nodes on float32 kernels: inputs are widened to float32, and outputs rounded once to float16.

LiteRT's own kernels refuse most float16 nodes; XNNPACK runs them, on processors without float16 arithmetic in single precision
inside of each operator, and rounds the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet import Allocation, Context, Node, Registration, Tensor, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk

__all__ = ["takes_halves"]

#: Converts float16 values to float32, into the second array.
Convert = Callable[[Array, Array], None]
_HALF, _SINGLE = TensorType.FLOAT16, TensorType.FLOAT32


def takes_halves(
    registration: Registration, *positions: int, mixed: bool = False, options: dict[str, Any] | None = None
) -> Registration:
    """Wrap a float32 registration so that it also serves float16 nodes, by computing in float32.

    Args:
        registration: a kernel's that serves float32.
        positions: the inputs whose type decides whether a node is float16; by default the first one.
        mixed: whether other tensors of a float16 node may be float32.
        options: values of option fields that replace the model's while the node computes in float32; None for none.
    """
    prepare: Any = registration.prepare
    bind: Any = registration.bind
    decisive = positions or (0,)

    def prepare_any(context: Context, node: Node) -> None:
        inputs = node.inputs
        for at in decisive:
            if at < len(inputs) and inputs[at] is not None and inputs[at].type is _HALF:
                break
        else:
            prepare(context, node)
            return
        if not mixed:
            single = next((tensor for tensor in (*inputs, *node.outputs) if tensor is not None and tensor.type is _SINGLE), None)
            ensure(single is None, lambda: f"{single} is of type FLOAT32 where other tensors are of type FLOAT16.")
        node.prepared = _Widened.of(node, {} if options is None else options)
        node.prepared.prepare(context, prepare)

    def bind_any(context: Context, node: Node) -> Thunk:
        widened = node.prepared
        return widened.bind(context, bind) if isinstance(widened, _Widened) else bind(context, node)

    types = tuple(dict.fromkeys((*registration.types, _HALF)))
    return registration.__replace__(prepare=prepare_any, bind=bind_any, types=types)


def _constants(node: Node) -> list[tuple[int, Array]]:
    """Return the (input position, array) pairs of a node's constant float16 inputs."""
    return [
        (position, tensor.data)
        for position, tensor in enumerate(node.inputs)
        if tensor is not None and tensor.type is _HALF and tensor.is_constant
    ]


class _Widened:
    """A float16 node's float32 stand-in, which the wrapped kernel prepares and computes."""

    def __init__(self, node: Node, options: dict[str, Any]) -> None:
        self.node = node
        self.constants = _constants(node)
        table = node.raw_options
        if options and table is not None:
            table = type(table)(**{**vars(table), **options})
        self.inner = Node(
            node.index, node.op, node.op_name, node.version, node.inputs, node.outputs, table,
            intermediates=node.intermediates, custom_options=node.custom_options, registration=node.registration,
        )  # fmt: skip
        self.wide: dict[int, Tensor] = {position: _constant(node.inputs[position]) for position, _ in self.constants}
        self.read: list[tuple[Tensor, Tensor]] = []
        self.written: list[tuple[Tensor, Tensor]] = []

    @classmethod
    def of(cls, node: Node, options: dict[str, Any]) -> _Widened:
        """Return the node's float32 stand-in; a new one if a constant input is another array by now."""
        before = node.prepared
        if isinstance(before, _Widened) and _same(before.constants, _constants(node)):
            return before
        return cls(node, options)

    def prepare(self, context: Context, prepare: Any) -> None:
        node, inner = self.node, self.inner
        self.read, self.written = [], []
        for position, tensor in enumerate(node.inputs):
            if tensor is not None and tensor.type is _HALF and position not in self.wide:
                wide = context.add_temporary(node, tensor.shape, _SINGLE)
                self.read.append((tensor, wide))
                inner.inputs[position] = wide
            else:
                inner.inputs[position] = self.wide.get(position, tensor)
        for position, tensor in enumerate(node.outputs):
            if tensor.type is _HALF:
                wide = context.add_temporary(node, (), _SINGLE)
                self.written.append((wide, tensor))
                inner.outputs[position] = wide
        inner.temporaries, inner.in_place = [], ()
        prepare(context, inner)
        node.temporaries += inner.temporaries
        for wide, tensor in self.written:
            if wide.is_dynamic:
                context.set_dynamic(tensor)
            else:
                context.resize_tensor(tensor, wide.shape)

    def bind(self, context: Context, bind: Any) -> Thunk:
        from oplet_builtin_ops.arithmetic.half import widen_half  # here, as few models compute with halves

        compute = bind(context, self.inner)
        widen = [(tensor.data, wide.data) for tensor, wide in self.read]
        if any(wide.is_dynamic for wide, _ in self.written):
            return partial(_run_sized, widen_half, context, widen, compute, self.written)
        narrow = [(tensor.data, wide.data) for wide, tensor in self.written]
        return partial(_run, widen_half, widen, compute, narrow)


def _constant(tensor: Tensor) -> Tensor:
    """Return a float32 copy of a constant float16 tensor; a sparse tensor stays sparse."""
    from oplet_builtin_ops.arithmetic.half import widen_half

    wide = Tensor(tensor.index, tensor.name, _SINGLE, tensor.shape, sparsity=tensor.sparsity, allocation=Allocation.CONSTANT)
    array = np.empty(tensor.data.shape, np.float32)
    widen_half(np.ascontiguousarray(tensor.data), array)
    array.flags.writeable = False
    wide.set_memory(array)  # `data` is for arrays of the tensor's shape, which the values that are stored sparse are not
    return wide


def _same(a: Sequence[tuple[int, Array]], b: Sequence[tuple[int, Array]]) -> bool:
    return len(a) == len(b) and all(one[0] == other[0] and one[1] is other[1] for one, other in zip(a, b))


def _run(convert: Convert, widen: list[tuple[Array, Array]], compute: Thunk, narrow: list[tuple[Array, Array]]) -> None:
    for source, target in widen:
        convert(source, target)
    compute()
    with np.errstate(over="ignore"):
        for target, source in narrow:
            target[...] = source


def _run_sized(
    convert: Convert, context: Context, widen: list[tuple[Array, Array]], compute: Thunk, written: list[tuple[Tensor, Tensor]]
) -> None:
    """Run a kernel that resizes its outputs while it runs: widen, compute, resize the float16 outputs, narrow."""
    _run(convert, widen, compute, [])
    for wide, tensor in written:
        context.resize_tensor(tensor, wide.shape)
    _run(convert, [], _nothing, [(tensor.data, wide.data) for wide, tensor in written])


def _nothing() -> None:
    """Do nothing: the values are computed already."""
