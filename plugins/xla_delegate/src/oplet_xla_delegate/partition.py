"""A partition as a function that XLA has compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from oplet import Allocation, Node, Tensor, TensorType
from oplet_xla_delegate.checking import Reference
from oplet_xla_delegate.device import Device, Executable, wide_types
from oplet_xla_delegate.tracing import WIDE_LITERAL, Body, Trace
from oplet_xla_delegate.translators import translator

__all__ = ["MOST_ITERATIONS", "Engine", "Partition", "Refused", "compile_partition", "key_of"]

#: The most iterations of a loop, oplet's own limit.
MOST_ITERATIONS = 10_000_000
_WIDE = (TensorType.INT64, TensorType.UINT64, TensorType.FLOAT64)
#: Multiplications and additions that a CPU makes in a second, at least about.
_WORK_PER_SECOND = 1_000_000_000
#: Computed constants are compared by value up to this many elements: beyond, they are weights.
_COMPARED = 1024


class Refused(Exception):
    """Raised for a partition that is left to other kernels."""


class Engine(NamedTuple):
    """The device and settings that partitions are compiled for."""

    device: Device
    precision: str  #: The precision of float32 products: "highest", "tf32" or "bf16".
    quantized: bool  #: Whether quantized nodes are run, in real numbers.
    max_seconds: float | None  #: The time limit of an invoke; None for none.


class Partition(NamedTuple):
    """A compiled partition."""

    #: The function; arguments: the weights, the inputs and, with loops, the most iterations; results: the outputs and, with
    #: loops, whether a loop reached that number.
    executable: Executable
    weights: list[Any]  #: The constants, on the device.
    fed: list[Tensor]  #: The input tensors, in order.
    loops: bool  #: Whether there are loops.
    wide: bool  #: Whether there are 64-bit values.

    def run(self, values: Sequence[Any], limit: int = MOST_ITERATIONS) -> tuple[Sequence[Any], Any]:
        """Run the function; return its outputs, and whether a loop was stopped after `limit` iterations."""
        if not self.loops:
            return self.executable.run(self.weights, values), False
        made: tuple[Sequence[Any], Any] = self.executable.run(self.weights, values, np.int32(limit))
        return made


def key_of(nodes: Sequence[Node], bodies: Mapping[int, Body]) -> tuple[Any, ...]:
    """Return the cache key of a partition: shapes, types, and constants that the runtime computes."""
    tensors = dict.fromkeys(tensor for node in nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None)
    return tuple((tensor.shape, tensor.type, tensor.is_constant, _content(tensor)) for tensor in tensors)


def _content(tensor: Tensor) -> object:
    if tensor.allocation is not Allocation.COMPUTED:
        return None  # the file's constants stay what they are
    return tensor.data.tobytes() if tensor.size <= _COMPARED else id(tensor.source)


def compile_partition(
    nodes: Sequence[Node],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    bodies: Mapping[int, Body],
    engine: Engine,
    charge: Callable[[int], None],
    reference: Reference | None,
) -> Partition:
    """Translate nodes to a function, compile it by XLA, and compare its outputs with those of oplet's kernels.

    Args:
        nodes: the nodes, in order.
        inputs: the tensors that they read from outside, constants included.
        outputs: the tensors that are read outside of the nodes.
        bodies: the subgraphs that they call.
        engine: the device and settings to compile for.
        charge: the function that counts bytes against the memory limit; raises LimitError.
        reference: runs oplet's kernels for comparison; None to compare nothing.

    Raises:
        Untranslatable: one of the nodes cannot be translated.
        Refused: the function would take too long, or its outputs differ from the kernels'.
    """
    everywhere = [*nodes, *(node for body in bodies.values() for node in body.nodes)]
    loops = any(node.op_name in ("WHILE", "STABLEHLO_WHILE") for node in everywhere)
    used = dict.fromkeys(tensor for node in everywhere for tensor in (*node.inputs, *node.outputs) if tensor is not None)
    wide = any(tensor.type in _WIDE for tensor in used)
    constants = _weights_of(everywhere)
    fed = [tensor for tensor in inputs if not tensor.is_constant]

    def function(weights: Sequence[Any], values: Sequence[Any], limit: Any = MOST_ITERATIONS) -> Any:
        trace = Trace(bodies, dict(zip(constants, weights)), limit, engine.precision, engine.device.platform)
        known = dict(zip(fed, values))
        trace.run(nodes, known)
        made = [trace.value(known, tensor) for tensor in outputs]
        return (made, trace.overrun) if loops else made

    place = jax.sharding.SingleDeviceSharding(engine.device.jax)
    with wide_types(wide):
        weights = [engine.device.weight(tensor.data) for tensor in constants]
        shapes = [jax.ShapeDtypeStruct(tensor.shape, tensor.dtype, sharding=place) for tensor in fed]
        limits = [jax.ShapeDtypeStruct((), np.int32)] if loops else []
        lowered = jax.jit(function, keep_unused=True).lower(weights, shapes, *limits)
        executable = engine.device.compile(lowered)
    made = Partition(executable, weights, fed, loops, wide)
    if engine.device.platform == "cpu":
        charge(executable.nbytes)
        if engine.max_seconds is not None and (loops or executable.flops > _WORK_PER_SECOND * engine.max_seconds):
            raise Refused(f"nobody can stop it, and it may take longer than Limits(max_seconds={engine.max_seconds}) allows")
    if reference is not None and not executable.checked:
        _compare(made, nodes, inputs, outputs, engine, reference)
        executable.checked = True
    return made


def _weights_of(nodes: Sequence[Node]) -> list[Tensor]:
    """Return the constants that become arguments: those that nodes compute with, and that are not small."""
    found: dict[Tensor, None] = {}
    for node in nodes:
        known = translator(node.op_name)
        if all(tensor.is_constant for tensor in node.outputs):
            continue  # the runtime has computed it
        for position, tensor in enumerate(node.inputs):
            is_argument = tensor is not None and tensor.is_constant and tensor.size > WIDE_LITERAL
            if known is not None and is_argument and position not in known.constants:
                found[tensor] = None
    return list(found)


def _compare(
    made: Partition,
    nodes: Sequence[Node],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    engine: Engine,
    reference: Reference,
) -> None:
    size = sum(tensor.nbytes for tensor in (*inputs, *outputs))
    case = reference.case(nodes, inputs, outputs, size)
    if case is None:
        return
    with wide_types(made.wide):
        answers, overrun = made.run([engine.device.put(value) for value in case.given], reference.iterations)
        if not overrun:
            reason = case.differs([np.asarray(answer) for answer in answers], engine.precision)
            if reason:
                raise Refused(f"XLA on {engine.device} answers otherwise than oplet's kernels: {reason}")
