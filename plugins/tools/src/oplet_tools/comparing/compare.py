"""Comparison of a model's outputs between a candidate (delegates, or kernels of other packages) and a baseline (the built-in kernels).

The outputs of the whole model are compared. In addition the baseline computes each partition on the candidate's
values, and each node by itself where a partition is too coarse to tell a wrong kernel from rounding, as in integer models, whose values move in whole steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter
from oplet.toolkit import inline_composites
from oplet_tools.comparing.bisect import Bisection, bisect_nodes, bisect_with_litert
from oplet_tools.comparing.boundaries import (
    ComparedTensor,
    ProfilerGroup,
    TensorObserver,
    accept_near_ties,
    is_delegate_kernel,
    merged,
    with_partitions,
)
from oplet_tools.comparing.interpreters import InterpreterPair, claimed_nodes, kernels_of
from oplet_tools.comparing.lockstep import Lockstep, Setting, run_in_lockstep
from oplet_tools.comparing.references import LITERT, litert_answers, saved_outputs
from oplet_tools.running.inputs import load_inputs, notify_of_random
from oplet_tools.running.model_runner import ModelRunner
from oplet_tools.running.values.notices import NoticeCallback, warn
from oplet_tools.tuning.differences import difference
from oplet_tools.tuning.node_comparison import Choose, NodeDifference, Place, TensorRecorder, scale_and_zero_point
from oplet_tools.tuning.random_inputs import perturbed_input
from oplet_tools.tuning.sensitivity import output_sensitivity
from oplet_tools.tuning.tolerances import ModelKind, Tolerance, kind_of, tolerance_for

__all__ = ["ComparedTensor", "Comparison", "compare_model"]

Array = NDArray[Any]
Values = Mapping[str, Array]


@dataclass
class Comparison:
    """Per-tensor differences between candidate and baseline on the same inputs, and the verdict."""

    tolerance: str = ""  #: The name of the tolerance, "" for the defaults by dtype and kind of model.
    kind: ModelKind = ModelKind.FLOAT32  #: The arithmetic of the model, by the types of its weights and activations.
    runs: int = 0  #: The number of runs.
    reference: str = ""  #: What the candidate is compared with: "" for the built-in kernels, a file, or one of `LITERT`.
    delegated: bool = False  #: Whether the candidate has delegates.
    sources: dict[str, str] = field(default_factory=dict)  #: The source of each input's values, by its name: "random" or a file.
    #: For each delegate kernel, the subgraph's index and the nodes that it replaces.
    partitions: list[tuple[int, list[int]]] = field(default_factory=list)
    nodes: int = 0  #: The number of nodes in the model.
    others: int = 0  #: Without delegates, the number of nodes that other packages' kernels run.
    outputs: list[ComparedTensor] = field(default_factory=list)  #: The model's outputs.
    #: The tensors at partition boundaries, in the order in which they are written or first read.
    layers: list[ComparedTensor] = field(default_factory=list)
    #: "nodes" if each node was run separately on the same inputs in both, "partitions" if each partition was, else "".
    level: str = ""
    #: The differences of these separately run nodes or partitions, one for each tensor that they wrote.
    alone: list[NodeDifference] = field(default_factory=list)
    bisection: Bisection | None = None  #: The result of the bisection, if it was asked for.
    choice: str = ""  #: What `auto` chose, and why; "" if it was not asked for.

    @property
    def trivial(self) -> bool:
        """Whether the model was compared with itself: the delegates claim nothing, or no other kernels are installed."""
        return not self.partitions if self.delegated else not self.others and not self.reference

    @property
    def departing(self) -> list[NodeDifference]:
        """The differences that exceed the tolerance, of nodes or partitions that were run separately."""
        return [entry for entry in self.alone if not entry.difference.passed]

    @property
    def passed(self) -> bool:
        """Whether every output, and every node or partition that was run separately, is within tolerance."""
        return all(layer.difference.passed for layer in self.outputs) and not self.departing


def compare_model(
    interpreters: InterpreterPair,
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
    notify: NoticeCallback = warn,
) -> Comparison:
    """Compare a model's outputs between candidate and baseline, or a reference.

    The interpreters are kept for all runs, so that models with variables are compared over successive invokes.

    Args:
        interpreters: opens candidate and baseline.
        inputs: "FILE" or "NAME=FILE" each, see `oplet_tools.running.inputs.load_inputs`; the rest is random, anew for each run.
        runs: the number of runs.
        seed: seed of the first run's random values; each further run adds one.
        tolerance: the tolerance; by default one for each tensor's dtype and the kind of model.
        layers: compare the tensors at partition boundaries too.
        nodes: run each node by itself, even where partitions would do.
        bisect: find the first node that departs.
        reference: what to compare with in place of the baseline: a file of outputs, or one of `LITERT`.
        signature: the key of the signature to run; if None, the only signature, or the first subgraph if there are several or none.
        scale: scale of pixels, see `oplet_tools.running.pictures.load_picture`.
        offset: offset of pixels.
        raw: inputs hold a quantized tensor's integers, not real values.
        notify: called with a notice of each change to an input.

    Raises:
        OpletError: the model, a package or an input is wrong, a delegate failed, or a kernel did.
        OSError: a file cannot be read.
    """
    wanted = TensorObserver()
    baseline = interpreters.open_baseline(wanted if layers else None)
    runner = ModelRunner(baseline, signature)
    kind = kind_of(node for subgraph in baseline.subgraphs for node in subgraph.nodes)
    given = load_inputs(inputs, runner.inputs, scale=scale, offset=offset, raw=raw, notify=notify)
    notify_of_random(given, runner.inputs, notify)
    fed = [runner.complete(given, seed + run) for run in range(runs)]
    feeds = [{name: array for name, (array, _) in values.items()} for values in fed]
    choose = partial(_chosen, tolerance, kind)
    result = Comparison(str(tolerance or ""), kind, runs, reference)
    result.sources = {name: source for values in fed for name, (_, source) in values.items()}

    recorder, seen = TensorRecorder(), TensorObserver()
    candidate = interpreters.open_candidate(ProfilerGroup(recorder, seen) if layers else recorder)
    recorder.attach(candidate)
    if layers:
        seen.watch(candidate, is_delegate_kernel)
        wanted.watch(baseline, lambda place, node: place in seen.values)
    result.delegated = interpreters.delegated
    result.nodes = sum(len(subgraph.nodes) for subgraph in baseline.subgraphs)
    inline_composites(baseline, candidate)
    recorder.enabled = layers or not reference
    setting = Setting(interpreters, feeds, choose, signature)
    lockstep = Lockstep(setting, ModelRunner(candidate, signature), recorder)
    answers = _reference(reference, setting, runner)
    pairs: list[tuple[Values, Values]] = []
    borders: dict[Place, ComparedTensor] = {}
    for run, values in enumerate(feeds):
        seen.values.clear()
        wanted.values.clear()
        got = lockstep.step(values, run, judge=not reference)
        right = runner(values) if answers is None or layers else answers[run]
        pairs.append((got, right if answers is None else answers[run]))
        for place, array in seen.values.items():
            tensor = baseline.subgraphs[place[0]].tensors[place[1]]
            layer = _layer(tensor.name, array, wanted.value(place), choose, scale_and_zero_point(tensor), run)
            borders[place] = merged(borders.get(place), replace(layer, subgraph=place[0], tensor=place[1]))
    kernels = kernels_of(candidate)
    result.partitions = [(subgraph, [node.index for node in kernel.prepared.nodes]) for subgraph, kernel in kernels]
    result.others = 0 if result.delegated else _others(candidate, baseline)
    result.layers = [with_partitions(layer, kernels) for layer in borders.values()]
    result.outputs = _outputs(runner, pairs, choose, {})

    if not reference and not result.trivial:
        _run_alone(result, lockstep, setting, nodes or bisect)
    if any(not layer.difference.passed for layer in result.outputs) and _may_spread(tolerance):
        spreads = _sensitivities(setting)
        result.outputs = _outputs(runner, pairs, choose, spreads)
        result.outputs = accept_near_ties(result.outputs, baseline, runner.outputs, bool(result.alone) and not result.departing)
    if bisect and not result.trivial:
        result.bisection = (
            bisect_with_litert(reference, setting, runner, result.passed) if reference else bisect_nodes(setting, result.passed)
        )
    return result


def _chosen(tolerance: Tolerance | None, kind: ModelKind, dtype: np.dtype[Any], quantized: bool) -> Tolerance:
    return tolerance_for(dtype, quantized, kind) if tolerance is None else tolerance


def _may_spread(tolerance: Tolerance | None) -> bool:
    return tolerance is None or (tolerance.rtol is None and tolerance.name != "strict")


def _reference(reference: str, setting: Setting, runner: ModelRunner) -> list[dict[str, Array]] | None:
    if not reference:
        return None
    if reference in LITERT:
        return litert_answers(
            reference,
            setting.interpreters.model,
            setting.feeds,
            runner.inputs,
            runner.outputs,
            signature=runner.signature,
            num_threads=setting.interpreters.num_threads,
        )[0]
    return [saved_outputs(Path(reference), runner.outputs)] * len(setting.feeds)


def _outputs(
    runner: ModelRunner, pairs: Sequence[tuple[Values, Values]], choose: Choose, spreads: Mapping[str, float]
) -> list[ComparedTensor]:
    found: dict[str, ComparedTensor] = {}
    for name, details in runner.outputs.items():
        for run, (got, right) in enumerate(pairs):
            layer = _layer(name, got[name], right[name], choose, details["quantization"], run, spreads.get(name, 0.0))
            found[name] = merged(found.get(name), replace(layer, tensor=details["index"]))
    return list(found.values())


def _layer(
    name: str, got: Array, wanted: Array, choose: Choose, pair: tuple[float, int], run: int, spread: float = 0.0
) -> ComparedTensor:
    array = np.asarray(wanted)
    kind = "string" if array.dtype.kind in "OSU" else array.dtype.name
    found = difference(got, wanted, choose(array.dtype, bool(pair[0])), pair, sensitivity=spread, run=run)
    note = ""
    if spread and found.passed and not difference(got, wanted, choose(array.dtype, bool(pair[0])), pair).passed:
        note = "the model itself moves it by as much when its inputs move by a last bit"
    return ComparedTensor(name, kind, array.shape, found, note=note)


def _others(candidate: Interpreter, baseline: Interpreter) -> int:
    """Count the nodes whose kernels come from different packages in candidate and baseline."""
    served = [[(report.plugin, report.distribution) for report in interpreter.explain()] for interpreter in (candidate, baseline)]
    return sum(one != other for one, other in zip(*served))


def _run_alone(result: Comparison, lockstep: Lockstep, setting: Setting, nodes: bool) -> None:
    """Compare each partition on equal inputs, and each node where partitions are too coarse; add the results to `result`."""
    result.alone, result.level = lockstep.judged(), "partitions" if result.delegated else "nodes"
    several = any(len(partition) > 1 for _, partition in result.partitions)
    coarse = result.kind in (ModelKind.HYBRID, ModelKind.INTEGER)
    if not several:
        result.level = "nodes"
    elif nodes or coarse or result.departing or not all(layer.difference.passed for layer in result.outputs):
        again = run_in_lockstep(setting, alone=True)
        done = set(claimed_nodes(again.interpreter))
        if done:
            kept = [entry for entry in result.alone if not lockstep.partition_of(entry) & done]
            result.alone, result.level = [*again.judged(), *kept], "nodes"


def _sensitivities(setting: Setting) -> dict[str, float]:
    """Measure the sensitivity of each output: how far it moves when the inputs are perturbed by their last bit."""

    def answers(random: np.random.Generator | None) -> list[dict[str, Array]]:
        interpreter = setting.interpreters.open_baseline()
        runner = ModelRunner(interpreter, setting.signature)
        moved = (
            values
            if random is None
            else {name: perturbed_input(value, runner.inputs[name], random) for name, value in values.items()}
            for values in setting.feeds
        )
        found = [runner(values) for values in moved]
        interpreter.close()
        return found

    interpreter = setting.interpreters.open_baseline()
    pairs = {name: details["quantization"] for name, details in ModelRunner(interpreter, setting.signature).outputs.items()}
    interpreter.close()
    return output_sensitivity(answers, pairs)
