"""SPLIT_V: pieces of given sizes along one dimension."""

from __future__ import annotations

from oplet_openvino_delegate.moving import splitting

TRANSLATOR = splitting(data=0, axis=2, newest=2, inputs=3)
