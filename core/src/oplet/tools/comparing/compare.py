"""Run a model in two ways, and say how far apart the answers are.

The outputs are compared as the model gives them. Where delegates or other kernels are tried, each partition is run on the same values
besides, and each node by itself where whole partitions are too coarse to tell a wrong kernel from rounding: in nets of integers, which
move by steps whatever one does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.runtime.interpreter import Interpreter
from oplet.tools.comparing.bisect import Bisection, bisected, bisected_by_litert
from oplet.tools.comparing.borders import Both, Layer, Observer, at_a_border, bordering, merged
from oplet.tools.comparing.references import LITERT, litert_answers, saved_outputs
from oplet.tools.comparing.selecting import chosen_outputs
from oplet.tools.comparing.sides import Sides, claimed_nodes, kernels_of
from oplet.tools.comparing.walk import Walk, walk
from oplet.tools.running.inputs import load_inputs
from oplet.tools.running.named_model import NamedModel
from oplet.tools.running.values.notices import Tell, warn
from oplet.tuning.differences import difference
from oplet.tuning.node_comparison import Choose, NodeDifference, Place, TensorRecorder, scale_and_zero_point
from oplet.tuning.random_inputs import perturbed_input
from oplet.tuning.sensitivity import output_sensitivity
from oplet.tuning.tolerances import ModelKind, Tolerance, kind_of, tolerance_for

__all__ = ["Comparison", "Layer", "compare_model"]

Array = NDArray[Any]
Values = Mapping[str, Array]


@dataclass
class Comparison:
    """What came of comparing.

    Attributes:
        tolerance: the name of the tolerance, "" for those that go with types and the kind of model.
        kind: what the model computes in.
        runs: how often both ran.
        reference: what it was compared with: "" for the built-in kernels, a file, or one of LiteRT's ways.
        delegated: whether delegates were to claim nodes.
        sources: where each input's values are from, by its name; "random" or a file.
        partitions: the nodes that each kernel replaces, with the subgraph's index.
        nodes: how many nodes the model has.
        others: how many nodes other kernels run, where no delegate was tried.
        outputs: the model's outputs.
        layers: the tensors at the borders of partitions, in the order in which they are written or first read.
        level: "nodes" where each node was run by itself on the same values, "partitions" where each partition was, else "".
        alone: what came of that, for each tensor that was written.
        bisection: where it begins, if that was asked for.
        choice: what `auto` chose, and why; "" where it was not asked.
    """

    tolerance: str = ""
    kind: ModelKind = ModelKind.FLOAT32
    runs: int = 0
    reference: str = ""
    delegated: bool = False
    sources: dict[str, str] = field(default_factory=dict)
    partitions: list[tuple[int, list[int]]] = field(default_factory=list)
    nodes: int = 0
    others: int = 0
    outputs: list[Layer] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    level: str = ""
    alone: list[NodeDifference] = field(default_factory=list)
    bisection: Bisection | None = None
    choice: str = ""

    @property
    def trivial(self) -> bool:
        """Whether the model was compared with itself: the delegates claim nothing, or no other kernels are installed."""
        return not self.partitions if self.delegated else not self.others and not self.reference

    @property
    def departing(self) -> list[NodeDifference]:
        """What nodes, or partitions, get wrong by themselves."""
        return [entry for entry in self.alone if not entry.difference.passed]

    @property
    def passed(self) -> bool:
        """Whether every output is the same answer, and every node or partition that was run by itself gives it."""
        return all(layer.difference.passed for layer in self.outputs) and not self.departing


def compare_model(
    sides: Sides,
    inputs: Sequence[str] = (),
    *,
    runs: int = 1,
    seed: int = 0,
    tolerance: Tolerance | None = None,
    layers: bool = False,
    nodes: bool = False,
    bisect: bool = False,
    reference: str = "",
    signature: str | None = None,
    scale: float | None = None,
    offset: float | None = None,
    raw: bool = False,
    tell: Tell = warn,
) -> Comparison:
    """Run a model in two ways.

    The interpreters stay the same for all runs, so that models with variables are compared over successive invokes.

    Args:
        sides: the model and what is tried.
        inputs: "FILE" or "NAME=FILE" each, see `oplet.tools.running.inputs.load_inputs`; the rest is random, anew for each run.
        runs: how often.
        seed: of the first run's random values; the next run has the next.
        tolerance: what passes; by default what goes with a tensor's type and the kind of model.
        layers: compare the tensors at the borders of partitions too.
        nodes: run each node by itself, also where partitions would do.
        bisect: look for the first node that departs.
        reference: what to compare with in place of the built-in kernels: a file of outputs, or one of LiteRT's ways.
        signature: which signature to run; the only one if None, or else the first subgraph.
        scale: of pixels, see `oplet.tools.running.pictures.load_picture`.
        offset: of pixels.
        raw: inputs hold a quantized tensor's integers, not real values.
        tell: is told what was done to inputs.

    Raises:
        OpletError: the model, a package or an input is wrong, a delegate failed, or a kernel did.
        OSError: a file cannot be read.
    """
    wanted = Observer()
    plain = sides.plain(wanted if layers else None)
    named = NamedModel(plain, signature)
    kind = kind_of(node for subgraph in plain._subgraphs for node in subgraph.nodes)
    given = load_inputs(inputs, named.inputs, scale=scale, offset=offset, raw=raw, tell=tell)
    fed = [named.complete(given, seed + run) for run in range(runs)]
    feeds = [{name: array for name, (array, _) in values.items()} for values in fed]
    choose = partial(_chosen, tolerance, kind)
    result = Comparison(str(tolerance or ""), kind, runs, reference)
    result.sources = {name: source for values in fed for name, (_, source) in values.items()}

    recorder, seen = TensorRecorder(), Observer()
    tried = sides.tried(Both(recorder, seen) if layers else recorder)
    recorder.attach(tried)
    if layers:
        seen.watch(tried, at_a_border)
        wanted.watch(plain, lambda place, node: place in seen.values)
    result.delegated = sides.delegated
    recorder.enabled = layers or not reference
    walked = Walk(sides, choose, NamedModel(tried, signature), recorder, signature)
    answers = _reference(reference, sides, named, feeds)
    pairs: list[tuple[Values, Values]] = []
    borders: dict[Place, Layer] = {}
    for run, values in enumerate(feeds):
        seen.values.clear()
        wanted.values.clear()
        got = walked.step(values, run, judge=not reference)
        right = named(values) if answers is None or layers else answers[run]
        pairs.append((got, right if answers is None else answers[run]))
        for place, array in seen.values.items():
            tensor = plain._subgraphs[place[0]].tensors[place[1]]
            layer = _layer(tensor.name, array, wanted.value(place), choose, scale_and_zero_point(tensor), run)
            borders[place] = merged(borders.get(place), replace(layer, subgraph=place[0], tensor=place[1]))
    kernels = kernels_of(tried)
    result.nodes = sum(len(subgraph.nodes) for subgraph in plain._subgraphs)
    result.partitions = [(subgraph, [node.index for node in kernel.prepared.nodes]) for subgraph, kernel in kernels]
    result.others = 0 if result.delegated else _others(tried, plain)
    result.layers = [bordering(layer, kernels) for layer in borders.values()]
    result.outputs = _outputs(named, pairs, choose, {})

    if not reference and not result.trivial:
        _run_alone(result, walked, sides, feeds, choose, signature, nodes or bisect)
    if any(not layer.difference.passed for layer in result.outputs) and _may_spread(tolerance):
        spreads = _spreads(sides, feeds, signature)
        result.outputs = _outputs(named, pairs, choose, spreads)
        result.outputs = chosen_outputs(result.outputs, plain, named.outputs, bool(result.alone) and not result.departing)
    if bisect and not result.trivial:
        result.bisection = _bisect(result, sides, feeds, choose, signature, named)
    return result


def _chosen(tolerance: Tolerance | None, kind: ModelKind, dtype: np.dtype[Any], quantized: bool) -> Tolerance:
    return tolerance_for(dtype, quantized, kind) if tolerance is None else tolerance


def _may_spread(tolerance: Tolerance | None) -> bool:
    return tolerance is None or (tolerance.rtol is None and tolerance.name != "strict")


def _reference(reference: str, sides: Sides, named: NamedModel, feeds: Sequence[Values]) -> list[dict[str, Array]] | None:
    if not reference:
        return None
    if reference in LITERT:
        return litert_answers(
            reference,
            sides.model,
            feeds,
            named.inputs,
            named.outputs,
            signature=named.signature,
            num_threads=sides.num_threads,
        )[0]
    return [saved_outputs(Path(reference), named.outputs)] * len(feeds)


def _outputs(
    named: NamedModel, pairs: Sequence[tuple[Values, Values]], choose: Choose, spreads: Mapping[str, float]
) -> list[Layer]:
    found: dict[str, Layer] = {}
    for name, details in named.outputs.items():
        for run, (got, right) in enumerate(pairs):
            layer = _layer(name, got[name], right[name], choose, details["quantization"], run, spreads.get(name, 0.0))
            found[name] = merged(found.get(name), replace(layer, tensor=details["index"]))
    return list(found.values())


def _layer(name: str, got: Array, wanted: Array, choose: Choose, pair: tuple[float, int], run: int, spread: float = 0.0) -> Layer:
    array = np.asarray(wanted)
    kind = "string" if array.dtype.kind in "OSU" else array.dtype.name
    found = difference(got, wanted, choose(array.dtype, bool(pair[0])), pair, sensitivity=spread, run=run)
    note = ""
    if spread and found.passed and not difference(got, wanted, choose(array.dtype, bool(pair[0])), pair).passed:
        note = "the model itself moves it by as much when its inputs move by a last bit"
    return Layer(name, kind, array.shape, found, note=note)


def _others(tried: Interpreter, plain: Interpreter) -> int:
    """How many nodes are served by another package on the side that is tried."""
    served = [[(report.plugin, report.distribution) for report in interpreter.explain()] for interpreter in (tried, plain)]
    return sum(one != other for one, other in zip(*served))


def _run_alone(
    result: Comparison, walked: Walk, sides: Sides, feeds: Sequence[Values], choose: Choose, signature: str | None, nodes: bool
) -> None:
    """Judge what each partition gave on the same values, and each node where that is too coarse."""
    result.alone, result.level = walked.judged(), "partitions" if result.delegated else "nodes"
    several = any(len(partition) > 1 for _, partition in result.partitions)
    coarse = result.kind in (ModelKind.HYBRID, ModelKind.INTEGER)
    if not several:
        result.level = "nodes"
    elif nodes or coarse or result.departing or not all(layer.difference.passed for layer in result.outputs):
        again = walk(sides, feeds, choose, signature, alone=True)
        done = set(claimed_nodes(again.interpreter))
        if done:
            kept = [entry for entry in result.alone if not walked.partition_of(entry) & done]
            result.alone, result.level = [*again.judged(), *kept], "nodes"


def _spreads(sides: Sides, feeds: Sequence[Values], signature: str | None) -> dict[str, float]:
    """How far the model itself moves each output when its inputs move by what no engine can be blamed for."""

    def answers(random: np.random.Generator | None) -> list[dict[str, Array]]:
        interpreter = sides.plain()
        named = NamedModel(interpreter, signature)
        moved = (
            values
            if random is None
            else {name: perturbed_input(value, named.inputs[name], random) for name, value in values.items()}
            for values in feeds
        )
        found = [named(values) for values in moved]
        interpreter.close()
        return found

    interpreter = sides.plain()
    pairs = {name: details["quantization"] for name, details in NamedModel(interpreter, signature).outputs.items()}
    interpreter.close()
    return output_sensitivity(answers, pairs)


def _bisect(
    result: Comparison, sides: Sides, feeds: Sequence[Values], choose: Choose, signature: str | None, named: NamedModel
) -> Bisection | None:
    if not result.reference:
        return bisected(sides, feeds, choose, signature, result.passed)
    return bisected_by_litert(result.reference, sides, feeds, choose, named, signature, result.passed)
