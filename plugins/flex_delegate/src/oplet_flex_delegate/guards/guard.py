"""Run-time checks before TensorFlow runs an operator: valid shapes, sizes within limits, no crash."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import charge, ensure
from oplet_flex_delegate.graph import RefusedError, Shape, Source, import_nodes, shapes_of
from oplet_flex_delegate.guards.conditions import CONDITIONS
from oplet_flex_delegate.guards.sizes import BOUNDED, ESTIMATES
from oplet_flex_delegate.guards.text_sizes import KEEPS_TEXT, longest
from oplet_flex_delegate.operation import Operation
from oplet_flex_delegate.values import ITEM_SIZES, OPAQUE_TYPES, STRING_TYPE

__all__ = ["Guard", "output_bytes"]

#: Integers (and for ranges other numbers) of at most so many elements are values that shapes may depend on.
_VALUES = 256
#: Shapes that were found to fit are remembered, at most so many of each node.
_REMEMBERED = 512


def output_bytes(operation: Operation, shapes: Sequence[Shape]) -> int:
    """Return the bytes of an operator's outputs; outputs of unknown shape do not count."""
    return sum(_elements(shape) * ITEM_SIZES[type] for shape, type in zip(shapes, operation.signature[1]))


def _elements(shape: Shape) -> int:
    """Return the number of elements; 0 if unknown."""
    return 0 if shape is None else math.prod(size or 0 for size in shape)


def _is_known(shapes: Sequence[Shape]) -> bool:
    return all(shape is not None and None not in shape for shape in shapes)


class Guard:
    """Checks one node's inputs before each run.

    Args:
        operation: the operator.
        shapes: the outputs' shapes, if all were known and checked when the graph was prepared; None to infer them at each run.
    """

    def __init__(self, operation: Operation, shapes: Sequence[Shape] | None = None) -> None:
        self._operation = operation
        self._known = shapes is not None
        self._largest = max(map(_elements, shapes or ()), default=0)
        self._fits: dict[tuple[Any, ...], int] = {}
        self._by_values = False
        op = operation.op
        self._condition = CONDITIONS.get(op)
        self._estimate = ESTIMATES.get(op)
        reads, writes = operation.signature
        grows = STRING_TYPE in writes and op not in KEEPS_TEXT and op not in ESTIMATES
        self._texts = [place for place, type in enumerate(reads) if type == STRING_TYPE] if grows else []

    @property
    def idle(self) -> bool:
        """Return whether the guard has nothing to check, so that it can be skipped."""
        return self._known and self._condition is None and self._estimate is None and not self._texts

    def check(self, inputs: Sequence[Any]) -> None:
        """Raise an error for invalid inputs or outputs beyond the limits.

        Args:
            inputs: tensors of TensorFlow.

        Raises:
            EnsureError: TensorFlow's shape function refuses them, or its kernel would end the process.
            LimitError: the outputs would be larger than is allowed.
        """
        attributes = self._operation.attributes
        if self._condition is not None and (reason := self._condition(attributes, inputs)):
            ensure(False, f"{reason}.")
        largest = self._largest if self._known else self._check_shapes(inputs)
        if self._estimate is not None:
            charge(self._estimate(attributes, inputs))
        if self._texts:
            largest = largest or max(math.prod(each.shape.as_list()) for each in inputs)
            charge(largest * max(longest(inputs[place]) for place in self._texts))

    def _check_shapes(self, inputs: Sequence[Any]) -> int:
        """Infer output shapes for these inputs; return the elements of the largest output, 0 if unknown."""
        shapes = [None if each.dtype.as_datatype_enum in OPAQUE_TYPES else tuple(each.shape.as_list()) for each in inputs]
        values = [_value(each) for each in inputs] if self._by_values else [None] * len(inputs)
        key = (*shapes, *(value if value is None else value.tobytes() for value in values))
        if (largest := self._fits.get(key)) is not None:
            return largest
        found = self._infer(shapes, values)
        if not self._by_values and self._operation.op not in BOUNDED and not _is_known(found):
            self._by_values = True
            return self._check_shapes(inputs)
        charge(output_bytes(self._operation, found))
        if len(self._fits) >= _REMEMBERED:
            self._fits.clear()
        largest = self._fits[key] = max(map(_elements, found), default=0)
        return largest

    def _infer(self, shapes: Sequence[Shape], values: Sequence[NDArray[Any] | None]) -> list[Shape]:
        sources = [Source(*each) for each in zip(self._operation.signature[0], shapes, values)]
        try:
            [imported] = import_nodes(sources, [(self._operation.definition, range(len(sources)))])
        except RefusedError as error:
            ensure(False, f"{error}.")
        return shapes_of(imported)


def _value(tensor: Any) -> NDArray[Any] | None:
    """Return a small numeric tensor's value as an array, as shapes may depend on it; else None."""
    kind = tensor.dtype
    if not (kind.is_integer or kind.is_floating) or math.prod(tensor.shape.as_list()) > _VALUES:
        return None
    return np.asarray(tensor.numpy())
