"""RELU6: between 0 and 6."""

from __future__ import annotations

from oplet_openvino_delegate.bounds import bounded

TRANSLATOR = bounded(0.0, 6.0)
