"""Fused activations."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from oplet import Node
from oplet.schema.enums import ActivationFunctionType

__all__ = ["activated", "refuses_activation"]

_KNOWN: dict[ActivationFunctionType, Any] = {
    ActivationFunctionType.NONE: lambda x: x,
    ActivationFunctionType.RELU: lambda x: jnp.maximum(x, 0),
    ActivationFunctionType.RELU_N1_TO_1: lambda x: jnp.clip(x, -1, 1),
    ActivationFunctionType.RELU6: lambda x: jnp.clip(x, 0, 6),
}


def refuses_activation(node: Node, options: Any) -> str:
    """Return why a node's fused activation is not supported; "" if it is."""
    activation = node.options(options).fused_activation_function
    return "" if activation in _KNOWN else f"the activation {activation!r} is not translated"


def activated(value: Any, node: Node, options: Any) -> Any:
    """Return the jax value after the node's fused activation."""
    return _KNOWN[node.options(options).fused_activation_function](value)
