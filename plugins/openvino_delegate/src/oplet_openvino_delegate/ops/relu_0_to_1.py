"""RELU_0_TO_1: between 0 and 1."""

from __future__ import annotations

from oplet_openvino_delegate.bounds import bounded

TRANSLATOR = bounded(0.0, 1.0)
