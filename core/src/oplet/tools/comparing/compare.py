"""Run a model with and without delegates, and say how far apart the answers are.

Values at the borders of partitions are copied right after the node that writes or reads them has run, on both sides, while
they are still in their place. The graph is therefore compared as it runs: `experimental_preserve_all_tensors`, which would
keep them too, cuts other partitions (one node each).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.runtime.describe.profiler import Event, Profiler
from oplet.runtime.interpreter import Interpreter
from oplet.runtime.memory.buffer_handles import ensure_readable
from oplet.schema.enums import TensorType
from oplet.tools.comparing.difference import Difference, difference
from oplet.tools.inputs import load_inputs
from oplet.tools.named_model import NamedModel

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate
    from oplet.plugins.manager import PluginManager

__all__ = ["Comparison", "Layer", "compare_delegate"]

Array = NDArray[Any]
#: Handles, which mean something to their own interpreter only.
_NO_VALUES = (TensorType.RESOURCE, TensorType.VARIANT)
#: A tensor, by its subgraph's index and its own.
Place = tuple[int, int]


@dataclass(frozen=True)
class Layer:
    """A tensor that was compared.

    Attributes:
        name: an output's name, or a tensor's.
        type: its element type.
        shape: its shape in the last run.
        difference: of all runs together.
        subgraph: the subgraph's index.
        tensor: its index.
        written_by: the partition whose kernel writes it, -1 if none does; partitions are counted in the order of the plan.
        read_by: the partitions whose kernels read it.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    difference: Difference
    subgraph: int = 0
    tensor: int = -1
    written_by: int = -1
    read_by: tuple[int, ...] = ()


@dataclass
class Comparison:
    """What came of comparing.

    Attributes:
        rtol: the relative tolerance.
        atol: the absolute tolerance.
        runs: how often both ran.
        sources: where each input's values are from, by its name; "random" or a file.
        partitions: the nodes that each kernel replaces, with the subgraph's index.
        nodes: how many nodes the model has.
        outputs: the model's outputs.
        layers: the tensors at the borders of partitions, in the order in which they are written or first read.
    """

    rtol: float
    atol: float
    runs: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    partitions: list[tuple[int, list[int]]] = field(default_factory=list)
    nodes: int = 0
    outputs: list[Layer] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)

    @property
    def trivial(self) -> bool:
        """Whether the delegates claim nothing, so that the model was compared with itself."""
        return not self.partitions

    @property
    def passed(self) -> bool:
        """Whether every tensor is within the tolerance."""
        return all(layer.difference.passed for layer in (*self.outputs, *self.layers))


def compare_delegate(
    model: str | os.PathLike[str],
    delegates: Sequence[Delegate],
    inputs: Sequence[str] = (),
    *,
    runs: int = 1,
    seed: int = 0,
    rtol: float = 1e-4,
    atol: float = 1e-5,
    layers: bool = False,
    signature: str | None = None,
    scale: float | None = None,
    offset: float | None = None,
    num_threads: int = 1,
    plugins: PluginManager | None = None,
) -> Comparison:
    """Run a model with and without delegates.

    The two interpreters stay the same for all runs, so that models with variables are compared over successive invokes.

    Args:
        model: the .tflite file.
        delegates: what claims nodes, in this order.
        inputs: "FILE" or "NAME=FILE" each, see `oplet.tools.inputs.load_inputs`; the rest is random, anew for each run.
        runs: how often.
        seed: of the first run's random values; the next run has the next.
        rtol: see `oplet.tools.comparing.difference.difference`.
        atol: as `rtol`.
        layers: compare the tensors at the borders of partitions too.
        signature: which signature to run; the only one if None, or else the first subgraph.
        scale: of pixels, see `oplet.tools.pictures.load_picture`.
        offset: of pixels.
        num_threads: threads that kernels may use.
        plugins: where the kernels come from; all that are installed by default.

    Raises:
        OpletError: the model, a package or an input is wrong, a delegate failed, or a kernel did.
        OSError: a file cannot be read.
    """
    seen, wanted = _Observer(), _Observer()
    common = {"num_threads": num_threads, "plugins": plugins}
    with_delegates = Interpreter(
        model,
        experimental_delegates=delegates,
        experimental_force_delegate_node_profiling=True,
        profiler=seen if layers else None,
        **common,  # type: ignore[arg-type]
    )
    without = Interpreter(model, profiler=wanted if layers else None, **common)  # type: ignore[arg-type]
    seen.watch(with_delegates, _at_a_border)
    wanted.watch(without, lambda place, node: place in seen.values)
    delegated, plain = NamedModel(with_delegates, signature), NamedModel(without, signature)
    given = load_inputs(inputs, plain.inputs, scale=scale, offset=offset)

    result = Comparison(rtol, atol, runs)
    outputs: dict[str, Layer] = {}
    borders: dict[Place, Layer] = {}
    for run in range(runs):
        fed = plain.complete(given, seed + run)
        values = {name: array for name, (array, _) in fed.items()}
        result.sources = {name: source for name, (_, source) in fed.items()}
        seen.values.clear()
        wanted.values.clear()
        got, right = delegated(values), plain(values)
        for name, details in plain.outputs.items():
            layer = _layer(name, got[name], right[name], rtol, atol)
            outputs[name] = _merged(outputs.get(name), replace(layer, tensor=details["index"]))
        for place, array in seen.values.items():
            tensor = without._subgraphs[place[0]].tensors[place[1]]
            layer = _layer(tensor.name, array, wanted.value(place), rtol, atol)
            borders[place] = _merged(borders.get(place), replace(layer, subgraph=place[0], tensor=place[1]))
    kernels = _kernels(with_delegates)
    result.nodes = sum(len(subgraph.nodes) for subgraph in without._subgraphs)
    result.partitions = [(subgraph, [node.index for node in kernel.prepared.nodes]) for subgraph, kernel in kernels]
    result.outputs = list(outputs.values())
    result.layers = [_bordering(layer, kernels) for layer in borders.values()]
    return result


class _Observer(Profiler):
    """Copies the values of tensors as soon as a node that writes or reads them has run.

    Attributes:
        values: the last value of each tensor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[Place, Array] = {}

    def watch(self, interpreter: Interpreter, choose: Callable[[Place, Node], bool]) -> None:
        self._subgraphs = interpreter._subgraphs
        self._executors = interpreter._executors
        self._choose = choose

    def record(self, event: Event) -> None:
        subgraph = self._subgraphs[event.subgraph]
        node = subgraph.nodes[event.node]
        for tensor in (*node.inputs, *node.outputs):
            if tensor is None or tensor.is_constant or tensor.type in _NO_VALUES:
                continue
            if node.writes_over(tensor):
                continue  # it was copied when it was written
            place = (event.subgraph, tensor.index)
            if self._choose(place, node):
                stale = tensor.data_is_stale
                ensure_readable(self._executors[event.subgraph].context, tensor)
                self.values[place] = np.array(tensor.data)
                tensor.data_is_stale = stale  # the delegate's own kernels go on reading its buffer

    def value(self, place: Place) -> Array:
        """The value of a tensor; nodes whose result is constant ran before anybody watched."""
        if place in self.values:
            return self.values[place]
        return self._subgraphs[place[0]].tensors[place[1]].data


def _at_a_border(place: Place, node: Node) -> bool:
    return node.delegate is not None


def _kernels(interpreter: Interpreter) -> list[tuple[int, Node]]:
    """The delegates' kernels, in the order of the plans, each with its subgraph's index."""
    return [
        (subgraph.index, subgraph.nodes[index])
        for subgraph in interpreter._subgraphs
        for index in subgraph.execution_plan
        if subgraph.nodes[index].delegate is not None
    ]


def _layer(name: str, got: Array, wanted: Array, rtol: float, atol: float) -> Layer:
    array = np.asarray(wanted)
    kind = "string" if array.dtype.kind in "OSU" else array.dtype.name
    return Layer(name, kind, array.shape, difference(got, wanted, rtol, atol))


def _merged(before: Layer | None, now: Layer) -> Layer:
    return now if before is None else replace(now, difference=before.difference + now.difference)


def _bordering(layer: Layer, kernels: Sequence[tuple[int, Node]]) -> Layer:
    def among(tensors: Collection[Tensor | None]) -> bool:
        return any(tensor is not None and tensor.index == layer.tensor for tensor in tensors)

    here = [(number, kernel) for number, (subgraph, kernel) in enumerate(kernels) if subgraph == layer.subgraph]
    readers = tuple(number for number, kernel in here if among(kernel.inputs))
    return replace(layer, written_by=next((n for n, kernel in here if among(kernel.outputs)), -1), read_by=readers)
