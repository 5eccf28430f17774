"""AsString: numbers, Booleans and strings as text, as C's printf writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.strings import make_strings
from oplet_flex_ops.attributes import Attributes, checked_attributes
from oplet_flex_ops.texts.elementwise import put_strings
from oplet_flex_ops.texts.numbers import PrintFormat

_FLOATS = (TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16)
_COMPLEX = (TensorType.COMPLEX64, TensorType.COMPLEX128)
_SIGNED = (TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)
_UNSIGNED = (TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64)
_OTHERS = (TensorType.BOOL, TensorType.STRING)
#: The widest fields and the most digits; the largest number of type FLOAT64 has 309 digits before its point.
_WIDEST, _NUMBER = 1 << 20, 320


def prepare(context: Context, node: Node) -> None:
    """Check an AsString node, and parse its format attributes."""
    attributes = checked_attributes(node, 1)
    values, output = node.inputs[0], node.outputs[0]
    ensure_type(values, *_FLOATS, *_COMPLEX, *_SIGNED, *_UNSIGNED, *_OTHERS)
    attributes.ensure_type("T", values)
    ensure_type(output, TensorType.STRING)
    node.prepared = _writer(attributes, values.type)
    context.resize_tensor(output, values.shape)


def _writer(attributes: Attributes, type: TensorType) -> tuple[Callable[[Any], bytes], int]:
    """Return the function that formats one value, and the most bytes that it writes for a number."""
    precision = attributes.integer("precision", least=-1, most=_WIDEST, default=-1)
    width = attributes.integer("width", least=-1, most=_WIDEST, default=-1)
    scientific, shortest = attributes.flag("scientific", default=False), attributes.flag("shortest", default=False)
    flag = attributes.text("fill", "", " ", "-", "0", "+", "#", default="")
    most = 2 * (max(width, 0) + max(precision, 0) + _NUMBER)
    ensure(not (scientific and shortest), "numbers are written either scientifically or in the shortest way, not both.")
    if type in (*_FLOATS, *_COMPLEX):
        conversion = "e" if scientific else "g" if shortest else "f"
        part = PrintFormat(flag, width, precision, conversion)
        if type in _COMPLEX:
            return lambda value: b"(" + part(value.real) + b"," + part(value.imag) + b")", most
        return part, most
    if type is not TensorType.STRING:
        ensure(not scientific and not shortest, f"values of type {type.name} have no scientific and no shortest form.")
        ensure(precision < 0, f"values of type {type.name} have no precision.")
    if type is TensorType.BOOL:
        return lambda value: b"true" if value else b"false", most
    if type is TensorType.STRING and width < 0:
        return bytes, most
    return PrintFormat(flag, width, precision, "s" if type is TensorType.STRING else "u" if type in _UNSIGNED else "d"), most


def bind(context: Context, node: Node) -> Thunk:
    source, target = node.inputs[0].data, node.outputs[0].data
    write: Callable[[Any], bytes] = node.prepared[0]
    most: int = node.prepared[1]

    def size(value: Any) -> int:
        return most + len(value) if isinstance(value, bytes) else most

    def run() -> None:
        put_strings(target, make_strings(write, source.ravel().tolist(), size))

    return run


ASSTRING = Registration(prepare=prepare, bind=bind, pure=True)
