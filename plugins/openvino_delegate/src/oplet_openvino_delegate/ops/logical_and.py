"""LOGICAL_AND of bools."""

from __future__ import annotations

from openvino import opset13 as ov

from oplet_openvino_delegate.elementwise import logical

TRANSLATOR = logical(ov.logical_and)
