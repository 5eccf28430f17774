"""EXPAND_DIMS: a reshape to the shape that the runtime computed."""

from __future__ import annotations

from oplet_openvino_delegate.moving import reshaping

TRANSLATOR = reshaping(newest=1, inputs=(2, 2), constants=(1,))
