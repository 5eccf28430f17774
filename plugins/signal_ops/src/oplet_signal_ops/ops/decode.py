"""TFLM_DECODE: tensors that tflite-micro's compressor has packed, unpacked.

Inputs come in pairs: a tensor's bytes, and the bytes that tell how to read them. Each pair makes one output. As both are constants in the
files that the compressor writes, this runs once, when the graph is prepared.

Numerics: tensorflow/lite/micro/kernels/decode.cc of tflite-micro
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_plain
from oplet_signal_ops.decoding.coded import HEADER, Coded
from oplet_signal_ops.decoding.huffman import TYPES as OF_HUFFMAN
from oplet_signal_ops.decoding.huffman import decode
from oplet_signal_ops.decoding.lookup import TYPES, look_up
from oplet_signal_ops.decoding.prune import put_back

_LOOK_UP, _HUFFMAN, _PRUNE = range(3)


def prepare(context: Context, node: Node) -> None:
    ensure(
        len(node.outputs) > 0 and len(node.inputs) == 2 * len(node.outputs) and None not in node.inputs,
        lambda: f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; each output takes two inputs.",
    )
    for tensor in node.inputs:
        ensure_plain(tensor)
    for output, source, telling in zip(node.outputs, node.inputs[::2], node.inputs[1::2]):
        ensure_type(output, *TYPES)
        ensure(source.size > 0 or output.size == 0, f"{source} is empty, and has the packed values of {output}.")
        size = telling.size * telling.dtype.itemsize
        ensure(size >= HEADER, f"{telling} tells how to read {source}, and must have {HEADER} bytes at least.")
        context.resize_tensor(output, output.shape)


def bind(context: Context, node: Node) -> Thunk:
    sources, tellings = node.inputs[::2], node.inputs[1::2]

    def run() -> None:
        for source, telling, output in zip(sources, tellings, node.outputs):
            _decode(Coded(_bytes_of(source), _bytes_of(telling), output))

    return run


def _bytes_of(tensor: Tensor) -> Array:
    return np.ascontiguousarray(tensor.data).reshape(-1).view(np.uint8)


def _decode(coded: Coded) -> None:
    kind, version = (int(each) for each in coded.telling[:2])
    ensure(version == 1, f"{coded.output} is packed by version {version} of the format, and only 1 is known.")
    ensure(
        kind in (_LOOK_UP, _HUFFMAN, _PRUNE),
        lambda: (
            f"{coded.output} is packed in the way {kind}; 0 (tables), 1 (Huffman) and 2 (without zeros) are known, and those from 127 on"
            " are their makers' own."
        ),
    )
    if kind == _LOOK_UP:
        look_up(coded)
    elif kind == _PRUNE:
        put_back(coded)
    else:
        ensure_type(coded.output, *OF_HUFFMAN)
        decode(coded)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=TYPES)
