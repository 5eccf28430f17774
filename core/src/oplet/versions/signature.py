"""Signatures of nodes, and the conditions on them of which version rules are made.

A condition is a predicate of one node: `input_is(0, T.INT8) & ~quantized(0)`. It is defined for every node: an omitted tensor has no
type and no shape, and absent options have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet.schema.enums import TensorType
from oplet.schema.table import Table
from oplet.schema.tables import Tensor

__all__ = [
    "FLOAT8",
    "Condition",
    "Rule",
    "Rules",
    "Signature",
    "broadcasts_beyond_4d",
    "by_input",
    "grouped",
    "input_count",
    "input_is",
    "one_scale_per",
    "option",
    "output_is",
    "present",
    "quantized",
    "rank_is",
    "rank_over",
    "rescale_over_1",
    "sparse",
    "types",
]

FLOAT8 = TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2


class Signature(NamedTuple):
    """The tensors (None for an omitted one) and the options of a node."""

    inputs: Sequence[Tensor | None]
    outputs: Sequence[Tensor | None]
    options: Table | None

    def input(self, index: int) -> Tensor | None:
        """Return the input at an index; None if the node does not have it."""
        return self.inputs[index] if index < len(self.inputs) else None

    def output(self, index: int) -> Tensor | None:
        """Return the output at an index; None if the node does not have it."""
        return self.outputs[index] if index < len(self.outputs) else None


class Condition:
    """A predicate of a node; conditions combine with `&`, `|` and `~`."""

    __slots__ = ("holds",)

    def __init__(self, holds: Callable[[Signature], bool]) -> None:
        self.holds = holds

    def __and__(self, other: Condition) -> Condition:
        return Condition(lambda node: self.holds(node) and other.holds(node))

    def __or__(self, other: Condition) -> Condition:
        return Condition(lambda node: self.holds(node) or other.holds(node))

    def __invert__(self) -> Condition:
        return Condition(lambda node: not self.holds(node))


class Rule(NamedTuple):
    """A rule of an operator: nodes that satisfy the condition need this version, for this reason."""

    version: int
    reason: str
    condition: Condition


#: Rules by the operators that share them; the first rule whose condition holds decides.
Rules = dict[tuple[Any, ...], tuple[Rule, ...]]


def _type(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.type


def _shape(tensor: Tensor | None) -> tuple[int, ...]:
    return () if tensor is None or tensor.shape is None else tuple(int(n) for n in tensor.shape)


def _scale(tensor: Tensor | None) -> np.float32 | None:
    """Return the first scale of the tensor; None if there is none."""
    if tensor is None or tensor.quantization is None or tensor.quantization.scale is None or not len(tensor.quantization.scale):
        return None
    first: np.float32 = tensor.quantization.scale[0]
    return first


def _rank(node: Signature, index: int) -> int:
    tensor = node.input(index)
    return 0 if tensor is None or tensor.shape is None else len(tensor.shape)


def input_is(index: int, *wanted: TensorType) -> Condition:
    """Make a condition: an input has one of these types."""
    return Condition(lambda node: _type(node.input(index)) in wanted)


def output_is(index: int, *wanted: TensorType) -> Condition:
    """Make a condition: an output has one of these types."""
    return Condition(lambda node: _type(node.output(index)) in wanted)


def types(first: TensorType, second: TensorType | tuple[TensorType, ...], output: TensorType) -> Condition:
    """Make a condition on the types of the first two inputs (activations and weights) and of the output."""
    return input_is(0, first) & input_is(1, *(second if isinstance(second, tuple) else (second,))) & output_is(0, output)


def by_input(version: int, *wanted: TensorType, index: int = 0) -> Rule:
    """Make a rule that requires a version for the types of one input, the most common rule."""
    names = " or ".join(type.name for type in wanted)
    return Rule(version, f"{names} {'input' if index == 0 else f'input {index}'}", input_is(index, *wanted))


def present(index: int) -> Condition:
    """Make a condition: the node has this input, and it is not omitted."""
    return Condition(lambda node: node.input(index) is not None)


def input_count(count: int) -> Condition:
    """Make a condition: the node lists `count` inputs, including omitted ones."""
    return Condition(lambda node: len(node.inputs) == count)


def rank_is(index: int, rank: int) -> Condition:
    """Make a condition: an input has `rank` dimensions. An input without a shape has 0."""
    return Condition(lambda node: _rank(node, index) == rank)


def rank_over(index: int, rank: int) -> Condition:
    """Make a condition: an input has more than `rank` dimensions."""
    return Condition(lambda node: _rank(node, index) > rank)


def _broadcasts_beyond_4d(node: Signature) -> bool:
    shapes = [_shape(tensor) for tensor in node.inputs]
    return len(shapes) >= 2 and shapes[0] != shapes[1] and max(map(len, shapes)) > 4


#: The first two inputs differ in shape, and some input has more than four dimensions.
broadcasts_beyond_4d = Condition(_broadcasts_beyond_4d)


def option(cls: type[Table], name: str, value: Any = None) -> Condition:
    """Make a condition: a field of the options has this value; None for the value means any but zero and False."""
    getattr(cls, name)  # a rule with a misspelt field fails on import, not with the first model

    def holds(node: Signature) -> bool:
        found = getattr(node.options if isinstance(node.options, cls) else cls, name)
        return bool(found) if value is None else bool(found == value)

    return Condition(holds)


def quantized(index: int) -> Condition:
    """Make a condition: an input is quantized, by scales of its own or in other tensors.

    For LiteRT's rules an empty quantization table, which its converter writes for every tensor, is enough; for its kernels and here
    it is not.
    """

    def holds(node: Signature) -> bool:
        tensor = node.input(index)
        if tensor is None or tensor.quantization is None:
            return False
        return _scale(tensor) is not None or tensor.quantization.details is not None

    return Condition(holds)


def one_scale_per(axis: int | None, *, input: int | None = None, output: int | None = None, several: bool = False) -> Condition:
    """Make a condition: a tensor has as many scales as it has slices along an axis.

    Args:
        axis: the axis; None for the quantized dimension.
        input: the index of the tensor among the inputs.
        output: the index of the tensor among the outputs.
        several: whether a single scale is not enough, even for a single slice.
    """

    def holds(node: Signature) -> bool:
        tensor = node.input(input) if input is not None else node.output(output or 0)
        if tensor is None or tensor.quantization is None or tensor.quantization.scale is None or tensor.shape is None:
            return False
        along = tensor.quantization.quantized_dimension if axis is None else axis
        scales = len(tensor.quantization.scale)
        return scales > several and 0 <= along < len(tensor.shape) and scales == int(tensor.shape[along])

    return Condition(holds)


def sparse(index: int) -> Condition:
    """Make a condition: an input is stored sparse."""

    def holds(node: Signature) -> bool:
        tensor = node.input(index)
        return tensor is not None and tensor.sparsity is not None

    return Condition(holds)


def _grouped(node: Signature) -> bool:
    input, filter = _shape(node.input(0)), _shape(node.input(1))
    return len(input) > 3 and len(filter) > 3 and input[3] != filter[3]


#: The input of a convolution has another number of channels than its filter.
grouped = Condition(_grouped)


def _rescale_over_1(node: Signature) -> bool:
    first, second, output = _scale(node.input(0)), _scale(node.input(1)), _scale(node.output(0))
    if first is None or second is None or output is None or not (first and second and output):
        return False
    with np.errstate(all="ignore"):
        return bool(first * second / output >= 1)  # in float32 as in LiteRT: at exactly 1 the rounding decides


#: The product of the inputs' scales is at least the output's.
rescale_over_1 = Condition(_rescale_over_1)
