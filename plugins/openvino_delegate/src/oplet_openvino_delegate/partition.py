"""One partition: its nodes as an OpenVINO graph, compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import openvino

from oplet import Node, Tensor
from oplet_openvino_delegate import compiling
from oplet_openvino_delegate.graph import GraphBuilder, Untranslatable
from oplet_openvino_delegate.translators import MOVED, refusal, translator

#: Constants that the runtime computed are compared by value up to this many elements: beyond, they are weights.
_COMPARED = 1024


class Engine(NamedTuple):
    """What partitions are made with.

    Attributes:
        device: what they run on.
        told: what OpenVINO's compiler is told.
        layers_of_8_bits: whether quantized layers are claimed.
    """

    device: str
    told: dict[str, Any]
    layers_of_8_bits: bool


class Partition(NamedTuple):
    """A compiled partition.

    Attributes:
        compiled: what OpenVINO made of it.
        inputs: the tensors that it is fed, in the order of its parameters.
        key: what it was made for: `key_of` the partition.
    """

    compiled: openvino.CompiledModel
    inputs: list[Tensor]
    key: list[Any]


def key_of(nodes: Sequence[Node]) -> list[Any]:
    """The shapes, types and computed constants on which a partition's graph depends."""
    tensors = dict.fromkeys(tensor for node in nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None)
    return [(tensor.shape, tensor.type, _content(tensor)) for tensor in tensors]


def _content(tensor: Tensor) -> object:
    if not tensor.is_constant or not tensor.has_data:
        return None
    return tensor.data.tobytes() if tensor.size <= _COMPARED else id(tensor.data)


def translated(
    nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, layers_of_8_bits: bool = False
) -> tuple[openvino.Model, list[Tensor]]:
    """OpenVINO's graph of some nodes, and the tensors that it is fed.

    Raises:
        Untranslatable: one of the nodes cannot be translated; it is named.
    """
    builder = GraphBuilder(inputs, layers_of_8_bits=layers_of_8_bits)
    for node in nodes:
        reason = refusal(node, layers_of_8_bits=layers_of_8_bits)
        if reason:
            raise Untranslatable(node, reason)
        found = translator(node.op_name)
        try:
            if found is not None:
                builder.moving = found.types is MOVED
                found.translate(builder, node)
        except (RuntimeError, TypeError, ValueError) as error:  # what OpenVINO's functions raise
            raise Untranslatable(node, f"OpenVINO refuses it: {_first_line(error)}") from error
        builder.check(node)
    return builder.model(outputs), list(builder.parameters)


def compile_partition(nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], engine: Engine) -> Partition:
    """Translate and compile some nodes.

    Raises:
        Untranslatable: one of the nodes cannot be translated.
        RuntimeError: OpenVINO does not compile the graph.
    """
    model, fed = translated(nodes, inputs, outputs, layers_of_8_bits=engine.layers_of_8_bits)
    return Partition(compiling.compiled(model, engine.device, engine.told), fed, key_of(nodes))


def array_tensor(array: np.ndarray[Any, Any]) -> openvino.Tensor:
    """OpenVINO's view of an array."""
    return openvino.Tensor(array, shared_memory=True)


def _first_line(error: BaseException) -> str:
    """The sentence that tells in what OpenVINO says over many lines."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from", "Check '", "While validating"))]
    return (telling or lines or [type(error).__name__])[-1 if not telling else 0][:300]
