"""Checks and types of operands that several operators have in common, besides those of `oplet.kernels.operands`."""

from __future__ import annotations

from oplet import Tensor, TensorType, ensure

__all__ = ["all_types_but", "ensure_same_quantization", "take_type"]


def all_types_but(*refused: TensorType) -> tuple[TensorType, ...]:
    """Return all tensor types except `refused`."""
    return tuple(type for type in TensorType if type not in refused)


def ensure_same_quantization(a: Tensor, b: Tensor) -> None:
    """Check that both tensors have the same scale and zero point, compared exactly as in LiteRT.

    Raises:
        EnsureError: a scale or zero point differs.
    """
    ensure(
        a.scale == b.scale and a.zero_point == b.zero_point,
        lambda: (
            f"{a} has scale {a.scale:g} and zero point {a.zero_point}, {b} has {b.scale:g} and {b.zero_point}; "
            "this op does not rescale, so they must be equal."
        ),
    )


def take_type(output: Tensor, source: Tensor) -> None:
    """Set the output's type to the type of `source`, instead of the type that the model declares, as LiteRT does for some ops."""
    output.type, output.dtype = source.type, source.dtype
