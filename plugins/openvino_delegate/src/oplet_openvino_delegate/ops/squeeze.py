"""SQUEEZE: the same values in the shape that the runtime has worked out."""

from __future__ import annotations

from oplet_openvino_delegate.moving import reshaping

TRANSLATOR = reshaping(newest=2)
