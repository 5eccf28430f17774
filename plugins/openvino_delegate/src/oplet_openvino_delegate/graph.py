"""The OpenVINO graph that grows while the nodes of a partition are translated.

LiteRT's images are NHWC, OpenVINO's convolutions are NCHW. Each value is kept in the layout in which it was made, and is
transposed when a node wants the other one: between convolutions, additions and activations nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import openvino
from numpy.typing import NDArray
from openvino import opset13 as ov

from oplet import Node, Tensor, TensorType

#: An OpenVINO value: a node with one output, or an output of one.
Value = Any

#: The types of values that cross over, and what OpenVINO calls them.
ELEMENT_TYPES = {
    TensorType.FLOAT32: openvino.Type.f32,
    TensorType.INT32: openvino.Type.i32,
    TensorType.BOOL: openvino.Type.boolean,
    TensorType.INT8: openvino.Type.i8,
    TensorType.UINT8: openvino.Type.u8,
}
#: Where each dimension of an image goes when the channels are put in second place.
IN_PLANES = (0, 2, 3, 1)
_TO_PLANES = (0, 3, 1, 2)
_TO_ROWS = (0, 2, 3, 1)


class Untranslatable(Exception):
    """A node that OpenVINO does not take, or of which it would make something else."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


class GraphBuilder:
    """Makes OpenVINO's nodes.

    Attributes:
        parameters: what the graph is fed, by tensor.
    """

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self.parameters: dict[Tensor, Value] = {
            tensor: ov.parameter(list(tensor.shape), ELEMENT_TYPES[tensor.type]) for tensor in inputs if not tensor.is_constant
        }
        self._rows: dict[Tensor, Value] = {tensor: node.output(0) for tensor, node in self.parameters.items()}
        self._planes: dict[Tensor, Value] = {}
        self._arrays: list[NDArray[Any]] = []  # constants share their memory with these until the graph is compiled

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A constant."""
        array = np.ascontiguousarray(np.asarray(array, dtype)).reshape(np.shape(array))
        self._arrays.append(array)
        return ov.constant(array, shared_memory=array.flags.writeable).output(0)  # views of the file are copied

    def value(self, tensor: Tensor) -> Value:
        """A tensor's value in the layout that the model gives it."""
        if tensor not in self._rows:
            if tensor in self._planes:
                self._rows[tensor] = self.transposed(self._planes[tensor], _TO_ROWS)
            else:
                self._rows[tensor] = self.constant(tensor.data)
        return self._rows[tensor]

    def flat(self, tensor: Tensor) -> Value:
        """A tensor's values in their order, in whatever shape costs nothing."""
        alike = tensor.ndim == 4 and (tensor.shape[3] == 1 or tensor.shape[1] * tensor.shape[2] == 1)
        return self.planes(tensor) if alike and self.in_planes([tensor]) else self.value(tensor)

    def planes(self, tensor: Tensor) -> Value:
        """A tensor of up to four dimensions with the channels, its last dimension, in second place of four."""
        if tensor not in self._planes:
            shape = (1,) * (4 - tensor.ndim) + tensor.shape
            if tensor.is_constant and tensor not in self._rows:
                made = self.constant(tensor.data.reshape(shape).transpose(_TO_PLANES))
            elif tensor.size == max(shape[3], 1):  # along the channels only, nothing moves
                made = self.reshaped(self.value(tensor), (1, shape[3], 1, 1))
            else:
                made = self.transposed(self.reshaped(self.value(tensor), shape), _TO_PLANES)
            self._planes[tensor] = made
        return self._planes[tensor]

    def in_planes(self, tensors: Iterable[Tensor]) -> bool:
        """Whether one of these was made with the channels in second place, so that going on so saves a transpose."""
        return any(tensor in self._planes and tensor not in self._rows for tensor in tensors)

    def put(self, tensor: Tensor, value: Value) -> None:
        """Say what a tensor's value is, in the model's layout."""
        self._rows[tensor] = _output(value)

    def put_planes(self, tensor: Tensor, value: Value) -> None:
        """Say what a tensor's value is, channels in second place."""
        self._planes[tensor] = _output(value)

    def put_as(self, planes: bool, tensor: Tensor, value: Value) -> None:
        """Say what a tensor's value is, in the one layout or the other."""
        (self.put_planes if planes else self.put)(tensor, value)

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        """The value with its dimensions in another order."""
        return _output(ov.transpose(value, self.constant(order, np.int64)))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The value in another shape, itself if it has it."""
        if tuple(value.get_partial_shape().to_shape()) == tuple(shape):
            return value
        return _output(ov.reshape(value, self.constant(np.array(shape, np.int64)), special_zero=False))

    def check(self, node: Node) -> None:
        """Raise Untranslatable unless the node's outputs are there, with the shapes and types that LiteRT gives them."""
        for tensor in node.outputs:
            planes = tensor in self._planes
            value = self._planes[tensor] if planes else self._rows[tensor]
            shape = tuple(value.get_partial_shape().to_shape())
            wanted = tuple(tensor.shape[i] for i in _TO_PLANES) if planes else tensor.shape
            if shape != wanted or value.get_element_type() != ELEMENT_TYPES[tensor.type]:
                raise Untranslatable(
                    node, f"OpenVINO would make {value.get_element_type().get_type_name()} {list(shape)} of {tensor}"
                )

    def model(self, outputs: Sequence[Tensor]) -> openvino.Model:
        """The whole graph, which computes these tensors in this order."""
        results = [ov.result(self.value(tensor)) for tensor in outputs]
        parameters = list(self.parameters.values())
        # OpenVINO's own names count on through the process, so that its cache would not know the graph again.
        for number, node in enumerate(parameters + results):
            node.output(0).set_names({f"border_{number}"})
        model = openvino.Model(results, parameters, "partition")
        for number, node in enumerate(model.get_ordered_ops()):
            node.set_friendly_name(f"node_{number}")
        return model


def _output(value: Value) -> Value:
    return value.output(0) if isinstance(value, openvino.Node) else value
