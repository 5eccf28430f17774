"""Binary convolutions of every kind: models of one node, values for them, and what larq's reference kernel defines as their answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

__all__ = ["Layer", "layers", "packed"]

Array = np.ndarray[Any, Any]
SAME, VALID = 0, 1
NONE, RELU, RELU_N1_TO_1, RELU6 = range(4)


def packed(values: Array) -> Array:
    """Signs in words, one bit at a time."""
    *outer, channels = values.shape
    words = np.zeros((*outer, -(-channels // 32)), np.uint32)
    for channel in range(channels):
        words[..., channel // 32] |= (values[..., channel] < 0).astype(np.uint32) << np.uint32(channel % 32)
    return words.view(np.int32)


class Layer(NamedTuple):
    """One LceBconv2d."""

    output: str = "float32"
    padding: int = SAME
    pad_values: int = 1
    activation: int = NONE
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    window: tuple[int, int] = (3, 3)
    channels: int = 64
    filters: int = 7
    groups: int = 1
    size: tuple[int, int, int] = (2, 6, 5)
    seed: int = 0

    @property
    def has_late_zeros(self) -> bool:
        """Whether larq's optimized kernels take it with zeros around the map, which they correct floats for."""
        return self.padding == SAME and self.pad_values == 0 and self.output == "float32" and self.activation == NONE

    @property
    def options(self) -> dict[str, int]:
        """The options as the converter writes them."""
        return {
            "channels_in": self.channels, "dilation_height_factor": self.dilations[0], "dilation_width_factor": self.dilations[1],
            "fused_activation_function": self.activation, "pad_values": self.pad_values, "padding": self.padding,
            "stride_height": self.strides[0], "stride_width": self.strides[1],
        }  # fmt: skip

    def values(self) -> dict[str, Array]:
        """The map, the filters, multipliers, offsets and thresholds."""
        random = np.random.default_rng(self.seed)
        window = (self.filters, *self.window, self.channels // self.groups)
        bits = self.window[0] * self.window[1] * window[3]
        scale = 40 if self.output == "int8" else 1  # so that some are limited and most are not
        return {
            "map": random.choice([-1, 1], (*self.size, self.channels)),
            "filters": random.choice([-1, 1], window),
            "multiplier": random.normal(0, scale / bits**0.5, self.filters).astype(np.float32),
            "bias": random.normal(0, scale, self.filters).astype(np.float32),
            "thresholds": random.integers(bits // 2 - 12, bits // 2 + 12, self.filters).astype(np.int32),
        }

    @property
    def out(self) -> tuple[int, int]:
        """Height and width of the answer."""
        if self.padding == SAME:
            return tuple(-(-size // stride) for size, stride in zip(self.size[1:], self.strides))  # type: ignore[return-value]
        spans = [(taps - 1) * apart + 1 for taps, apart in zip(self.window, self.dilations)]
        return tuple((size - span) // stride + 1 for size, span, stride in zip(self.size[1:], spans, self.strides))  # type: ignore[return-value]

    def model(self, *, constant: bool = True) -> bytes:
        """The model; its filters and what follows them are constants or inputs."""
        values = self.values()
        rest: list[Any] = [packed(values["filters"]), values["multiplier"], values["bias"], values["thresholds"]]
        depth = -(-self.filters // 32) if self.output == "int32" else self.filters
        scaled = {"scale": 0.75, "zero_point": -3} if self.output == "int8" else {}
        operands = rest if constant else [Spec(each.dtype, each.shape) for each in rest]
        # Larq's kernels read multipliers for zeros around a map, also where bits go out.
        for unused in () if self.output == "int32" and self.pad_values == 0 else (1, 2) if self.output == "int32" else (3,):
            operands[unused] = None
        source = Spec("int32", (*self.size, -(-self.channels // 32)))
        output = Spec(self.output, (self.size[0], *self.out, depth), **scaled)
        return one_op_model("LceBconv2d", [source, *operands], [output], custom_options=self.options)

    def feeds(self, *, constant: bool = True) -> list[Array]:
        """The values of its inputs."""
        values = self.values()
        feeds = [packed(values["map"])]
        if not constant:
            given = [packed(values["filters"])]
            line = [values["multiplier"], values["bias"]]
            given += line if self.output != "int32" else [*(line if self.pad_values == 0 else []), values["thresholds"]]
            feeds += given
        return feeds

    def sums(self) -> Array:
        """The sums of products of +1 and -1, one window at a time."""
        values = self.values()
        source, filters = values["map"], values["filters"]
        maps, height, width = self.size
        sums = np.zeros((maps, *self.out, self.filters), np.int64)
        spans = [(taps - 1) * apart + 1 for taps, apart in zip(self.window, self.dilations)]
        before = [
            max(0, (out - 1) * stride + span - size) // 2 if self.padding == SAME else 0
            for out, stride, span, size in zip(self.out, self.strides, spans, self.size[1:])
        ]
        each, depth = self.filters // self.groups, self.channels // self.groups
        for y, x, i, j in itertools.product(*map(range, self.out), *map(range, self.window)):
            row = y * self.strides[0] - before[0] + i * self.dilations[0]
            column = x * self.strides[1] - before[1] + j * self.dilations[1]
            inside = 0 <= row < height and 0 <= column < width
            pixel = source[:, row, column] if inside else np.full((maps, self.channels), self.pad_values)
            for group in range(self.groups):
                of = slice(group * each, (group + 1) * each)
                sums[:, y, x, of] += pixel[:, group * depth : (group + 1) * depth] @ filters[of, i, j].T
        return sums

    def answer(self) -> Array:
        """What larq's reference kernel defines."""
        values, sums = self.values(), self.sums()
        bits = self.window[0] * self.window[1] * (self.channels // self.groups)
        if self.output == "int32":
            return packed(-((bits - sums > 2 * values["thresholds"].astype(np.int64)).astype(int)))
        low, high = {NONE: (-bits, bits), RELU: (0, bits), RELU_N1_TO_1: (-1, 1), RELU6: (0, 6)}[self.activation]
        turned = (bits - np.clip(sums, low, high)).astype(np.float32)
        scale, zero = (0.75, -3.0) if self.output == "int8" else (1.0, 0.0)
        factors, bias = values["multiplier"].astype(float), values["bias"].astype(float)
        answer = turned * (-factors / scale).astype(np.float32) + ((bias + bits * factors) / scale + zero).astype(np.float32)
        if self.output == "float32":
            return answer
        return np.clip(np.floor(np.abs(answer.astype(float)) + 0.5) * np.sign(answer), -128, 127).astype(np.int8)


def layers() -> Iterator[Layer]:
    """Every combination of output, padding and activation, each with other sizes, then what is at the edges of them."""
    shapes = itertools.cycle(
        [
            {},
            {"strides": (2, 1), "channels": 32, "filters": 40},
            {"dilations": (2, 1), "channels": 96, "window": (2, 3)},
            {"window": (1, 1), "strides": (1, 2), "channels": 6, "filters": 33},
            {"groups": 2, "channels": 128, "filters": 6},
            {"groups": 3, "channels": 96, "filters": 96, "window": (3, 2), "strides": (2, 2)},
            {"window": (5, 4), "size": (1, 9, 8), "channels": 160, "filters": 64},
        ]
    )
    kinds = itertools.product(
        ("float32", "int8", "int32"), ((SAME, 1), (SAME, 0), (VALID, 0), (VALID, 1)), (NONE, RELU, RELU_N1_TO_1, RELU6)
    )
    number = 0
    for output, (padding, pad_values), activation in kinds:
        for _ in range(2 if output == "float32" else 1):
            shape = next(shapes)
            yield Layer(
                output=output, padding=padding, pad_values=pad_values, activation=activation, seed=(number := number + 1), **shape
            )  # type: ignore[arg-type]
    yield Layer(channels=33, filters=32, window=(2, 2), output="int32")
    yield Layer(channels=4096, window=(3, 3), size=(1, 3, 3), output="int8")
    yield Layer(channels=7, pad_values=0, filters=3)  # zeros around an odd number of channels
    yield Layer(strides=(3, 4), window=(1, 2), pad_values=0, size=(3, 8, 9))
    yield Layer(window=(3, 3), dilations=(2, 2), pad_values=0, size=(1, 11, 11), strides=(2, 2))
