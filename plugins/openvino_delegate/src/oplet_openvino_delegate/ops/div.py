"""DIV: quotients."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet import Node
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import DivOptions
from oplet_openvino_delegate.elementwise import broadcasting


def _refuses(node: Node) -> str:
    found = _QUOTIENTS.refuses(node)
    if not found and node.options(DivOptions).fused_activation_function != ActivationFunctionType.NONE:
        return "OpenVINO makes a bound of the activation of 0 / 0, which is no number"
    return found


_QUOTIENTS = broadcasting(ov.divide, newest=5, options=DivOptions)
TRANSLATOR = _QUOTIENTS._replace(refuses=_refuses)
