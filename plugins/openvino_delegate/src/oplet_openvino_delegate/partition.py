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
    """The device and settings that partitions are compiled for."""

    device: str  #: OpenVINO's name of the device.
    told: dict[str, Any]  #: The settings for OpenVINO's compiler.
    layers_of_8_bits: bool  #: Whether quantized layers are translated, too.
    max_seconds: float | None = None  #: The time limit of an invoke; None for none.


class Partition(NamedTuple):
    """A compiled partition and its tensors."""

    compiled: openvino.CompiledModel  #: The compiled model.
    inputs: list[Tensor]  #: The input tensors, in the order of the model's parameters.
    key: list[Any]  #: The cache key of the state that it was compiled for, from `key_of`.
    #: The outputs that are an unchanged input: the input's position by the output's. OpenVINO does not write to the memory of
    #: such outputs, so that the kernel copies.
    handed_on: dict[int, int]
    nbytes: int = 0  #: An estimate of its memory in bytes.


class _Same:
    """Wraps an array to compare by identity, as part of a cache key."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.array is other.array

    __hash__ = None  # type: ignore[assignment]


def key_of(nodes: Sequence[Node]) -> list[Any]:
    """Return the cache key of a partition: the shapes, types and computed constants of its nodes' tensors."""
    tensors = dict.fromkeys(tensor for node in nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None)
    return [(tensor.shape, tensor.type, tensor.is_constant, _content(tensor)) for tensor in tensors]


def _content(tensor: Tensor) -> object:
    if tensor.allocation is not Allocation.COMPUTED:
        return None  # the file's constants stay what they are
    return tensor.data.tobytes() if tensor.size <= _COMPARED else _Same(tensor.data)


def translated(
    nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, layers_of_8_bits: bool = False
) -> tuple[openvino.Model, list[Tensor]]:
    """Translate nodes to an OpenVINO model; return the model and the tensors that are its parameters.

    Raises:
        Untranslatable: one of the nodes, which the message names, cannot be translated.
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
        charge: the function that counts the estimated bytes against the memory limit; raises LimitError.

    Raises:
        Untranslatable: one of the nodes cannot be translated.
        RuntimeError: OpenVINO cannot compile or run the model, or it would exceed the interpreter's limits.
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
    """Return the line of OpenVINO's multi-line error message that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("Exception from", "Check '", "While validating"))]
    return (telling or lines[::-1] or [type(error).__name__])[0][:300]
