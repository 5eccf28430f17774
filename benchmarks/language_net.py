"""A language model with random weights, as litert-torch writes them: prefills and a decode step as signatures, caches as inputs and outputs.

Each layer has grouped queries' simplest form (as many keys as queries), rotary positions, `odml.rms_norm` composites and a gated
feed-forward net. The head is the table of embeddings. What is measured on it is time and memory, so the weights mean nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import ModelBuilder
from oplet.builder import BlockwiseQuantization, pack_flexbuffer, pack_values
from oplet.schema.enums import TensorType
from oplet.schema.options import (
    AddOptions,
    BatchMatMulOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    MulOptions,
    ReducerOptions,
    SoftmaxOptions,
)
from oplet.schema.stablehlo_options import StableHLOCompositeOptions

__all__ = ["WEIGHTS", "Size", "caches", "language_model"]

#: Weights of the layers: float32, int8 with a scale for each row, int4 with one for 32 values. The table of embeddings is int8 in the last, too.
WEIGHTS = ("float32", "int8", "int4")
_BLOCK = 32


@dataclass(frozen=True)
class Size:
    """A model's sizes; the usual ones make 30 million parameters."""

    layers: int = 8
    width: int = 512
    heads: int = 8
    inner: int = 1408
    vocabulary: int = 8192
    context: int = 640

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.width // self.heads

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return self.layers * self.width * (4 * self.width + 3 * self.inner) + self.vocabulary * self.width


def caches(size: Size) -> dict[str, tuple[int, ...]]:
    """The shapes of the caches by their names."""
    keys, values = (1, size.heads, size.context, size.head), (1, size.heads, size.head, size.context)
    return {f"kv_cache_{letter}_{layer}": shape for layer in range(size.layers) for letter, shape in (("k", keys), ("v", values))}


def language_model(weights: str, size: Size | None = None, prefills: Sequence[int] = (64, 512)) -> bytes:
    """The content of a `.tflite` file with the signatures `decode` and `prefill_N`.

    Args:
        weights: one of WEIGHTS.
        size: the sizes.
        prefills: the lengths of prefills.
    """
    return _Net(weights, size or Size()).build(prefills)


class _Net:
    def __init__(self, weights: str, size: Size) -> None:
        self.size, self.weights = size, weights
        self.builder = ModelBuilder()
        self._random = np.random.default_rng(1)
        self._stored: dict[str, tuple[int, int]] = {}

    def build(self, prefills: Sequence[int]) -> bytes:
        for key, count in [("decode", 1), *((f"prefill_{count}", count) for count in prefills)]:
            _Signature(self, key, count).build()
        return self.builder.to_bytes()

    def matrix(self, graph: Any, name: str, rows: int, columns: int) -> int:
        """A weight, whose values all signatures share."""
        kind = "int8" if self.weights == "int4" and name == "table" else self.weights
        spread = 1 / np.sqrt(columns)
        if kind == "float32":
            buffer, _ = self._store(name, lambda: self._random.standard_normal((rows, columns), np.float32) * np.float32(spread))
            return int(graph.add_tensor(name, kind, [rows, columns], buffer=buffer))
        if kind == "int8":
            buffer, _ = self._store(name, lambda: self._random.integers(-127, 128, (rows, columns), np.int8))
            scale = np.full(rows, spread / 73, np.float32)
            return int(graph.add_tensor(name, kind, [rows, columns], buffer=buffer, scale=scale))
        buffer, scales = self._store(
            name,
            lambda: pack_values(self._random.integers(-7, 8, (rows, columns), np.int8), TensorType.INT4),
            lambda: np.full((rows, columns // _BLOCK), spread / 4.3, np.float16),
        )
        scale = graph.add_tensor(f"{name}, scales", "float16", [rows, columns // _BLOCK], buffer=scales)
        details = BlockwiseQuantization(scales=scale, zero_points=-1, block_size=_BLOCK)
        return int(graph.add_tensor(name, TensorType.INT4, [rows, columns], buffer=buffer, details=details))

    def _store(self, name: str, values: Any, scales: Any = None) -> tuple[int, int]:
        if name not in self._stored:
            made = [0 if make is None else self.builder.add_buffer(_bytes(make())) for make in (values, scales)]
            self._stored[name] = made[0], made[1]
        return self._stored[name]


def _bytes(values: Any) -> bytes:
    return values if isinstance(values, bytes) else bytes(np.ascontiguousarray(values).tobytes())


class _Signature:
    """One signature: it takes `count` tokens at once."""

    def __init__(self, net: _Net, key: str, count: int) -> None:
        self.net, self.key, self.count = net, key, count
        self.graph, self.norm = net.builder.add_subgraph(key), net.builder.add_subgraph(f"rms_norm_{key}")
        self._names = 0

    def build(self) -> None:
        size, count, tensor = self.net.size, self.count, self.graph.add_tensor
        self._norm()
        inputs = {
            "tokens": tensor("tokens", "int32", [1, count]),
            "input_pos": tensor("input_pos", "int32", [count]),
            "mask": tensor("mask", "float32", [1, 1, count, size.context]),
        }
        inputs |= {name: tensor(name, "float32", shape) for name, shape in caches(size).items()}
        outputs: dict[str, int] = {}
        flat = self.op("RESHAPE", [inputs["tokens"], self.sizes(count)], [count], type="int32")
        table = self.net.matrix(self.graph, "table", size.vocabulary, size.width)
        x = self.op("EMBEDDING_LOOKUP", [flat, table], [count, size.width])
        x = self.op("RESHAPE", [x, self.sizes(1, count, size.width)], [1, count, size.width])
        first = self.op("SLICE", [inputs["input_pos"], self.sizes(0), self.sizes(1)], [1], type="int32")
        zero = self.sizes(0)
        starts = {
            "k": self.op("CONCATENATION", [zero, zero, first, zero], [4], ConcatenationOptions(axis=0), "int32"),
            "v": self.op("CONCATENATION", [zero, zero, zero, first], [4], ConcatenationOptions(axis=0), "int32"),
        }
        angles = self._angles(inputs["input_pos"])
        for layer in range(size.layers):
            x = self._attention(x, layer, inputs, outputs, starts, angles)
            x = self._feed_forward(x, layer)
        if self.key == "decode":
            x = self.norm_of(x)
            shape = [1, 1, size.vocabulary]
            outputs["logits"] = self.op("FULLY_CONNECTED", [x, table, None], shape, FullyConnectedOptions(keep_num_dims=True))
        self.graph.set_inputs(*inputs.values())
        self.graph.set_outputs(*outputs.values())
        self.net.builder.add_signature(self.key, inputs, outputs, self.graph)

    def op(
        self, name: str, inputs: Sequence[int | None], shape: Sequence[int], options: Any = None, type: str = "float32"
    ) -> int:
        """Add an operator; return its output."""
        self._names += 1
        out = self.graph.add_tensor(f"{name}_{self._names}", type, shape)
        self.graph.add_operator(name, inputs, [out], options)
        return int(out)

    def sizes(self, *values: int) -> int:
        return int(self.graph.add_tensor("sizes", "int32", [len(values)], data=np.array(values, np.int32)))

    def constant(self, value: NDArray[Any] | float) -> int:
        array = np.asarray(value, np.float32)
        return int(self.graph.add_tensor("constant", "float32", array.shape, data=array))

    def linear(self, name: str, x: int, into: int, out: int) -> int:
        weights = self.net.matrix(self.graph, name, out, into)
        return self.op("FULLY_CONNECTED", [x, weights, None], [1, self.count, out], FullyConnectedOptions(keep_num_dims=True))

    def norm_of(self, x: int) -> int:
        width = self.net.size.width
        attributes = np.frombuffer(pack_flexbuffer({"epsilon": 1e-6}), np.uint8)
        options = StableHLOCompositeOptions(
            name="odml.rms_norm", decomposition_subgraph_index=self.norm.index, composite_attributes=attributes
        )
        shape = [1, self.count, width]
        return self.op("STABLEHLO_COMPOSITE", [x, self.constant(np.ones(width))], shape, options)

    def _norm(self) -> None:
        """What the composite is made of."""
        graph, full, each = self.norm, [1, self.count, self.net.size.width], [1, self.count, 1]
        x, weight = graph.add_tensor("x", "float32", full), graph.add_tensor("weight", "float32", full[-1:])
        axis = graph.add_tensor("axis", "int32", [1], data=np.array([2], np.int32))
        least = graph.add_tensor("epsilon", "float32", [1, 1, 1], data=np.full([1, 1, 1], 1e-6, np.float32))
        square, mean, added, root, scaled, out = (
            graph.add_tensor(name, "float32", shape)
            for name, shape in zip(("square", "mean", "added", "root", "scaled", "out"), (full, each, each, each, full, full))
        )
        graph.add_operator("MUL", [x, x], [square], MulOptions())
        graph.add_operator("MEAN", [square, axis], [mean], ReducerOptions(keep_dims=True))
        graph.add_operator("ADD", [mean, least], [added], AddOptions())
        graph.add_operator("RSQRT", [added], [root])
        graph.add_operator("MUL", [x, root], [scaled], MulOptions())
        graph.add_operator("MUL", [scaled, weight], [out], MulOptions())
        graph.set_inputs(x, weight)
        graph.set_outputs(out)

    def _angles(self, positions: int) -> tuple[int, int]:
        """The cosines and sines of rotary positions."""
        count, half = self.count, self.net.size.head // 2
        places = self.op("CAST", [positions], [count])
        places = self.op("RESHAPE", [places, self.sizes(1, 1, count, 1)], [1, 1, count, 1])
        frequencies = self.constant(10000.0 ** -(np.arange(half) / half).reshape(1, 1, 1, half))
        angles = self.op("MUL", [places, frequencies], [1, 1, count, half], MulOptions())
        both = self.op("CONCATENATION", [angles, angles], [1, 1, count, 2 * half], ConcatenationOptions(axis=3))
        shape = [1, 1, count, 2 * half]
        return self.op("COS", [both], shape), self.op("SIN", [both], shape)

    def _heads(self, x: int) -> int:
        size, count = self.net.size, self.count
        x = self.op("RESHAPE", [x, self.sizes(1, count, size.heads, size.head)], [1, count, size.heads, size.head])
        return self.op("TRANSPOSE", [x, self.sizes(0, 2, 1, 3)], [1, size.heads, count, size.head])

    def _rotated(self, x: int, angles: tuple[int, int]) -> int:
        size, count = self.net.size, self.count
        shape, half = [1, size.heads, count, size.head], [1, size.heads, count, size.head // 2]
        left = self.op("SLICE", [x, self.sizes(0, 0, 0, 0), self.sizes(*half)], half)
        right = self.op("SLICE", [x, self.sizes(0, 0, 0, half[-1]), self.sizes(*half)], half)
        turned = self.op("CONCATENATION", [self.op("NEG", [right], half), left], shape, ConcatenationOptions(axis=3))
        one = self.op("MUL", [x, angles[0]], shape, MulOptions())
        other = self.op("MUL", [turned, angles[1]], shape, MulOptions())
        return self.op("ADD", [one, other], shape, AddOptions())

    def _attention(
        self, x: int, layer: int, inputs: dict[str, int], outputs: dict[str, int], starts: dict[str, int], angles: tuple[int, int]
    ) -> int:
        size, count = self.net.size, self.count
        normal = self.norm_of(x)
        query, key, value = (self._heads(self.linear(f"{name}_{layer}", normal, size.width, size.width)) for name in "qkv")
        query, key = self._rotated(query, angles), self._rotated(key, angles)
        value = self.op("TRANSPOSE", [value, self.sizes(0, 1, 3, 2)], [1, size.heads, size.head, count])
        seen = {}
        for letter, new in (("k", key), ("v", value)):
            name = f"kv_cache_{letter}_{layer}"
            given = [inputs[name], new, starts[letter]]
            seen[letter] = outputs[name] = self.op("DYNAMIC_UPDATE_SLICE", given, caches(size)[name])
        shape = [1, size.heads, count, size.context]
        scores = self.op("BATCH_MATMUL", [query, seen["k"]], shape, BatchMatMulOptions(adj_y=True))
        scores = self.op("MUL", [scores, self.constant(size.head**-0.5)], shape, MulOptions())
        scores = self.op("ADD", [scores, inputs["mask"]], shape, AddOptions())
        shares = self.op("SOFTMAX", [scores], shape, SoftmaxOptions(beta=1.0))
        found = self.op("BATCH_MATMUL", [shares, seen["v"]], [1, size.heads, count, size.head], BatchMatMulOptions(adj_y=True))
        found = self.op("TRANSPOSE", [found, self.sizes(0, 2, 1, 3)], [1, count, size.heads, size.head])
        found = self.op("RESHAPE", [found, self.sizes(1, count, size.width)], [1, count, size.width])
        out = self.linear(f"o_{layer}", found, size.width, size.width)
        return self.op("ADD", [x, out], [1, count, size.width], AddOptions())

    def _feed_forward(self, x: int, layer: int) -> int:
        size, count = self.net.size, self.count
        inner = [1, count, size.inner]
        normal = self.norm_of(x)
        gate, up = (self.linear(f"{name}_{layer}", normal, size.width, size.inner) for name in ("gate", "up"))
        gate = self.op("MUL", [gate, self.op("LOGISTIC", [gate], inner)], inner, MulOptions())
        down = self.linear(f"down_{layer}", self.op("MUL", [gate, up], inner, MulOptions()), size.inner, size.width)
        return self.op("ADD", [x, down], [1, count, size.width], AddOptions())
