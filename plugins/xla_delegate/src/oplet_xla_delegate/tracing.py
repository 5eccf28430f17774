"""Runs the nodes of a partition on jax's values, which makes one function of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from oplet import Node, Tensor
from oplet.errors import failures
from oplet_xla_delegate.quantization import QUANTIZED, dequantized, is_quantized, quantized, real_bias
from oplet_xla_delegate.translators import translator
from oplet_xla_delegate.updates import Update

__all__ = ["WIDE_LITERAL", "Body", "Trace", "Untranslatable", "first_line", "inside"]

#: Constants of at most so many elements are written into the function; larger ones are arguments.
WIDE_LITERAL = 16
_PRECISIONS = {"highest": lax.Precision.HIGHEST, "tf32": lax.Precision.DEFAULT, "bf16": lax.Precision.DEFAULT}


class Untranslatable(Exception):
    """Raised for a node that jax refuses, or whose jax value has another shape or type than the graph."""

    def __init__(self, node: Node, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason


class Body(NamedTuple):
    """A subgraph that nodes (IF, WHILE, ...) call."""

    nodes: list[Node]  #: Its nodes, in order.
    inputs: list[Tensor]
    outputs: list[Tensor]
    updates: Mapping[Node, Update]  #: The nodes that update rows of a tensor (see `updates_in`).


class Trace:
    """The translation of a partition's nodes to jax, while jax traces the function.

    Args:
        bodies: the subgraphs that nodes call, by index.
        weights: the values of constants that are arguments of the function.
        limit: the most iterations of a loop.
        precision: the precision of float32 products: "highest", "tf32" or "bf16".
        platform: the device's platform, "cpu", "gpu" or "tpu".

    Attributes:
        overrun: whether a loop was stopped after `limit` iterations, a traced value.
        platform: the device's platform.
    """

    def __init__(
        self, bodies: Mapping[int, Body], weights: Mapping[Tensor, Any], limit: Any, precision: str, platform: str
    ) -> None:
        self._bodies = bodies
        self._weights = weights
        self.limit = limit
        self.overrun: Any = np.bool_(False)
        self.platform = platform
        self.precision = _PRECISIONS[precision]
        self._narrow = precision == "bf16"
        self._in_region = False

    def product(self, multiply: Any, x: Any, y: Any, **arguments: Any) -> Any:
        """Call a function that multiplies and adds, such as `lax.dot_general`, with the precision that was asked for."""
        wanted = jnp.result_type(x, y)
        if self._narrow and wanted == jnp.float32:
            x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
        if wanted in (jnp.float32, jnp.float16, jnp.bfloat16):
            return multiply(x, y, precision=self.precision, preferred_element_type=jnp.float32, **arguments).astype(wanted)
        return multiply(x, y, precision=self.precision, preferred_element_type=wanted, **arguments)

    def run(self, nodes: Sequence[Node], values: dict[Tensor, Any], updates: Mapping[Node, Update] | None = None) -> None:
        """Translate nodes in order; the inputs' jax values are taken from `values`, and the outputs' added there.

        `updates` has the nodes that update rows of a tensor in place.

        Raises:
            Untranslatable: one of the nodes cannot be translated.
        """
        cut = {node for update in (updates or {}).values() for node in update.slices}
        for node in nodes:
            if node in cut or all(tensor.is_constant for tensor in node.outputs):
                continue
            update = (updates or {}).get(node)
            try:
                made = self._outputs(node, values) if update is None else [self._updated(update, values)]
            except Untranslatable:
                raise
            except failures() as error:  # what jax raises, of many classes
                raise Untranslatable(node, f"jax refuses it: {first_line(error)}") from error
            for tensor, value in zip(node.outputs, made):
                if (value.shape != tensor.shape and not self._in_region) or value.dtype != tensor.dtype:
                    raise Untranslatable(node, f"XLA would make {value.dtype} {list(value.shape)} of {tensor}")
                values[tensor] = value

    def call(self, index: int, arguments: Sequence[Any]) -> tuple[list[Any], Any]:
        """Translate a call of the subgraph `index`; return its outputs, and whether a loop in it was stopped, as jax values."""
        body, outside, self.overrun = self._bodies[index], self.overrun, np.bool_(False)
        values = {
            tensor: value.reshape(tensor.shape) if value.size == 1 else value for tensor, value in zip(body.inputs, arguments)
        }
        self.run(body.nodes, values, body.updates)
        overrun, self.overrun = self.overrun, outside
        return [self.value(values, tensor) for tensor in body.outputs], jnp.asarray(overrun)

    def region(self, index: int, arguments: Sequence[Any]) -> list[Any]:
        """Translate the subgraph `index`, the body of a reduction, on scalars; return its outputs."""
        body, outside, self._in_region = self._bodies[index], self._in_region, True
        try:
            values = dict(zip(body.inputs, arguments))
            self.run(body.nodes, values)
            return [self.value(values, tensor).reshape(()) for tensor in body.outputs]
        finally:
            self._in_region = outside

    def body(self, index: int) -> Body:
        """Return the subgraph with this index."""
        return self._bodies[index]

    def value(self, values: Mapping[Tensor, Any], tensor: Tensor) -> Any:
        """Return a tensor's jax value: from `values`, an argument of the function (weights), or a constant."""
        if tensor in values:
            return values[tensor]
        if tensor in self._weights:
            return self._weights[tensor]
        return jnp.asarray(tensor.data, tensor.dtype)

    def _updated(self, update: Update, values: Mapping[Tensor, Any]) -> Any:
        """Return a list with other rows, which begin so many before what is behind them."""
        whole, rows, behind = (self.value(values, tensor) for tensor in update[:3])
        return lax.dynamic_update_slice_in_dim(whole, rows, jnp.maximum(behind[0] - rows.shape[0], 0), 0)

    def _outputs(self, node: Node, values: Mapping[Tensor, Any]) -> Sequence[Any]:
        found = translator(node.op_name)
        if found is None:
            raise Untranslatable(node, f"{node.op_name} is none of the operators that are translated")
        scaled = not found.moves and any(is_quantized(tensor) for tensor in node.outputs)
        given: list[Any] = []
        for position, tensor in enumerate(node.inputs):
            if tensor is None or position in found.constants:
                given.append(None)
                continue
            if scaled and position == found.bias:
                given.append(jnp.asarray(real_bias(node, position)))
                continue
            value = self.value(values, tensor)
            given.append(dequantized(value, tensor) if scaled and tensor.type in QUANTIZED else value)
        made = found.translate(self, node, *given)
        outputs: Sequence[Any] = made if isinstance(made, (list, tuple)) else [made]
        if scaled:
            return [quantized(value, tensor) for value, tensor in zip(outputs, node.outputs)]
        return outputs


def inside(begin: Sequence[Any], shape: Sequence[int], sizes: Sequence[int]) -> list[Any]:
    """Return the start of a slice along each axis, clamped to lie inside `shape`; jax would count negative ones from the end."""
    return [jnp.clip(at.reshape(()), 0, length - size) for at, length, size in zip(begin, shape, sizes)]


def first_line(error: BaseException) -> str:
    """Return the first line of an error of jax or XLA, whose messages can be very long."""
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]
