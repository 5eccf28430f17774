"""A small quantized net as it is put together: an operator under test, and one that reads what it gave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet.builder import ModelBuilder
from oplet.schema import options as o
from oplet.schema.enums import TensorType
from oplet.schema.table import Table

Array = np.ndarray[Any, Any]

RANGES = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "int4": (-8, 7), "int32": (-(2**31), 2**31 - 1),
}  # fmt: skip


class Quantized(NamedTuple):
    """A tensor's quantization.

    Attributes:
        scale: one, or one for each slice along `axis`.
        zero_point: for all slices.
        axis: the quantized dimension.
    """

    scale: Any
    zero_point: int = 0
    axis: int = 0


class Net(NamedTuple):
    """A model and what it is fed.

    Attributes:
        name: the operator, the scheme and the condition.
        op: the operator under test.
        model: the bytes of the model.
        steps: one list of arrays for each invoke.
    """

    name: str
    op: str
    model: bytes
    steps: list[list[Array]]


class Draft:
    """Collects tensors and nodes of one subgraph."""

    def __init__(self) -> None:
        self.builder = ModelBuilder("a quantized net", minimum_runtime=False)
        self.graph = self.builder.add_subgraph()
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.fed: list[tuple[str, tuple[int, ...], int, int | None]] = []

    def tensor(self, type: str, shape: Sequence[int], quantized: Quantized | None = None, data: Any = None, **more: Any) -> int:
        """Add a tensor, constant if it has data."""
        arguments: dict[str, Any] = dict(more)
        if quantized is not None:
            count = np.size(quantized.scale)
            zero_points = quantized.zero_point if count == 1 and np.ndim(quantized.scale) == 0 else [quantized.zero_point] * count
            arguments |= {"scale": quantized.scale, "zero_point": zero_points, "quantized_dimension": quantized.axis}
        number = len(self.graph.table.tensors or [])
        return self.graph.add_tensor(f"t{number}", TensorType[type.upper()], list(shape), data=data, **arguments)

    def fed_tensor(self, type: str, shape: Sequence[int], quantized: Quantized | None = None, least: int | None = None) -> int:
        """Add a tensor that is an input of the model; `least` is how far above the zero point its values have to be."""
        index = self.tensor(type, shape, quantized)
        self.inputs.append(index)
        zero_point = 0 if quantized is None else quantized.zero_point
        self.fed.append((type, tuple(shape), zero_point, None if least is None else zero_point + least))
        return index

    def given(self, tensor: int) -> int:
        """Make a tensor an output of the model."""
        self.outputs.append(tensor)
        return tensor

    def node(self, op: str, inputs: Sequence[int | None], outputs: Sequence[int], options: Table | None = None) -> None:
        """Add a node."""
        self.graph.add_operator(op, list(inputs), list(outputs), options)

    def follow(self, kind: str, type: str, shape: Sequence[int], tensor: int, quantized: Quantized) -> None:
        """Let another operator read what the one under test gave."""
        normal = Quantized(0.05, 0 if type == "int16" else 3)
        flat = [shape[0], int(np.prod(shape[1:]))]
        if kind == "MEAN":
            axes = self.tensor("int32", [1], data=np.array([len(shape) - 1], np.int32))
            made = self.tensor(type, shape[:-1], normal)
            self.node("MEAN", [tensor, axes], [made], o.ReducerOptions())
        elif kind == "AVERAGE_POOL_2D":
            made = self.tensor(type, [shape[0], shape[1] // 2, shape[2] // 2, shape[3]], quantized)
            self.node(kind, [tensor], [made], o.Pool2DOptions(stride_w=2, stride_h=2, filter_width=2, filter_height=2))
        elif kind == "CONCATENATION":
            target = normal if type == "uint8" else quantized
            made = self.tensor(type, [*shape[:-1], 2 * shape[-1]], target)
            self.node(kind, [tensor, tensor], [made], o.ConcatenationOptions(axis=len(shape) - 1))
        elif kind == "ADD":
            other = self.tensor(type, shape, normal, data=_values(type, shape, 7))
            made = self.tensor(type, shape, normal)
            self.node(kind, [tensor, other], [made], o.AddOptions())
        elif kind == "QUANTIZE":
            made = self.tensor(type, shape, normal)
            self.node(kind, [tensor], [made], o.QuantizeOptions())
        elif kind == "FULLY_CONNECTED":
            weights = self.tensor("uint8" if type == "uint8" else "int8", [3, flat[1]],
                                  Quantized(0.01, 128 if type == "uint8" else 0),
                                  data=_values("uint8" if type == "uint8" else "int8", [3, flat[1]], 8))  # fmt: skip
            made = self.tensor(type, [flat[0], 3], normal)
            flattened = self.tensor(type, flat, quantized)
            shaped = self.tensor("int32", [2], data=np.array(flat, np.int32))
            self.node("RESHAPE", [tensor, shaped], [flattened], o.ReshapeOptions(new_shape=flat))
            self.node(kind, [flattened, weights, None], [made], o.FullyConnectedOptions())
        else:
            made = self.tensor("float32", shape)
            self.node("DEQUANTIZE", [tensor], [made], o.DequantizeOptions())
        self.given(made)

    def net(self, name: str, op: str, steps: list[list[Array]] | None = None) -> Net:
        """The finished net: fed random values first, then zero points alone, then the borders of the types."""
        self.graph.set_inputs(*self.inputs)
        self.graph.set_outputs(*self.outputs)
        if steps is not None:
            return Net(name, op, self.builder.to_bytes(), steps)
        steps = [
            [_values(type, shape, 11 + number) for number, (type, shape, _, _) in enumerate(self.fed)],
            [np.full(shape, zero_point, type) for type, shape, zero_point, _ in self.fed],
            [_borders(type, shape) for type, shape, _, _ in self.fed],
        ]
        for step in steps:
            for array, (type, _, _, least) in zip(step, self.fed):
                if least is not None:
                    np.maximum(array, min(least, RANGES[type][1]), out=array)
        return Net(name, op, self.builder.to_bytes(), steps)


def _values(type: str, shape: Sequence[int], seed: int) -> Array:
    generator = np.random.default_rng(seed)
    if type == "float32":
        return generator.normal(0, 2, shape).astype(np.float32)
    low, high = RANGES[type]
    return generator.integers(low, high + 1, shape).astype("int8" if type == "int4" else type)


def _borders(type: str, shape: Sequence[int]) -> Array:
    if type == "float32":
        values = np.array([0, 1e-30, -1e10, 3e10, 1.4e-45, -7], np.float32)
        return np.resize(values, shape)
    low, high = RANGES[type]
    return np.resize(np.array([low, high, high, low, low + 1], type), shape)


values = _values
