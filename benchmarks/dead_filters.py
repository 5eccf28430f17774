"""int8 nets as converters write them, a scale for each channel and a fifth of the filters dead, against LiteRT and without dead filters.

    python -m benchmarks.dead_filters [--rounds N] [--only NAME ...]

A dead filter has a tiny scale: its weights are zeros under a huge bias, or ordinary ones that give less than a step of the output; a
few are alive far below their layer's range. Nets are small ones of the usual blocks, and layers of three public nets that have such
filters. Weights are random, with a seed. Each round runs the net with dead filters, the same net with ordinary scales, and LiteRT (XNNPACK)
in turns, on one thread; the fastest runs are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks.common import random_value, take_turns  # first: it has BLAS use one thread

# isort: split
import numpy as np

from oplet import Interpreter, ModelBuilder
from oplet.schema.enums import ActivationFunctionType, Padding
from oplet.schema.options import (
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    ReducerOptions,
    ResizeNearestNeighborOptions,
)
from oplet_testing import litert_interpreter

__all__ = ["NETS", "build", "main"]

_RELU, _NONE = ActivationFunctionType.RELU, ActivationFunctionType.NONE
_SCALE = 0.0235


class _Map(NamedTuple):
    tensor: int
    height: int
    width: int
    channels: int
    zero: int

    @property
    def shape(self) -> tuple[int, ...]:
        return 1, self.height, self.width, self.channels


class Net:
    """A net of int8 layers that is being built; every map has one scale."""

    def __init__(self, size: int, channels: int, dead: bool) -> None:
        self.dead, self.random = dead, np.random.default_rng(0)
        self.builder = ModelBuilder("net")
        self.graph = self.builder.add_subgraph()
        self.count = 0
        self.input = self.map(size, size, channels, -1)

    def map(self, height: int, width: int, channels: int, zero: int) -> _Map:
        self.count += 1
        tensor = self.graph.add_tensor(f"map{self.count}", np.int8, (1, height, width, channels), scale=_SCALE, zero_point=zero)
        return _Map(tensor, height, width, channels, zero)

    def weights(self, shape: tuple[int, ...], axis: int, depth: int) -> list[int]:
        """Add random weights and a bias, a fifth of whose channels are dead."""
        channels, random = shape[axis], self.random
        values = np.moveaxis(random.integers(-127, 128, shape).astype(np.int8), axis, 0)
        scales = (random.uniform(0.5, 2, channels) / 73 / np.sqrt(depth)).astype(np.float32)
        bias = random.integers(-900, 900, channels).astype(np.int32)
        for number in range(2, channels, 5):
            kind = number // 5 % 3
            zeros = kind == 0
            if zeros:
                values[number] = 0
            if self.dead:
                scales[number] *= 2.0**-6 if kind == 2 else 1e-7
                bias[number] = 1 << 30 if zeros else bias[number]
        data, biases = np.ascontiguousarray(np.moveaxis(values, 0, axis)), (scales * _SCALE).tolist()
        return [
            self.graph.add_tensor(
                f"w{self.count}",
                np.int8,
                shape,
                data=data,
                scale=scales.tolist(),
                zero_point=[0] * channels,
                quantized_dimension=axis,
            ),
            self.graph.add_tensor(f"b{self.count}", np.int32, (channels,), data=bias, scale=biases, zero_point=[0] * channels),
        ]

    def conv(self, x: _Map, filters: int, taps: int = 1, stride: int = 1, activation: ActivationFunctionType = _RELU) -> _Map:
        out = self.map(-(-x.height // stride), -(-x.width // stride), filters, -128 if activation == _RELU else -1)
        options = Conv2DOptions(padding=Padding.SAME, stride_h=stride, stride_w=stride, fused_activation_function=activation)
        options.dilation_h_factor = options.dilation_w_factor = 1
        weights = self.weights((filters, taps, taps, x.channels), 0, taps * taps * x.channels)
        self.graph.add_operator("CONV_2D", [x.tensor, *weights], [out.tensor], options, version=3)
        return out

    def depthwise(self, x: _Map, taps: int = 3, stride: int = 1) -> _Map:
        out = self.map(-(-x.height // stride), -(-x.width // stride), x.channels, -128)
        options = DepthwiseConv2DOptions(padding=Padding.SAME, stride_h=stride, stride_w=stride, depth_multiplier=1)
        options.fused_activation_function = _RELU
        options.dilation_h_factor = options.dilation_w_factor = 1
        weights = self.weights((1, taps, taps, x.channels), 3, taps * taps)
        self.graph.add_operator("DEPTHWISE_CONV_2D", [x.tensor, *weights], [out.tensor], options, version=3)
        return out

    def add(self, x: _Map, y: _Map) -> _Map:
        out = self.map(x.height, x.width, x.channels, -1)
        self.graph.add_operator("ADD", [x.tensor, y.tensor], [out.tensor], AddOptions(), version=2)
        return out

    def joined(self, *maps: _Map) -> _Map:
        out = self.map(maps[0].height, maps[0].width, sum(each.channels for each in maps), maps[0].zero)
        options = ConcatenationOptions(axis=3)
        self.graph.add_operator("CONCATENATION", [each.tensor for each in maps], [out.tensor], options, version=2)
        return out

    def pooled(self, x: _Map, taps: int, stride: int) -> _Map:
        out = self.map(-(-x.height // stride), -(-x.width // stride), x.channels, x.zero)
        options = Pool2DOptions(padding=Padding.SAME, stride_h=stride, stride_w=stride, filter_height=taps, filter_width=taps)
        self.graph.add_operator("MAX_POOL_2D", [x.tensor], [out.tensor], options, version=2)
        return out

    def doubled(self, x: _Map) -> _Map:
        out = self.map(2 * x.height, 2 * x.width, x.channels, x.zero)
        size = self.graph.add_tensor(f"size{self.count}", np.int32, (2,), data=np.array(out.shape[1:3], np.int32))
        options = ResizeNearestNeighborOptions()
        self.graph.add_operator("RESIZE_NEAREST_NEIGHBOR", [x.tensor, size], [out.tensor], options, version=2)
        return out

    def scores(self, x: _Map, units: int) -> _Map:
        axes = self.graph.add_tensor("axes", np.int32, (2,), data=np.array([1, 2], np.int32))
        mean = self.graph.add_tensor("mean", np.int8, (1, x.channels), scale=_SCALE, zero_point=x.zero)
        self.graph.add_operator("MEAN", [x.tensor, axes], [mean], ReducerOptions(keep_dims=False), version=2)
        out = self.graph.add_tensor("scores", np.int8, (1, units), scale=_SCALE, zero_point=-1)
        weights = self.weights((units, x.channels), 0, x.channels)
        self.graph.add_operator("FULLY_CONNECTED", [mean, *weights], [out], FullyConnectedOptions(), version=5)
        return _Map(out, 1, 1, units, -1)

    def residual(self, x: _Map) -> _Map:
        return self.add(x, self.conv(self.conv(x, x.channels, 3), x.channels, 3, activation=_NONE))

    def bottleneck(self, x: _Map) -> _Map:
        inner = self.conv(self.conv(x, x.channels // 4), x.channels // 4, 3)
        return self.add(x, self.conv(inner, x.channels, activation=_NONE))

    def inverted(self, x: _Map, taps: int = 3) -> _Map:
        inner = self.depthwise(self.conv(x, 6 * x.channels), taps)
        return self.add(x, self.conv(inner, x.channels, activation=_NONE))

    def separable(self, x: _Map, filters: int, stride: int = 1, taps: int = 3) -> _Map:
        return self.conv(self.depthwise(x, taps, stride), filters)

    def split(self, x: _Map) -> _Map:
        first = self.conv(x, x.channels // 2)
        second = self.conv(self.conv(first, x.channels // 2, 3), x.channels // 2, 3)
        return self.conv(self.joined(first, second), x.channels)


def _repeated(block: Callable[[Net, _Map], _Map], size: int, channels: int, times: int) -> Callable[[bool], tuple[Net, _Map]]:
    def make(dead: bool) -> tuple[Net, _Map]:
        net = Net(size, channels, dead)
        x = net.input
        for _ in range(times):
            x = block(net, x)
        return net, x

    return make


def _mobilenet(size: int, width: int) -> Callable[[bool], tuple[Net, _Map]]:
    def make(dead: bool) -> tuple[Net, _Map]:
        net = Net(size, 3, dead)
        x = net.conv(net.input, width, 3, 2)
        for number in range(4):
            x = net.separable(net.separable(x, x.channels * 2, 1 + number % 2), x.channels * 2)
        return net, net.scores(x, 100)

    return make


def _resnet(size: int, width: int) -> Callable[[bool], tuple[Net, _Map]]:
    def make(dead: bool) -> tuple[Net, _Map]:
        net = Net(size, 3, dead)
        x = net.pooled(net.conv(net.input, width, 7, 2), 3, 2)
        for _ in range(3):
            x = net.conv(net.residual(x), x.channels * 2, 3, 2)
        return net, net.scores(x, 100)

    return make


def _yolo(size: int, width: int) -> Callable[[bool], tuple[Net, _Map]]:
    def make(dead: bool) -> tuple[Net, _Map]:
        net = Net(size, 3, dead)
        x = net.conv(net.conv(net.input, width, 3, 2), 2 * width, 3, 2)
        finer = net.split(x)
        x = net.split(net.conv(finer, 4 * width, 3, 2))
        x = net.doubled(net.conv(net.joined(x, net.pooled(x, 5, 1)), 2 * width))
        return net, net.conv(net.split(net.joined(finer, x)), 84, activation=_NONE)

    return make


#: Functions that make a net, with dead filters or without, by its name. The first three are like layers of the nets that they name.
NETS: dict[str, Callable[[bool], tuple[Net, _Map]]] = {
    "posenet": _repeated(lambda net, x: net.separable(x, 512), 17, 512, 4),
    "hand landmarks": _repeated(lambda net, x: net.inverted(x, 5), 28, 48, 4),
    "yolov8n": _repeated(lambda net, x: net.split(net.conv(x, 128, 3)), 40, 128, 1),
    "pointwise 1280": _repeated(lambda net, x: net.conv(x, 1280), 7, 320, 1),
    "mobilenet v1 block 56": _repeated(lambda net, x: net.separable(x, 128), 56, 128, 2),
    "mobilenet v1 block 28": _repeated(lambda net, x: net.separable(x, 256), 28, 256, 2),
    "mobilenet v1 block 14": _repeated(lambda net, x: net.separable(x, 512), 14, 512, 2),
    "mobilenet v1 block 7": _repeated(lambda net, x: net.separable(x, 1024), 7, 1024, 2),
    "mobilenet v2 block 56": _repeated(lambda net, x: net.inverted(x), 56, 24, 2),
    "mobilenet v2 block 28": _repeated(lambda net, x: net.inverted(x), 28, 32, 2),
    "mobilenet v2 block 14": _repeated(lambda net, x: net.inverted(x), 14, 96, 2),
    "mobilenet v2 block 7": _repeated(lambda net, x: net.inverted(x), 7, 160, 2),
    "efficientnet block 14": _repeated(lambda net, x: net.inverted(x, 5), 14, 80, 2),
    "resnet block 56": _repeated(lambda net, x: net.residual(x), 56, 64, 1),
    "resnet block 28": _repeated(lambda net, x: net.residual(x), 28, 128, 1),
    "resnet block 14": _repeated(lambda net, x: net.residual(x), 14, 256, 1),
    "resnet block 7": _repeated(lambda net, x: net.residual(x), 7, 512, 1),
    "bottleneck 14": _repeated(lambda net, x: net.bottleneck(x), 14, 1024, 1),
    "yolo block 20": _repeated(lambda net, x: net.split(x), 20, 256, 1),
    "mobilenet 96": _mobilenet(96, 16),
    "mobilenet 160": _mobilenet(160, 8),
    "resnet 64": _resnet(64, 32),
    "yolo 160": _yolo(160, 16),
}


def build(name: str, dead: bool) -> bytes:
    """Return one of `NETS`, with dead filters or without."""
    net, out = NETS[name](dead)
    net.graph.set_inputs(net.input.tensor)
    net.graph.set_outputs(out.tensor)
    return net.builder.to_bytes()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the nets and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dead_filters", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=NETS, default=list(NETS), metavar="NAME", help=", ".join(NETS))
    given = parser.parse_args(arguments)
    print(
        "| net | with dead filters, ms | without | ratio | LiteRT | LiteRT / oplet | compiled nodes |\n|---|---:|---:|---:|---:|---:|---:|"
    )
    for name in given.only:
        models = build(name, True), build(name, False)
        runs = [Interpreter(model_content=model, num_threads=1) for model in models]
        runs.append(litert_interpreter()(model_content=models[0], num_threads=1))
        for run in runs:
            run.allocate_tensors()
            details = run.get_input_details()[0]
            run.set_tensor(details["index"], random_value(details))
        turns = take_turns(dict(zip(("dead", "alive", "litert"), (run.invoke for run in runs))), given.rounds)
        dead, alive, litert = (min(turns[key]) * 1e3 for key in ("dead", "alive", "litert"))
        nodes = [report.distribution for report in runs[0].explain()]
        served = f"{nodes.count('oplet-compiled-ops')} of {len(nodes)}"
        print(
            f"| {name} | {dead:.2f} | {alive:.2f} | {dead / alive:.2f} | {litert:.2f} | {litert / dead:.2f} | {served} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
