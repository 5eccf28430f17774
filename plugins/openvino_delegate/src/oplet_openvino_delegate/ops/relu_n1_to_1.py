"""RELU_N1_TO_1: between -1 and 1."""

from __future__ import annotations

from oplet_openvino_delegate.bounds import bounded

TRANSLATOR = bounded(-1.0, 1.0)
