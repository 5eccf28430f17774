"""What every layer with weights does, whatever their type: check the bias, spread out sparse weights."""

from __future__ import annotations

from oplet import Node, Tensor, TensorType, ensure, ensure_type
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.shaping.shapes import Array

#: The module that only nodes with sparse weights need; builds leave it out where no node of their models has such.
VARIANTS = {"oplet_builtin_ops.layers.sparse": {"sparse": True}}

__all__ = ["CLAMPS", "ensure_bias", "weight_data"]

#: The activations that are clamps.
CLAMPS = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU_N1_TO_1,
    ActivationFunctionType.RELU6,
)


def ensure_bias(bias: Tensor | None, channels: int, *types: TensorType) -> None:
    """Refuse a bias of the wrong type or length, or one with a zero point."""
    if bias is None:
        return
    ensure_type(bias, *types)
    ensure(bias.size == channels, lambda: f"{bias} must have {channels} values, one for each output channel, not {bias.size}.")
    ensure(bias.zero_point == 0, lambda: f"{bias} has zero point {bias.zero_point}; a bias must have none.")


def weight_data(node: Node, weights: Tensor) -> Array:
    """The values of the weights; sparse ones become dense, once."""
    sparsity = weights.sparsity
    if sparsity is None:
        return weights.data
    from oplet_builtin_ops.layers.sparse import densify

    return node.cached("dense weights", lambda: densify(weights.data, sparsity, weights.shape))
