"""MAX_POOL_2D on float32."""

from __future__ import annotations

from openvino import opset1 as ov

from oplet_openvino_delegate.graph import Value
from oplet_openvino_delegate.pools import pooling


def make(value: Value, strides: list[int], begin: list[int], end: list[int], taps: list[int]) -> Value:
    """Return the OpenVINO node of MAX_POOL_2D; `begin` and `end` are the padding, `taps` the window's height and width."""
    return ov.max_pool(value, strides, begin, end, taps)


TRANSLATOR = pooling(make, newest=4, layer_of_8_bits=True)
