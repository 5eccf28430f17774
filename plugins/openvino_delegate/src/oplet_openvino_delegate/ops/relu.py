"""RELU: max(x, 0)."""

from __future__ import annotations

from oplet_openvino_delegate.bounds import bounded

TRANSLATOR = bounded(0.0, None)
