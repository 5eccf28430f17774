"""Models of the operators around binary convolutions, one node each, with values for them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

__all__ = ["cases", "dequantize", "pool", "quantize"]

Array = np.ndarray[Any, Any]


def quantize(values: Array, **quantization: Any) -> bytes:
    """The signs of these values."""
    *outer, channels = values.shape
    return one_op_model(
        "LceQuantize", [Spec(values.dtype, values.shape, **quantization)], [Spec("int32", (*outer, -(-channels // 32)))]
    )


def dequantize(words: Array, type: str, channels: int, **quantization: Any) -> bytes:
    """The values of these words."""
    output = Spec(type, (*words.shape[:-1], channels), **quantization)
    return one_op_model("LceDequantize", [Spec("int32", words.shape)], [output])


def pool(words: Array, padding: int, window: tuple[int, int], strides: tuple[int, int]) -> bytes:
    """The largest of each window."""
    options = {
        "padding": padding, "filter_height": window[0], "filter_width": window[1], "stride_height": strides[0], "stride_width": strides[1],
    }  # fmt: skip
    spans = [
        -(-size // stride) if padding == 0 else (size - taps) // stride + 1
        for size, taps, stride in zip(words.shape[1:3], window, strides)
    ]
    output = Spec("int32", (words.shape[0], *spans, words.shape[3]))
    return one_op_model("LceBMaxPool2d", [Spec("int32", words.shape)], [output], custom_options=options)


def cases() -> dict[str, tuple[bytes, Array]]:
    """By name: a model and the value of its input."""
    random = np.random.default_rng(1)
    found: dict[str, tuple[bytes, Array]] = {}
    for channels in (1, 31, 32, 33, 70, 128):
        floats = random.normal(size=(2, 3, channels)).astype(np.float32)
        floats.flat[:5] = 0.0, -0.0, np.nan, -np.inf, -1e-40
        found[f"floats_{channels}"] = quantize(floats), floats
        integers = random.integers(-128, 128, (2, 3, channels)).astype(np.int8)
        for zero in (0, -128, 127, 5, -3):
            found[f"integers_{channels}_{zero}"] = quantize(integers, scale=0.5, zero_point=zero), integers
        truths = random.integers(0, 2, (2, 3, channels)).astype(bool)
        found[f"truths_{channels}"] = quantize(truths), truths
        words = random.integers(-(2**31), 2**31, (2, 3, -(-channels // 32))).astype(np.int32)
        found[f"unpacked_{channels}"] = dequantize(words, "float32", channels), words
        found[f"truth_{channels}"] = dequantize(words, "bool", channels), words
        for scale, zero in ((1.0, 0), (0.4, 3), (2.5, -1), (0.01, -128), (1 / 127, 127), (0.0082, 60), (2 / 3, 0)):
            found[f"steps_{channels}_{scale:g}_{zero}"] = dequantize(words, "int8", channels, scale=scale, zero_point=zero), words
    # Words of several bits each, so that windows are not all 0.
    words = random.integers(-(2**31), 2**31, (2, 7, 6, 2)).astype(np.int32) | random.integers(
        -(2**31), 2**31, (2, 7, 6, 2)
    ).astype(np.int32)
    for padding, window, strides in itertools.product((0, 1), ((2, 2), (3, 3), (1, 4), (5, 2)), ((1, 1), (2, 2), (3, 1), (1, 5))):
        found[f"pool_{padding}_{window}_{strides}"] = pool(words, padding, window, strides), words
    return found
