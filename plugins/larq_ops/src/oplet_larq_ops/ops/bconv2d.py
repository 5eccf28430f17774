"""LceBconv2d: a convolution of +1 and -1 in words of bits, which is the number of bits in which windows and filters differ.

Taps outside of the map count as +1 where the option `pad_values` is 1, and as nothing where it is 0. Larq's optimized kernels work that
out as +1 first and correct floats afterwards, its reference kernel counts integers; so does this one, each where larq's runtime does.

Numerics: larq_compute_engine/tflite/kernels/bconv2d.cc, larq_compute_engine/core/bconv2d
"""

from __future__ import annotations

from typing import cast

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import ensure_scale
from oplet.kernels.operands import ensure_vector
from oplet.kernels.options import integer
from oplet.kernels.windows import window_axis
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet_larq_ops.bits import WORD, words_for
from oplet_larq_ops.differences import Convolution, Differences, add_scratch
from oplet_larq_ops.geometry import chunks_of, each_chunk
from oplet_larq_ops.outputs import ACTIVATIONS, write_bits, write_floats, write_integers

_OUTPUTS = (TensorType.FLOAT32, TensorType.INT8, TensorType.INT32)
#: Bits of a filter: doubled sums stay exact in int32.
_MOST_BITS = 2**29
#: Words, taps or sums that a chunk of windows has, about.
_CHUNK = 1 << 19


def prepare(context: Context, node: Node) -> None:
    ensure(len(node.inputs) == 5 and len(node.outputs) == 1, "it must have 5 inputs and one output.")
    source, filters, output = _given(node, 0), _given(node, 1), node.outputs[0]
    for tensor in (source, filters):
        ensure_type(tensor, TensorType.INT32)
        ensure(tensor.ndim == 4, lambda tensor=tensor: f"{tensor} must have 4 dimensions.")  # type: ignore[misc]
    ensure_type(output, *_OUTPUTS)
    count = filters.shape[0]
    bit_output = output.type == TensorType.INT32
    for position in (4,) if bit_output else (2, 3):
        tensor = _given(node, position)
        ensure_vector(tensor, TensorType.INT32 if bit_output else TensorType.FLOAT32)
        ensure(tensor.size == count, lambda tensor=tensor: f"{tensor} must have {count} values, one for each filter.")  # type: ignore[misc]
    if output.type == TensorType.INT8:
        ensure(ensure_scale(output) > 0, lambda: f"{output} has scale 0, and sums are divided by it.")
    found = _read(node, source, filters)
    context.resize_tensor(output, (source.shape[0], found.height.out, found.width.out, words_for(count) if bit_output else count))
    add_scratch(context, node, found, filters)
    context.add_temporary(node, (found.chunks.most, count))  # floats of a chunk, on the way to int8
    node.prepared = found


def _given(node: Node, position: int) -> Tensor:
    tensor = node.optional_input(position)
    ensure(tensor is not None, f"input {position} is left out (-1) and may not be with this type of output.")
    return cast(Tensor, tensor)


def _read(node: Node, source: Tensor, filters: Tensor) -> Convolution:
    """Read the options and check them against the shapes."""
    options = node.custom_map()
    batch, rows, columns, words = source.shape
    count, window_height, window_width, depth = filters.shape
    channels = integer(options, "channels_in", least=1)
    ensure(
        words_for(channels) == words,
        lambda: f"'channels_in' is {channels}, which takes {words_for(channels)} words, unlike {source}.",
    )
    ensure(
        depth > 0 and words % depth == 0, lambda: f"the words of {source} must be as many as those of {filters}, or a multiple."
    )
    groups = words // depth
    ensure(
        groups == 1 or (channels % (groups * WORD) == 0 and count % groups == 0),
        lambda: f"{channels} channels and {count} filters cannot be in {groups} groups of whole words.",
    )
    padding = Padding(integer(options, "padding", most=1))
    zero_padding = integer(options, "pad_values", most=1) == 0 and padding == Padding.SAME
    number = integer(options, "fused_activation_function", most=5)
    activation = ActivationFunctionType(number)
    ensure(
        activation in ACTIVATIONS,
        lambda: f"the option 'fused_activation_function' is {activation.name}, which no convolution of larq has.",
    )
    is_plain = node.outputs[0].type == TensorType.FLOAT32 and activation == ActivationFunctionType.NONE
    ensure(
        not zero_padding or channels % 2 == 0 or is_plain,
        lambda: f"zeros around {channels} channels, an odd number, need a FLOAT32 output and no activation.",
    )
    height, width = (
        window_axis(name, padding, size, window, integer(options, f"stride_{name}"), integer(options, f"dilation_{name}_factor"))
        for name, size, window in (("height", rows, window_height), ("width", columns, window_width))
    )
    taps = window_height * window_width
    ensure(taps * depth * WORD <= _MOST_BITS, lambda: f"{filters} has filters of more than {_MOST_BITS} bits.")
    chunks = chunks_of(batch, height.out * width.out, _CHUNK // max(1, taps * words, count))
    return Convolution(height, width, groups, channels // groups, zero_padding, activation, chunks)


def bind(context: Context, node: Node) -> Thunk:
    found: Convolution = node.prepared
    source, filters, multiplier, bias, thresholds = (node.optional_input(position) for position in range(5))
    output = node.outputs[0]
    if source is None or filters is None or not output.size:
        return lambda: None
    differences = Differences(node, found, source.data, filters)
    windows, type = found.windows, output.type
    places = output.data.reshape(-1, output.shape[3])
    floats = node.temporaries[-1].data
    low, high = found.bounds
    # Whatever LCE's optimized kernels take gets the zeros around the map as they give them.
    late = type == TensorType.FLOAT32 and found.activation == ActivationFunctionType.NONE

    def run() -> None:
        along = found.line(multiplier.data, bias.data, output) if multiplier is not None and bias is not None else None
        for chunk in each_chunk(found.chunks, len(source.data), windows):
            checkpoint()
            sums, missing = differences.of(chunk)
            if missing is not None and not late:
                sums[missing.windows] += missing.values
            first = chunk.maps.start * windows + chunk.windows.start
            place = places[first : first + chunk.size]
            if along is None or type == TensorType.INT32:
                write_bits(sums, thresholds.data, place)  # type: ignore[union-attr]  # prepare saw that it is there
                continue
            np.maximum(sums, low, out=sums)
            np.minimum(sums, high, out=sums)
            if type == TensorType.INT8:
                write_integers(sums, along, floats[: chunk.size], place)
                continue
            write_floats(sums, along, place)
            if missing is not None and late:
                place[missing.windows] += missing.values.astype(np.float32) * along.multiplier

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.INT32,),
    differences="Zeros around a map that a filter covers on both sides are left out of every window; larq's optimized kernels forget some.",
)
