"""TfLiteType numbers, which differ from the type numbers in the model file."""

from __future__ import annotations

from typing import Final

from oplet import TensorType

__all__ = ["REFUSED", "TYPES", "TYPE_NUMBERS", "type_label"]

#: In the order of their numbers.
_ORDER: Final = [
    "NONE", "FLOAT32", "INT32", "UINT8", "INT64", "STRING", "BOOL", "INT16", "COMPLEX64", "INT8", "FLOAT16", "FLOAT64", "COMPLEX128",
    "UINT64", "RESOURCE", "VARIANT", "UINT32", "UINT16", "INT4", "BFLOAT16", "INT2", "UINT4", "FLOAT8_E4M3FN", "FLOAT8_E5M2",
]  # fmt: skip

#: The number of each type.
TYPE_NUMBERS: Final = {TensorType[name]: number for number, name in enumerate(_ORDER) if name in TensorType.__members__}
#: The type of each number.
TYPES: Final = {number: type for type, number in TYPE_NUMBERS.items()}
#: Types that libraries are not given: oplet unpacks what is packed, and has objects of its own where LiteRT has C++ ones.
REFUSED: Final = frozenset({TensorType.INT4, TensorType.INT2, TensorType.UINT4, TensorType.RESOURCE, TensorType.VARIANT})


def type_label(number: int) -> str:
    """Return a type's name for messages, by its TfLiteType number."""
    return TYPES[number].name if number in TYPES else f"type {number}"
