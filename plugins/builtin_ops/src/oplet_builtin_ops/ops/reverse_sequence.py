"""REVERSE_SEQUENCE: in each batch, a given number of first steps reversed. Numerics: tflite/kernels/reverse_sequence.cc"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.schema.options import ReverseSequenceOptions

_TYPES = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT16, TensorType.INT32, TensorType.INT64)


#: A mask of batch numbers: a checkpoint follows each time that its bits are 0.
_OFTEN = 255


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, lengths = node.inputs
    options = node.options(ReverseSequenceOptions)
    ensure_type(source, *_TYPES)
    ensure_type(lengths, TensorType.INT32, TensorType.INT64)
    ensure_same_type(source, node.outputs[0])
    for name, axis in (("seq_dim", options.seq_dim), ("batch_dim", options.batch_dim)):
        ensure(0 <= axis < source.ndim, f"{name} is {axis}, which a tensor of rank {source.ndim} does not have.")
    ensure(options.seq_dim != options.batch_dim, f"seq_dim and batch_dim are both {options.seq_dim} and must differ.")
    if lengths.is_constant:  # else its shape may be a placeholder until a resize
        ensure(lengths.ndim == 1, f"{lengths} must be a vector, with a length for each batch.")
    context.resize_tensor(node.outputs[0], source.shape)


def bind(context: Context, node: Node) -> Thunk:
    options = node.options(ReverseSequenceOptions)
    batches = node.inputs[0].shape[options.batch_dim]
    ensure(
        node.inputs[1].shape == (batches,),
        lambda: f"{node.inputs[1]} must be a vector of {batches} lengths, one for each batch of {node.inputs[0]}.",
    )
    order = (options.batch_dim, options.seq_dim)
    source, output = (np.moveaxis(tensor.data, order, (0, 1)) for tensor in (node.inputs[0], node.outputs[0]))
    lengths = node.inputs[1].data
    steps = source.shape[1]

    def run() -> None:
        too_long = lengths > steps
        if too_long.any():
            at = int(too_long.argmax())
            ensure(False, f"length {lengths[at]} (number {at}) is beyond the {steps} steps of axis {options.seq_dim}.")
        output[...] = source
        for batch, length in enumerate(lengths.tolist()):
            if not batch & _OFTEN:
                checkpoint()
            if length > 1:
                output[batch, :length] = source[batch, :length][::-1]

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=_TYPES)
