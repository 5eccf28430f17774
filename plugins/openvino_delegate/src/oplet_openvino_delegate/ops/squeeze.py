"""SQUEEZE: a reshape to the shape that the runtime computed."""

from __future__ import annotations

from oplet_openvino_delegate.moving import reshaping

TRANSLATOR = reshaping(newest=2)
