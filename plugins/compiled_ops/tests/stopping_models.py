"""Models of under 2 KB that keep compiled kernels busy for as long as limits on memory let them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet import ModelBuilder
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    NonMaxSuppressionV4Options,
    NonMaxSuppressionV5Options,
    Pool2DOptions,
    ResizeBilinearOptions,
    SequenceRNNOptions,
    SoftmaxOptions,
    UnidirectionalSequenceLSTMOptions,
)

__all__ = ["MODELS", "Case"]

SAME, VALID = Padding.SAME, Padding.VALID


class Case(NamedTuple):
    """A model, and smaller inputs that it answers at once.

    Attributes:
        model: makes its bytes.
        small: shapes of its inputs that make little work; none if it has a state.
        endless: whether it takes far longer than any deadline of the tests.
    """

    model: Callable[[], bytes]
    small: Sequence[Sequence[int]] = ()
    endless: bool = False


class Net:
    """A model of one op, whose weights FILL makes."""

    def __init__(self) -> None:
        self.builder = ModelBuilder("long")
        self.graph = self.builder.add_subgraph()
        self.fed: list[int] = []
        self.count = 0

    def tensor(self, kind: str, shape: Sequence[int], **more: Any) -> int:
        self.count += 1
        if kind in ("int8", "uint8"):
            more = {"scale": 0.01, "zero_point": 0, **more}
        return self.graph.add_tensor(f"t{self.count}", np.dtype(kind).type, shape, **more)

    def constant(self, values: Any, kind: str) -> int:
        data = np.array(values, kind)
        self.count += 1
        return self.graph.add_tensor(f"t{self.count}", data.dtype.type, data.shape, data=data)

    def feed(self, kind: str, shape: Sequence[int]) -> int:
        self.fed.append(self.tensor(kind, shape))
        return self.fed[-1]

    def filled(self, kind: str, shape: Sequence[int], value: float = 0.01) -> int:
        made = self.tensor(kind, shape)
        self.count += 1
        number = np.array(value if kind == "float32" else 1, kind)
        more: Any = {"scale": 0.01, "zero_point": 0} if kind in ("int8", "uint8") else {}
        one = self.graph.add_tensor(f"t{self.count}", number.dtype.type, (), data=number, **more)
        self.graph.add_operator("FILL", [self.constant(shape, "int32"), one], [made])
        return made

    def bytes(self, op: str, inputs: Sequence[int], outputs: Sequence[int], options: Any = None) -> bytes:
        self.graph.add_operator(op, inputs, outputs, options)
        self.graph.set_inputs(*self.fed)
        self.graph.set_outputs(*outputs)
        return self.builder.to_bytes()


def conv(source: Sequence[int], weights: Sequence[int], kind: str = "float32", padding: Any = SAME, dilation: int = 1) -> bytes:
    net = Net()
    x, w = net.feed(kind, source), net.filled(kind, weights)
    bias = net.filled("float32" if kind == "float32" else "int32", weights[:1])
    options = Conv2DOptions(
        padding=padding, stride_h=1, stride_w=1, dilation_h_factor=dilation, dilation_w_factor=dilation
    )  # fmt: skip
    same = [*source[:3], weights[0]]
    valid = [source[0], *(max(1, n - (t - 1) * dilation) for n, t in zip(source[1:3], weights[1:3])), weights[0]]
    return net.bytes("CONV_2D", [x, w, bias], [net.tensor(kind, same if padding == SAME else valid)], options)


def depthwise(source: Sequence[int], taps: Sequence[int], multiplier: int = 1, dilation: int = 1, kind: str = "float32") -> bytes:
    net = Net()
    columns = source[3] * multiplier
    x, w = net.feed(kind, source), net.filled(kind, [1, *taps, columns])
    bias = net.filled("float32" if kind == "float32" else "int32", [columns])
    options = DepthwiseConv2DOptions(
        padding=SAME, stride_h=1, stride_w=1, depth_multiplier=multiplier, dilation_h_factor=dilation, dilation_w_factor=dilation
    )
    return net.bytes("DEPTHWISE_CONV_2D", [x, w, bias], [net.tensor(kind, [*source[:3], columns])], options)


def dense(rows: int, depth: int, units: int, source: str = "float32", weights: str = "float32") -> bytes:
    net = Net()
    x, w = net.feed(source, [rows, depth]), net.filled(weights, [units, depth])
    bias = net.filled("float32" if source == "float32" else "int32", [units])
    return net.bytes("FULLY_CONNECTED", [x, w, bias], [net.tensor(source, [rows, units])], FullyConnectedOptions())


def pool(op: str, source: Sequence[int], size: Sequence[int], kind: str = "float32") -> bytes:
    net = Net()
    options = Pool2DOptions(padding=SAME, stride_h=1, stride_w=1, filter_height=size[0], filter_width=size[1])
    return net.bytes(op, [net.feed(kind, source)], [net.tensor(kind, source)], options)


def resize(source: Sequence[int], size: Sequence[int], kind: str = "float32") -> bytes:
    net = Net()
    x, y = net.feed(kind, source), net.tensor(kind, [source[0], *size, source[3]])
    return net.bytes("RESIZE_BILINEAR", [x, net.constant(size, "int32")], [y], ResizeBilinearOptions())


def suppression(boxes: int, most: int, sigma: float | None = None) -> bytes:
    net = Net()
    settings = [net.constant(most, "int32"), net.constant(0.5, "float32"), net.constant(-1.0, "float32")]
    inputs = [net.feed("float32", [boxes, 4]), net.feed("float32", [boxes]), *settings]
    outputs = [net.tensor("int32", [most]), net.tensor("int32", [])]
    if sigma is None:
        return net.bytes("NON_MAX_SUPPRESSION_V4", inputs, outputs, NonMaxSuppressionV4Options())
    outputs.insert(1, net.tensor("float32", [most]))
    options = NonMaxSuppressionV5Options()
    return net.bytes("NON_MAX_SUPPRESSION_V5", [*inputs, net.constant(sigma, "float32")], outputs, options)


def rnn(steps: int, depth: int, cells: int, kind: str = "float32", batches: int = 1) -> bytes:
    net = Net()
    x = net.feed("float32", [steps, batches, depth])
    weights = [net.filled(kind, [cells, depth]), net.filled(kind, [cells, cells]), net.filled("float32", [cells])]
    state = net.tensor("float32", [batches, cells], is_variable=True)
    options = SequenceRNNOptions(time_major=True, fused_activation_function=ActivationFunctionType.TANH)
    y = net.tensor("float32", [steps, batches, cells])
    return net.bytes("UNIDIRECTIONAL_SEQUENCE_RNN", [x, *weights, state], [y], options)


def lstm(steps: int, depth: int, cells: int, kind: str = "float32", batches: int = 1) -> bytes:
    net = Net()
    x = net.feed("float32", [steps, batches, depth])
    entering = [net.filled(kind, [cells, depth]) for _ in range(4)]
    recurrent = [net.filled(kind, [cells, cells]) for _ in range(4)]
    biases = [net.filled("float32", [cells]) for _ in range(4)]
    states = [net.tensor("float32", [batches, cells], is_variable=True) for _ in range(2)]
    options = UnidirectionalSequenceLSTMOptions(time_major=True, fused_activation_function=ActivationFunctionType.TANH)
    inputs = [x, *entering, *recurrent, -1, -1, -1, *biases, -1, -1, *states]
    y = net.tensor("float32", [steps, batches, cells])
    return net.bytes("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, [y], options)


def one(op: str, shape: Sequence[int], options: Any = None, kind: str = "float32") -> bytes:
    net = Net()
    more = {"scale": 1 / 256, "zero_point": -128} if kind == "int8" else {}
    return net.bytes(op, [net.feed(kind, shape)], [net.tensor(kind, shape, **more)], options)


def transpose(shape: Sequence[int], perm: Sequence[int], kind: str = "float32") -> bytes:
    net = Net()
    x, y = net.feed(kind, shape), net.tensor(kind, [shape[axis] for axis in perm])
    return net.bytes("TRANSPOSE", [x, net.constant(perm, "int32")], [y])


#: By name. Without a stop the endless ones take from half a minute to days.
MODELS = {
    "conv of large filters": Case(lambda: conv([1, 255, 255, 1], [64, 255, 255, 1]), [[1, 3, 3, 4]]),
    "conv of one filter": Case(lambda: conv([1, 700, 700, 1], [1, 255, 255, 1]), [[1, 3, 3, 1]], True),
    "conv of many filters": Case(lambda: conv([1, 60, 60, 64], [2000, 5, 5, 64]), [[1, 3, 3, 64]]),
    "conv far apart": Case(lambda: conv([1, 700, 700, 1], [4, 255, 255, 1], dilation=2), [[1, 3, 3, 1]], True),
    "conv of batches": Case(lambda: conv([700, 16, 16, 4], [16, 31, 31, 4]), [[1, 3, 3, 4]]),
    "conv of int8": Case(lambda: conv([1, 1000, 1000, 2], [16, 255, 100, 2], "int8"), [[1, 3, 3, 2]], True),
    "conv of uint8": Case(lambda: conv([1, 1000, 1000, 2], [16, 255, 100, 2], "uint8"), [[1, 3, 3, 2]], True),
    "dense rows": Case(lambda: dense(1500, 3000, 1500), [[2, 3000]]),
    "dense rows of int8": Case(lambda: dense(1000, 3500, 2500, "int8", "int8"), [[2, 3500]]),
    "suppression": Case(lambda: suppression(300_000, 300_000), [[8, 4], [8]], True),
    "soft suppression": Case(lambda: suppression(200_000, 200_000, 50.0), [[8, 4], [8]], True),
    "maxima of large windows": Case(lambda: pool("MAX_POOL_2D", [1, 1400, 1400, 4], [1400, 1400]), [[1, 3, 3, 4]], True),
    "averages of one row": Case(lambda: pool("AVERAGE_POOL_2D", [1, 1, 15_000, 1], [1, 15_000]), [[1, 1, 9, 1]]),
    "averages of large windows": Case(lambda: pool("AVERAGE_POOL_2D", [1, 2500, 2500, 1], [2500, 2500]), [[1, 3, 3, 1]], True),
    "averages of int8": Case(lambda: pool("AVERAGE_POOL_2D", [1, 2000, 2000, 2], [2000, 2000], "int8"), [[1, 3, 3, 2]], True),
    "maxima of int8": Case(lambda: pool("MAX_POOL_2D", [1, 2800, 2800, 2], [2800, 2800], "int8"), [[1, 3, 3, 2]], True),
    "rows of a wide map": Case(lambda: resize([1, 1, 200_000, 8], [200_000, 1]), [[1, 1, 2, 8]], True),
    "rows of a wide map of int8": Case(lambda: resize([1, 1, 1_000_000, 1], [400_000, 1], "int8"), [[1, 1, 2, 1]], True),
    "rnn": Case(lambda: rnn(1500, 3, 2000)),
    "rnn of int8": Case(lambda: rnn(2500, 1500, 1500, "int8")),
    "lstm": Case(lambda: lstm(1500, 3, 900)),
    "lstm of single cells": Case(lambda: lstm(1_500_000, 1, 1)),
    "depthwise": Case(lambda: depthwise([1, 1500, 1500, 3], [9, 9]), [[1, 3, 3, 3]]),
    "depthwise of many outputs": Case(lambda: depthwise([1, 900, 900, 1], [9, 9], 16), [[1, 3, 3, 1]]),
    "depthwise far apart": Case(lambda: depthwise([1, 500, 500, 8], [9, 9], 1, 40), [[1, 3, 3, 8]]),
    "depthwise of one row": Case(lambda: depthwise([1, 1, 200_000, 8], [1, 81]), [[1, 1, 9, 8]]),
    "depthwise of int8": Case(lambda: depthwise([1, 2000, 2000, 5], [9, 9], kind="int8"), [[1, 3, 3, 5]]),
    "softmax of columns": Case(lambda: one("SOFTMAX", [8_000_000, 1], SoftmaxOptions(beta=1.0)), [[3, 1]]),
    "softmax of int8": Case(lambda: one("SOFTMAX", [6_000_000, 1], SoftmaxOptions(beta=1.0), "int8"), [[3, 1]]),
    "logistic": Case(lambda: one("LOGISTIC", [8_000_000]), [[3]]),
    "transpose": Case(lambda: transpose([2800, 2800], [1, 0]), [[3, 2]]),
    "transpose of bytes": Case(lambda: transpose([5, 5000, 1200], [2, 1, 0], "uint8"), [[3, 2, 2]]),
}
