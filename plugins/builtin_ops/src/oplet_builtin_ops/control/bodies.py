"""Runs the body subgraph of a reduction, scatter or sort on many values at once, or value by value where it must.

A body is a subgraph whose inputs and outputs are single values. A body of elementwise operators only is prepared for vectors (a
*lane* for each value); any other one is run for one value after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Callee, Context, Node, Tensor, checkpoint, ensure
from oplet.errors import PrepareError
from oplet.kernels.arrays import Array

__all__ = ["LANES", "Body", "prepare_body"]

#: The most values that a body is run for at a time, which makes the overhead of calling an operator small.
LANES = 4096

#: Elementwise operators: each output value depends only on the input values at the same position.
_BY_VALUE = frozenset(
    ["ABS", "ADD", "ADD_N", "ATAN2", "BITWISE_XOR", "CAST", "CEIL", "COS", "DEQUANTIZE", "DIV", "ELU", "EQUAL", "EXP", "FLOOR", "FLOOR_DIV", "FLOOR_MOD", "GELU", "GREATER", "GREATER_EQUAL", "HARD_SWISH", "LEAKY_RELU", "LESS", "LESS_EQUAL", "LOG", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "LOGISTIC", "MAXIMUM", "MINIMUM", "MUL", "NEG", "NOT_EQUAL", "POW", "QUANTIZE", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "RIGHT_SHIFT", "ROUND", "RSQRT", "SELECT", "SELECT_V2", "SIGN", "SIN", "SQRT", "SQUARE", "SQUARED_DIFFERENCE", "SUB", "TANH", "ZEROS_LIKE", "STABLEHLO_ABS", "STABLEHLO_ADD", "STABLEHLO_AND", "STABLEHLO_CBRT", "STABLEHLO_CLAMP", "STABLEHLO_COMPARE", "STABLEHLO_CONVERT", "STABLEHLO_COSINE", "STABLEHLO_DIVIDE", "STABLEHLO_EXPONENTIAL", "STABLEHLO_FLOOR", "STABLEHLO_LOG", "STABLEHLO_LOGISTIC", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "STABLEHLO_MULTIPLY", "STABLEHLO_NEGATE", "STABLEHLO_OR", "STABLEHLO_POWER", "STABLEHLO_REMAINDER", "STABLEHLO_RSQRT", "STABLEHLO_SELECT", "STABLEHLO_SHIFT_LEFT", "STABLEHLO_SUBTRACT", "STABLEHLO_TANH"]
)  # fmt: skip


def prepare_body(context: Context, index: int, operands: Sequence[Tensor], results: Sequence[Tensor], lanes: int) -> Body:
    """Prepare the subgraph that a node applies to its elements, such as a reduction's body, for up to `lanes` elements per call.

    Args:
        context: the node's context.
        index: the body's subgraph.
        operands: for each of the body's inputs, a tensor of its type.
        results: for each of the body's outputs, a tensor of its type.
        lanes: the most elements to compute in one call.

    Raises:
        EnsureError: the subgraph's inputs or outputs differ in number or type, or it has side effects.
        PrepareError: a kernel in the subgraph refuses its node.
    """
    callee = context.callee(index)
    for what, tensors, wanted in (("takes", callee.inputs, operands), ("gives", callee.outputs, results)):
        ensure(
            len(tensors) == len(wanted), f"its body, {callee}, {what} {len(tensors)} values and must take or give {len(wanted)}."
        )
        for position, (tensor, other) in enumerate(zip(tensors, wanted)):
            ensure(
                tensor.type is other.type,
                f"its body, {callee}, {what} {tensor.type.name} as value {position} and must take or give {other.type.name}.",
            )
    impure = next((node for node in callee.nodes if node.registration is None or not node.registration.pure), None)
    ensure(
        impure is None, lambda: f"its body, {callee}, holds {impure and impure.op_name}, which does more than compute a value."
    )
    return Body(callee, max(1, min(lanes, LANES)))


def _is_by_value(node: Node) -> bool:
    """Return whether a node works element by element, so that its non-constant scalar inputs may become vectors."""
    constants = (tensor for tensor in node.inputs if tensor is not None and tensor.is_constant)
    return node.op_name in _BY_VALUE and all(tensor.size == 1 and tensor.ndim <= 1 for tensor in constants)


def _unbound() -> None:
    """Do nothing: this stands for the bound body until `start` binds it."""


class Body:
    """A prepared body subgraph: called with arrays of equal length, it returns one array per output.

    The arrays that it returns are valid until the next call.

    Attributes:
        lanes: the number of elements per call; 1 unless all operators are elementwise.
    """

    def __init__(self, callee: Callee, lanes: int) -> None:
        self._callee = callee
        self.lanes = lanes if all(map(_is_by_value, callee.nodes)) else 1
        self._generation = -1
        self._run: Callable[[], None] = _unbound
        try:
            self._prepare()
        except PrepareError:
            if self.lanes == 1:
                raise
            self.lanes = 1  # an operator does not broadcast its constants
            self._prepare()

    def _prepare(self) -> None:
        callee = self._callee
        shape = (self.lanes,) if self.lanes > 1 else ()
        for position, tensor in enumerate(callee.inputs):
            callee.set_input(position, shape, tensor.type)
        callee.prepare()
        if self.lanes > 1 and (callee.is_dynamic or any(tensor.shape not in (shape, (), (1,)) for tensor in callee.outputs)):
            self.lanes = 1
            self._prepare()
            return
        if not callee.is_dynamic:
            self._check()

    def _check(self) -> None:
        if self.lanes == 1:
            for tensor in self._callee.outputs:
                ensure(tensor.size == 1, f"its body, {self._callee}, gives {tensor}, which must be one value.")

    def start(self) -> None:
        """Bind the subgraph's kernels; call this before each run of the node."""
        callee = self._callee
        if self._run is _unbound or callee.generation != self._generation:
            self._prepare()  # another node may have prepared it for another shape
            self._generation = callee.generation
            self._run = callee.bind()
        callee.restart()

    def __call__(self, *arrays: Array) -> list[Array]:
        run, callee = self._run, self._callee
        count, lanes = len(arrays[0]), self.lanes
        if lanes > 1 and count <= lanes:
            for tensor, array in zip(callee.inputs, arrays):
                data = tensor.data
                data[:count] = array
                data[count:] = array[:1]  # fill unused lanes with valid values
            run()
            return [np.broadcast_to(tensor.data, (lanes,))[:count] for tensor in callee.outputs]
        gathered: list[Array] = [np.empty(count, tensor.data.dtype) for tensor in callee.outputs]
        for first in range(0, count, lanes):
            checkpoint()
            part = slice(first, first + lanes)
            if lanes > 1:
                given = self(*(array[part] for array in arrays))
            else:
                for tensor, array in zip(callee.inputs, arrays):
                    tensor.data[...] = array[first]
                run()
                self._check()
                given = [tensor.data.reshape(1) for tensor in callee.outputs]
            for whole, piece in zip(gathered, given):
                whole[part] = piece
        return gathered
