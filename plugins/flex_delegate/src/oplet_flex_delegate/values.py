"""Conversion of values between oplet's and TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from oplet import Tensor, TensorType, charge
from oplet.errors import InvokeError
from oplet_flex_delegate.library import tensorflow

__all__ = [
    "ITEM_SIZES",
    "OPAQUE",
    "OPAQUE_TYPES",
    "RESOURCE_TYPE",
    "STRING_TYPE",
    "TYPES",
    "TensorFlowValue",
    "copied_nbytes",
    "elements_of",
    "reader",
]

#: TensorFlow's DataType of each element type that both have.
TYPES = {
    TensorType.FLOAT32: 1,
    TensorType.FLOAT64: 2,
    TensorType.INT32: 3,
    TensorType.UINT8: 4,
    TensorType.INT16: 5,
    TensorType.INT8: 6,
    TensorType.STRING: 7,
    TensorType.COMPLEX64: 8,
    TensorType.INT64: 9,
    TensorType.BOOL: 10,
    TensorType.BFLOAT16: 14,
    TensorType.UINT16: 17,
    TensorType.COMPLEX128: 18,
    TensorType.FLOAT16: 19,
    TensorType.RESOURCE: 20,
    TensorType.VARIANT: 21,
    TensorType.UINT32: 22,
    TensorType.UINT64: 23,
}

#: Types whose values are TensorFlow's own objects; oplet's tensor holds one for each of its elements.
OPAQUE = frozenset({TensorType.RESOURCE, TensorType.VARIANT})

OPAQUE_TYPES = frozenset(TYPES[each] for each in OPAQUE)
RESOURCE_TYPE = TYPES[TensorType.RESOURCE]
STRING_TYPE = TYPES[TensorType.STRING]
#: Bytes of a value, by DataType; a string takes so much beside its text.
ITEM_SIZES = {
    1: 4, 2: 8, 3: 4, 4: 1, 5: 2, 6: 1, 7: 64, 8: 8, 9: 8, 10: 1, 14: 2, 17: 2, 18: 16, 19: 2, 20: 64, 21: 64, 22: 4, 23: 8,
}  # fmt: skip
#: Bytes of a reference.
_REFERENCE = 8


class TensorFlowValue:
    """A TensorFlow VARIANT or RESOURCE value, as an element of an oplet tensor.

    Attributes:
        value: the TensorFlow tensor, a scalar.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def reader(tensor: Tensor) -> Callable[[], Any]:
    """Return a function that copies the tensor's present value to a TensorFlow tensor; a copy, since the memory is reused.

    Raises:
        InvokeError: raised by the returned function, if the value of a VARIANT or RESOURCE was made by another package.
    """
    if tensor.type not in OPAQUE:
        tf = tensorflow()
        make, data, kind = tf.constant, tensor.data, tf.as_dtype(TYPES[tensor.type])
        if tensor.type is TensorType.STRING:

            def copied() -> Any:
                charge(copied_nbytes(data))
                return make(data, kind)

            return copied
        return lambda: make(data, kind)

    def value() -> Any:
        found = [_made_by_tensorflow(tensor, each) for each in tensor.data.ravel().tolist()]
        if tensor.data.ndim == 0:
            return found[0]
        if not found:
            raise InvokeError(f"{tensor} has no elements; TensorFlow is given values of its type one by one.")
        tf = tensorflow()
        return tf.reshape(tf.stack(found), tensor.data.shape)

    return value


def copied_nbytes(strings: NDArray[Any]) -> int:
    """Return the bytes that TensorFlow copies of strings take: each element is copied, even if several are one object here."""
    charge(_REFERENCE * strings.size)
    texts = strings.ravel().tolist()
    return ITEM_SIZES[STRING_TYPE] * len(texts) + sum(map(len, texts))


def elements_of(value: Any) -> tuple[tuple[int, ...], list[TensorFlowValue]]:
    """Return the shape and the elements, in order, of a TensorFlow tensor of type VARIANT or RESOURCE."""
    shape = tuple(value.shape.as_list())
    if not shape:
        return shape, [TensorFlowValue(value)]
    tf = tensorflow()
    return shape, [TensorFlowValue(each) for each in tf.unstack(tf.reshape(value, [-1]))]


def _made_by_tensorflow(tensor: Tensor, value: object) -> Any:
    if isinstance(value, TensorFlowValue):
        return value.value
    raise InvokeError(
        f"{tensor} holds {_kind(value)}, which TensorFlow did not make; have all operators that share the value served by one "
        "package, with the delegate 'flex' or without it."
    )


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__module__}.{type(value).__qualname__}"
