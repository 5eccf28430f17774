"""Construction and checks of a tensor's quantization table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet.errors import ModelError
from oplet.schema.table import Table
from oplet.schema.tables import BlockwiseQuantization, MultiAxisQuantization, QuantizationDetails, QuantizationParameters

__all__ = ["check_quantization", "make_quantization"]


def make_quantization(
    scale: Any, zero_point: Any, quantized_dimension: int, minimum: Any, maximum: Any, details: Table | None
) -> QuantizationParameters | None:
    """Make a quantization table of the given values; None if none is given."""
    if scale is None and details is None and not np.any(zero_point):
        zero_point = None  # 0 is the zero point of unquantized values
    if all(value is None for value in (scale, zero_point, minimum, maximum, details)):
        return None
    table = QuantizationParameters()
    if minimum is not None:
        table.min = np.atleast_1d(np.asarray(minimum, np.float32))
    if maximum is not None:
        table.max = np.atleast_1d(np.asarray(maximum, np.float32))
    if scale is not None:
        table.scale = np.atleast_1d(np.asarray(scale, np.float32))
        table.zero_point = np.zeros(table.scale.size, np.int64)
    if zero_point is not None:
        table.zero_point = np.atleast_1d(np.asarray(zero_point, np.int64))
    if details is not None:
        table.details = details
    if quantized_dimension:
        table.quantized_dimension = quantized_dimension
    return table


def check_quantization(table: QuantizationParameters, shape: Sequence[int], tensors: int, what: str) -> None:
    """Check a quantization table against its tensor.

    Args:
        table: the quantization.
        shape: the tensor's shape.
        tensors: the number of tensors of the subgraph, to which details refer.
        what: the tensor's name in messages.

    Raises:
        ModelError: the counts of scales and zero points do not match each other or the shape, or a value is out of range.
    """
    scales = 0 if table.scale is None else table.scale.size
    zero_points = 0 if table.zero_point is None else table.zero_point.size
    dimension = table.quantized_dimension
    if scales != zero_points:
        raise ModelError(f"{what} has {scales} scales and {zero_points} zero points; there must be as many of each.")
    if scales > 1:
        if not 0 <= dimension < len(shape):
            raise ModelError(f"{what} is quantized along dimension {dimension}, its shape {list(shape)} has {len(shape)}.")
        if scales != shape[dimension]:
            raise ModelError(
                f"{what} must have one scale, or {shape[dimension]} for dimension {dimension} of its shape {list(shape)}, but got {scales}."
            )
    if table.scale is not None and not (np.isfinite(table.scale) & (table.scale >= 0)).all():
        wrong = table.scale[~(np.isfinite(table.scale) & (table.scale >= 0))][0]
        raise ModelError(f"{what} has a scale of {wrong}; scales are positive numbers.")
    details = table.details
    if details is not None and type(details) not in QuantizationDetails.values():
        raise ModelError(f"{what} has {type(details).__name__} as its quantization details, which is not such a table.")
    if isinstance(details, (BlockwiseQuantization, MultiAxisQuantization)):
        for role, index in (("scales", details.scales), ("zero points", details.zero_points)):
            if not -1 <= index < tensors:
                raise ModelError(f"{what} has its {role} in tensor {index}; its subgraph has {tensors} tensors so far.")
