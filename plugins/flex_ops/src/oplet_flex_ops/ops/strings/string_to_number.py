"""StringToNumber: parse strings as numbers; a string without a number, or with one out of range, is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from oplet import TensorType, ensure
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.texts.elementwise import elementwise
from oplet_flex_ops.texts.numbers import read_float, read_integer

_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT32, TensorType.INT64, TensorType.UINT32, TensorType.UINT64,
)  # fmt: skip


def make(attributes: Attributes) -> Callable[[bytes], float]:
    type = attributes.type("out_type", *_TYPES, default=TensorType.FLOAT32)
    if type in (TensorType.FLOAT32, TensorType.FLOAT64):
        single = type is TensorType.FLOAT32

        def read(string: bytes) -> float | None:
            return read_float(string, single=single)
    else:
        bounds = np.iinfo(type.name.lower())

        def read(string: bytes) -> float | None:
            return read_integer(string, int(bounds.min), int(bounds.max))

    def convert(string: bytes) -> float:
        value = read(string)
        ensure(value is not None, lambda: f"{string!r:.80} holds no number of type {type.name}.")
        return cast(float, value)

    return convert


STRINGTONUMBER = elementwise(make, *_TYPES)
