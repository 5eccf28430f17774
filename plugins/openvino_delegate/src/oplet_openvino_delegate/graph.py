"""Builds the OpenVINO graph of a partition node by node.

LiteRT's images are NHWC, OpenVINO's convolutions are NCHW. Each value is kept in the layout in which it was made, and is
transposed when a node wants the other one: between convolutions, additions and activations nothing is transposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
QUANTIZED = (TensorType.INT8, TensorType.UINT8)
_TO_PLANES = (0, 3, 1, 2)
_TO_ROWS = (0, 2, 3, 1)


class Untranslatable(Exception):
    """Raised for a node that OpenVINO rejects or would compute differently."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


class GraphBuilder:
    """An OpenVINO graph under construction, with each tensor's value in one or both layouts (NHWC and NCHW).

    Quantized tensors are real numbers in the graph: inputs of the graph are dequantized, outputs are quantized, and what nodes
    inside read is rounded to quantization steps by a FakeQuantize, from which OpenVINO makes layers of 8 bits.

    Attributes:
        parameters: the graph's inputs, by tensor.
        moving: whether the node that is being translated only moves values, so that rounded ones need no FakeQuantize again.
    """

    def __init__(self, inputs: Sequence[Tensor], *, layers_of_8_bits: bool = False) -> None:
        self.parameters: dict[Tensor, Value] = {
            tensor: ov.parameter(list(tensor.shape), ELEMENT_TYPES[tensor.type]) for tensor in inputs if not tensor.is_constant
        }
        self.moving = False
        self._layers_of_8_bits = layers_of_8_bits
        self._rows: dict[Tensor, Value] = {}
        self._planes: dict[Tensor, Value] = {}
        self._between: set[Tensor] = set()  # quantized, and not on their steps yet
        self._turned_back: list[openvino.Node] = []  # transposes of what was made with the channels in second place
        self._arrays: list[NDArray[Any]] = []  # constants share their memory with these until the graph is compiled
        for tensor, node in self.parameters.items():
            self._rows[tensor] = self._real(tensor, node.output(0))

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """Add a constant to the graph; return its value."""
        array = np.ascontiguousarray(np.asarray(array, dtype)).reshape(np.shape(array))
        self._arrays.append(array)
        return ov.constant(array, shared_memory=array.flags.writeable).output(0)  # views of the file are copied

    def value(self, tensor: Tensor) -> Value:
        """Return a tensor's value in the model's layout (NHWC), transposing if necessary."""
        self._settle(tensor)
        if tensor not in self._rows:
            if tensor in self._planes:
                self._rows[tensor] = self.transposed(self._planes[tensor], _TO_ROWS)
                self._turned_back.append(self._rows[tensor].get_node())
            else:
                self._rows[tensor] = self.arranged(tensor, lambda array: array)
        return self._rows[tensor]

    def arranged(self, tensor: Tensor, arrange: Callable[[NDArray[Any]], NDArray[Any]]) -> Value:
        """Add a constant tensor's dequantized value, after `arrange` has permuted or reshaped its array; return it."""
        value = self.constant(arrange(tensor.data))
        if tensor.type not in QUANTIZED or tensor.quantization is None or not len(tensor.quantization.scales):
            return value
        found = tensor.quantization
        shape = [1] * tensor.ndim
        if len(found.scales) > 1:
            shape[found.quantized_dimension] = len(found.scales)
        scales, zeros = (
            _narrowed(arrange(np.broadcast_to(array.reshape(shape), tensor.shape)))
            for array in (found.scales.astype(np.float32), found.zero_points.astype(np.float32))
        )
        whole = ov.convert(value, "f32")
        centred = ov.subtract(whole, self.constant(zeros)) if zeros.any() else whole
        return ov.multiply(centred, self.constant(scales)).output(0)

    def flat(self, tensor: Tensor) -> Value:
        """Return a tensor's value for uses where only element order counts, in whichever layout needs no transpose."""
        alike = tensor.ndim == 4 and (tensor.shape[3] == 1 or tensor.shape[1] * tensor.shape[2] == 1)
        return self.planes(tensor) if alike and self.in_planes([tensor]) else self.value(tensor)

    def planes(self, tensor: Tensor) -> Value:
        """Return the value of a tensor of up to four dimensions in NCHW layout, transposing if necessary."""
        self._settle(tensor)
        if tensor not in self._planes:
            shape = (1,) * (4 - tensor.ndim) + tensor.shape
            if tensor.is_constant and tensor not in self._rows:
                made = self.arranged(tensor, lambda array: array.reshape(shape).transpose(_TO_PLANES))
            elif tensor.size == max(shape[3], 1):  # along the channels only, nothing moves
                made = self.reshaped(self.value(tensor), (1, shape[3], 1, 1))
            else:
                made = self.transposed(self.reshaped(self.value(tensor), shape), _TO_PLANES)
            self._planes[tensor] = made
        return self._planes[tensor]

    def in_planes(self, tensors: Iterable[Tensor]) -> bool:
        """Return whether one of these tensors was computed in NCHW, so that using that layout saves a transpose."""
        return any(tensor in self._planes and tensor not in self._rows for tensor in tensors)

    def in_its_layout(self, tensor: Tensor) -> tuple[bool, Value]:
        """Return whether a tensor was computed in NCHW, and its value in the layout that needs no transpose."""
        planes = self.in_planes([tensor])
        return planes, self.planes(tensor) if planes else self.value(tensor)

    def put(self, tensor: Tensor, value: Value) -> None:
        """Set a tensor's value in the model's layout (NHWC)."""
        self._put(self._rows, tensor, value)

    def put_planes(self, tensor: Tensor, value: Value) -> None:
        """Set a tensor's value in NCHW layout."""
        self._put(self._planes, tensor, value)

    def put_as(self, planes: bool, tensor: Tensor, value: Value) -> None:
        """Set a tensor's value, in NCHW layout if `planes`, else in the model's."""
        (self.put_planes if planes else self.put)(tensor, value)

    def _put(self, values: dict[Tensor, Value], tensor: Tensor, value: Value) -> None:
        values[tensor] = _output(value)
        if quantized(tensor) and not self.moving:
            self._between.add(tensor)

    def _real(self, tensor: Tensor, value: Value) -> Value:
        """Dequantize a partition input, if it is quantized."""
        if not quantized(tensor):
            return value
        if self._layers_of_8_bits:  # as OpenVINO looks for it
            centred = ov.subtract(ov.convert(value, "f32"), self.constant(np.float32(tensor.zero_point)))
        else:  # exactly: a difference of floats would be fused with the product, and rounded otherwise
            whole = ov.subtract(ov.convert(value, "i32"), self.constant(np.int32(tensor.zero_point)))
            centred = ov.convert(whole, "f32")
        return _output(ov.multiply(centred, self.constant(np.float32(tensor.scale))))

    def _levels(self, tensor: Tensor) -> Value:
        """Return an output's value; a quantized tensor is requantized, rounding ties away from 0."""
        if not quantized(tensor):
            return self.value(tensor)
        self._between.discard(tensor)
        value, limits = self.value(tensor), np.iinfo(tensor.dtype)
        steps = ov.round(ov.divide(value, self.constant(np.float32(tensor.scale))), "half_away_from_zero")
        shifted = ov.add(steps, self.constant(np.float32(tensor.zero_point)))
        clamped = ov.clamp(shifted, float(limits.min), float(limits.max))
        # Of NaN, x86 makes the lowest integer of 32 bits, from which a zero point below 0 leads round to the highest.
        of_nan = self.constant(np.float32(limits.max if tensor.zero_point < 0 else limits.min))
        clamped = ov.select(ov.equal(value, value), clamped, of_nan)
        return _output(ov.convert(clamped, "i8" if tensor.type is TensorType.INT8 else "u8"))

    def _settle(self, tensor: Tensor) -> None:
        """Round a quantized tensor that is read inside the partition to its quantization steps."""
        if tensor in self._between:
            self._between.discard(tensor)
            limits, scale = np.iinfo(tensor.dtype), np.float32(tensor.scale)
            ends = [np.array([(limit - tensor.zero_point) * scale], np.float32) for limit in (limits.min, limits.max)]
            low, high = (self.constant(end) for end in ends)
            for values in (self._rows, self._planes):
                if tensor in values:
                    values[tensor] = _output(ov.fake_quantize(values[tensor], low, high, low, high, 256))

    def transposed(self, value: Value, order: Sequence[int]) -> Value:
        """Add a transpose of a value; return the result."""
        return _output(ov.transpose(value, self.constant(order, np.int64)))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """Add a reshape of a value; return the result, or the value itself if it has the shape already."""
        if tuple(value.get_partial_shape().to_shape()) == tuple(shape):
            return value
        return _output(ov.reshape(value, self.constant(np.array(shape, np.int64)), special_zero=False))

    def check(self, node: Node) -> None:
        """Raise Untranslatable unless all outputs of the node were put into the graph, with the shapes and types of LiteRT."""
        for tensor in node.outputs:
            planes = tensor in self._planes
            value = self._planes[tensor] if planes else self._rows[tensor]
            shape = tuple(value.get_partial_shape().to_shape())
            wanted = tuple(tensor.shape[i] for i in _TO_PLANES) if planes else tensor.shape
            type = openvino.Type.f32 if quantized(tensor) else ELEMENT_TYPES[tensor.type]
            if shape != wanted or value.get_element_type() != type:
                raise Untranslatable(
                    node, f"OpenVINO would make {value.get_element_type().get_type_name()} {list(shape)} of {tensor}"
                )

    def model(self, outputs: Sequence[Tensor]) -> openvino.Model:
        """Build the OpenVINO model that computes these output tensors, in this order."""
        results = [ov.result(self._levels(tensor)) for tensor in outputs]
        self._part_from_other_readers()
        parameters = list(self.parameters.values())
        # OpenVINO's own names count on through the process, so that its cache would not know the graph again.
        for number, node in enumerate(parameters + results):
            node.output(0).set_names({f"border_{number}"})
        model = openvino.Model(results, parameters, "partition")
        for number, node in enumerate(model.get_ordered_ops()):
            node.set_friendly_name(f"node_{number}")
        return model

    def _part_from_other_readers(self) -> None:
        """Give transposes a copy of inputs that other nodes read too, as a workaround.

        OpenVINO keeps images in NHWC in memory, so that a transpose from its NCHW to NHWC moves nothing, but only if no other
        node reads the image; otherwise it takes longer than most convolutions. The copy is an operator that is not optimized
        away.
        """
        for transpose in self._turned_back:
            source = transpose.input_value(0)
            if len(source.get_target_inputs()) > 1:
                copied = ov.prelu(source, self.constant(np.ones(1, np.float32)))
                transpose.input(0).replace_source_output(copied.output(0))


def quantized(tensor: Tensor) -> bool:
    """Return whether a tensor is quantized by a single scale."""
    return (
        tensor.type in QUANTIZED and tensor.quantization is not None and len(tensor.quantization.scales) == 1 and tensor.scale > 0
    )


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Reduce each axis along which all slices are equal to size 1; broadcasting restores them."""
    for axis in range(array.ndim):
        first = array.take([0], axis)
        if (array == first).all():
            array = first
    return array


def _output(value: Value) -> Value:
    return value.output(0) if isinstance(value, openvino.Node) else value
