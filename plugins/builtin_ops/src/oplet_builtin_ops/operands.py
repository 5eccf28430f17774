"""Checks and types of operands that several operators have in common, besides those of `oplet.kernels.operands`."""

from __future__ import annotations

from oplet import Tensor, TensorType

__all__ = ["all_types_but", "take_type"]


def all_types_but(*refused: TensorType) -> tuple[TensorType, ...]:
    """Return all tensor types except `refused`."""
    return tuple(type for type in TensorType if type not in refused)


def take_type(output: Tensor, source: Tensor) -> None:
    """Set the output's type to the type of `source`, instead of the type that the model declares, as LiteRT does for some ops."""
    output.type, output.dtype = source.type, source.dtype
