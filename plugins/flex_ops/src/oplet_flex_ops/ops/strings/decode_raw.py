"""DecodeRaw and DecodePaddedRaw: reinterpret strings' bytes as numbers, along a new last axis.

DecodeRaw takes strings of one length. DecodePaddedRaw cuts them to a length, or fills them up to it with zeros.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import read_int
from oplet.kernels.strings import STRING, StringMeter
from oplet_flex_ops.attributes import checked_attributes

#: The types of both operators, and those of DecodeRaw alone.
_TYPES = (
    TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16, TensorType.INT8, TensorType.INT16, TensorType.INT32,
    TensorType.INT64, TensorType.UINT8, TensorType.UINT16,
)  # fmt: skip
_MORE = (TensorType.FLOAT16, TensorType.COMPLEX64, TensorType.COMPLEX128, TensorType.BOOL)


def prepare(context: Context, node: Node) -> None:
    """Check the inputs of a DecodeRaw or DecodePaddedRaw node: strings, and for the latter also a length."""
    attributes = checked_attributes(node, len(node.inputs) if len(node.inputs) == 2 else 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    if len(node.inputs) == 2:
        ensure_type(node.inputs[1], TensorType.INT32)
        ensure(node.inputs[1].size == 1, lambda: f"the length {node.inputs[1]} must be one number.")
    attributes.type("out_type", *_TYPES, *(() if len(node.inputs) == 2 else _MORE))
    attributes.ensure_type("out_type", node.outputs[0])
    node.prepared = attributes.flag("little_endian", default=True)
    context.set_dynamic(node.outputs[0])


def bind(context: Context, node: Node) -> Thunk:
    output, little = node.outputs[0], node.prepared
    dtype = output.dtype

    def run() -> None:
        strings = node.inputs[0].data
        items = strings.ravel().tolist()
        if len(node.inputs) == 2:
            length = read_int(node.inputs[1])
            ensure(length > 0, lambda: f"the length is {length}; it must be above 0.")
            charge((2 * length + STRING) * len(items))
            items = [item[:length].ljust(length, b"\0") for item in items]
        else:
            lengths = {len(item) for item in items}
            ensure(len(lengths) <= 1, lambda: f"the strings are {sorted(lengths)[:2]} bytes long; all must have one length.")
            length = lengths.pop() if lengths else 0
            charge(length * len(items))
        size = dtype.itemsize
        ensure(not length % size, lambda: f"strings of {length} bytes do not hold numbers of {size} bytes.")
        context.resize_tensor(output, (*strings.shape, length // size))
        joined = StringMeter().join(b"", items)
        if dtype == np.bool_:
            output.data.reshape(-1)[:] = np.frombuffer(joined, np.uint8) != 0
            return
        values = np.frombuffer(joined, dtype)
        output.data.reshape(-1)[:] = values if little or size == 1 else _swapped(values)

    return run


def _swapped(values: Array) -> Array:
    """Swap the byte order of each value; of complex numbers, of each part."""
    size = values.dtype.itemsize // (2 if values.dtype.kind == "c" else 1)
    swapped: Array = values.view(f"u{size}").byteswap().view(values.dtype)
    return swapped


DECODEPADDEDRAW = DECODERAW = Registration(prepare=prepare, bind=bind)
