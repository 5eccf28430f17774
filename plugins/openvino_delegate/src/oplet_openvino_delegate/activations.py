"""Fused activations of float operators, translated to OpenVINO."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet.schema.enums import ActivationFunctionType
from oplet_openvino_delegate.graph import Value

_KNOWN = {
    ActivationFunctionType.NONE: lambda x: x,
    ActivationFunctionType.RELU: ov.relu,
    ActivationFunctionType.RELU_N1_TO_1: lambda x: ov.clamp(x, -1.0, 1.0),
    ActivationFunctionType.RELU6: lambda x: ov.clamp(x, 0.0, 6.0),
}


def refuses_activation(activation: ActivationFunctionType) -> str:
    """Return why a fused activation is not supported; "" if it is."""
    return "" if activation in _KNOWN else f"the activation {activation!r} is not translated"


def activated(value: Value, activation: ActivationFunctionType) -> Value:
    """Add a fused activation to the graph; return the OpenVINO value after it."""
    return _KNOWN[activation](value)
