"""SPLIT: equal pieces along one dimension."""

from __future__ import annotations

from oplet_openvino_delegate.moving import splitting

TRANSLATOR = splitting(data=1, axis=0, newest=4, inputs=2)
