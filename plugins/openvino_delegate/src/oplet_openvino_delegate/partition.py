"""A partition as a compiled OpenVINO graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import openvino
from numpy.typing import NDArray

from oplet import Allocation, Node, Tensor
from oplet_openvino_delegate import compiling
from oplet_openvino_delegate.graph import GraphBuilder, Untranslatable
from oplet_openvino_delegate.translators import MOVED, refusal, translator

#: Constants that the runtime computed are compared by value up to this many elements: beyond, they are weights.
_COMPARED = 1024
#: Multiplications that OpenVINO makes in a second on one thread, at least about.
_WORK_PER_SECOND = 1_000_000_000


class Engine(NamedTuple):
    """Device and settings that partitions are compiled with.

    Attributes:
        device: OpenVINO's name of the device.
        told: the settings for OpenVINO's compiler.
        layers_of_8_bits: whether quantized layers are run, too.
        max_seconds: how long an invoke may take, None for any time.
    """

    device: str
    told: dict[str, Any]
    layers_of_8_bits: bool
    max_seconds: float | None = None


class Partition(NamedTuple):
    """A compiled partition and its tensors.

    Attributes:
        compiled: the graph, compiled by OpenVINO.
        inputs: the tensors that it is fed, in the order of its parameters.
        key: the shapes, types and computed constants that it was compiled for, from `key_of`.
        nbytes: an estimate of the memory that it takes, in bytes.
        handed_on: for outputs that are an unchanged input, by their position the input's. OpenVINO does not write to the memory
            of such outputs, so that the kernel copies.
    """

    compiled: openvino.CompiledModel
    inputs: list[Tensor]
    key: list[Any]
    handed_on: dict[int, int]
    nbytes: int = 0


class _Same:
    """Wraps an array to compare by identity, as part of a cache key."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.array is other.array

    __hash__ = None  # type: ignore[assignment]


def key_of(nodes: Sequence[Node]) -> list[Any]:
    """Return the cache key of a partition's graph: shapes, types and computed constants."""
    tensors = dict.fromkeys(tensor for node in nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None)
    return [(tensor.shape, tensor.type, tensor.is_constant, _content(tensor)) for tensor in tensors]


def _content(tensor: Tensor) -> object:
    if tensor.allocation is not Allocation.COMPUTED:
        return None  # the file's constants stay what they are
    return tensor.data.tobytes() if tensor.size <= _COMPARED else _Same(tensor.data)


def translated(
    nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, layers_of_8_bits: bool = False
) -> tuple[openvino.Model, list[Tensor]]:
    """Translate nodes to an OpenVINO graph; return it and the tensors that are its inputs.

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
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError) as error:  # what OpenVINO's functions raise
            raise Untranslatable(node, f"OpenVINO refuses it: {first_line(error)}") from error
        builder.check(node)
    return builder.model(outputs), list(builder.parameters)


def compile_partition(
    nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], engine: Engine, charge: Callable[[int], None]
) -> Partition:
    """Translate and compile nodes, and run them once, since OpenVINO reports some unsupported cases only then.

    Args:
        charge: called with the estimated bytes; raises LimitError if they are more than is allowed.

    Raises:
        Untranslatable: one of the nodes cannot be translated.
        RuntimeError: OpenVINO does not compile or run the graph, or would take more than the limits leave to it.
    """
    model, fed = translated(nodes, inputs, outputs, layers_of_8_bits=engine.layers_of_8_bits)
    nbytes = compiling.memory(model)
    charge(nbytes)
    if engine.max_seconds is not None and compiling.work(model) > _WORK_PER_SECOND * engine.max_seconds:
        raise RuntimeError(f"nobody can stop it, and it may take longer than Limits(max_seconds={engine.max_seconds}) allows")
    sources = [result.input_value(0).get_node() for result in model.get_results()]
    handed_on = {
        place: model.get_parameter_index(node) for place, node in enumerate(sources) if node.get_type_name() == "Parameter"
    }
    compiled = compiling.compiled(model, engine.device, engine.told)
    request = compiled.create_infer_request()
    request.infer(share_outputs=True)
    for position, tensor in enumerate(outputs):  # 2026.4 loses the stride of quantized convolutions of 1x1
        shape = tuple(request.get_output_tensor(position).shape)
        if shape != tensor.shape:
            raise RuntimeError(f"it makes {list(shape)} of {tensor}")
    return Partition(compiled, fed, key_of(nodes), handed_on, nbytes)


def array_tensor(array: NDArray[Any]) -> openvino.Tensor:
    """Wrap an array as an OpenVINO tensor that shares its memory."""
    return openvino.Tensor(array, shared_memory=True)


def first_line(error: BaseException) -> str:
    """Return the informative line of OpenVINO's multi-line error message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from", "Check '", "While validating"))]
    return (telling or lines[::-1] or [type(error).__name__])[0][:300]
