"""Ways with several engines in one model: found where they pay, measured like the others, remembered with their nodes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from plugins.tools.tests.comparing.own_clock import OWN_CLOCK

from oplet import Interpreter, ModelBuilder, PluginManager
from oplet.model.files.cache_folder import FOLDER_VARIABLE
from oplet.model.model import Model
from oplet_testing.distributions import fake_distribution, installed
from oplet_tools.tuning.candidates import Candidate, Runs, runs_text
from oplet_tools.tuning.child.trial_json import read_candidate
from oplet_tools.tuning.choice import Choice, _possible
from oplet_tools.tuning.splits.node_times import NodeTimes, OwnNode
from oplet_tools.tuning.splits.proposals import split_candidates
from oplet_tools.tuning.trials import Trial, fastest

#: Long and Short, which add one: the kernels take their time for Long; the delegate Hasty takes it for each Short of a partition.
ENGINES = f"""{OWN_CLOCK}
import os
import time
import numpy as np
from oplet import DelegateKernel, Registration, SimpleDelegate, hookimpl

def prepare(context, node):
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)

def adding(seconds):
    def invoke(context, node):
        time.sleep(seconds)
        np.add(node.inputs[0].data, 1, node.outputs[0].data)
    return Registration(prepare=prepare, invoke=invoke)

class Kernel(DelegateKernel):
    def init(self, context, params):
        self.count = len(params.nodes)
        self.seconds = 0.004 * sum(node.op_name == "Short" for node in params.nodes)
    def bind(self, context, node):
        source, output = node.inputs[0].data, node.outputs[0].data
        def run():
            if self.count < 8 and "ABORT_IN_PARTS" in os.environ:
                os.abort()
            time.sleep(self.seconds)
            np.add(source, self.count, output)
        return run

class Hasty(SimpleDelegate):
    name = "Hasty"
    def is_node_supported(self, context, node):
        return True
    def create_kernel(self, params):
        return Kernel()

@hookimpl
def register_ops(resolver):
    resolver.add_custom("Long", adding(0.004))
    resolver.add_custom("Short", adding(0.0))

@hookimpl
def register_delegates(registry):
    registry.add("hasty", Hasty)
"""


def model() -> bytes:
    """Four Long and four Short nodes in a row."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(f"t{i}", "float32", [4]) for i in range(9)]
    for index, (source, target) in enumerate(itertools.pairwise(tensors)):
        main.add_operator("Long" if index < 4 else "Short", [source], [target])
    main.set_inputs(tensors[0])
    main.set_outputs(tensors[-1])
    return builder.to_bytes()


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Choice]:
    """The choice for the model, with these engines and the built-in operators installed; its cache file may be changed."""
    folder = tmp_path_factory.mktemp("splits")
    fake_distribution(folder / "site", "some-engines", "1.0", {"some": "some_engines"}, {"some_engines": ENGINES})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder / "cache"))
        patch.setenv("OPLET_PLUGINS", "builtin_ops,some")
        with installed(folder / "site"):
            choice = opened().choice
            assert choice is not None
            kept = Path(choice.path).read_text()
            yield choice
            Path(choice.path).write_text(kept)


def opened() -> Interpreter:
    return Interpreter(model_content=model(), experimental_delegates="auto", plugins=PluginManager())


def answer(interpreter: Interpreter) -> list[float]:
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.arange(4, dtype=np.float32))
    interpreter.invoke()
    values: list[float] = interpreter.get_tensor(8).tolist()
    return values


def test_a_delegate_gets_the_nodes_that_it_runs_faster_and_the_kernels_the_others(tuned: Choice) -> None:
    assert str(tuned.candidate) == "hasty (nodes 0-3) + builtin_ops"
    assert not tuned.in_process, "a child process measured"
    trial = next(trial for trial in tuned.trials if trial.candidate == tuned.candidate)
    assert (trial.error, trial.claimed, trial.nodes, trial.why) == (0.0, (4,), 8, "")
    assert {str(trial.candidate) for trial in tuned.trials} >= {"builtin_ops", "hasty + builtin_ops"}


def test_a_remembered_way_has_the_delegate_claim_the_same_nodes(tuned: Choice) -> None:
    interpreter = opened()
    assert interpreter.choice is not None
    assert interpreter.choice.remembered
    assert interpreter.choice.candidate == tuned.candidate
    assert [report.partitions for report in interpreter.delegation_reports()] == [[[0, 1, 2, 3]]]
    assert answer(interpreter) == answer(Interpreter(model_content=model(), plugins=PluginManager()))
    assert "auto chose hasty (nodes 0-3) + builtin_ops" in interpreter.explain()[0].why


@pytest.mark.parametrize(
    "nodes",
    [
        ["0-8"],
        ["3-0"],
        ["0-3,2-5"],
        ["0,1"],
        ["-1"],
        ["1e9"],
        ["0-99999999999999"],
        ["0-3", "4"],
        [""],
        [7],
        "0-3",
        None,
        ["0-3\n"],
    ],
    ids=str,
)
def test_a_planted_restriction_that_makes_no_sense_is_measured_over(tuned: Choice, nodes: object) -> None:
    content = json.loads(Path(tuned.path).read_text())
    content["choice"]["nodes"] = nodes
    with pytest.raises((ValueError, TypeError)):
        _possible(read_candidate(content["choice"]), Model.from_bytes(model()), PluginManager())


def test_a_file_without_restrictions_is_measured_over(tuned: Choice) -> None:
    content = json.loads(Path(tuned.path).read_text())
    del content["choice"]["nodes"]
    Path(tuned.path).write_text(json.dumps(content))
    choice = opened().choice
    assert choice is not None
    assert not choice.remembered


def test_a_delegate_that_crashes_in_parts_of_the_model_is_left_out_of_the_search(
    tuned: Choice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABORT_IN_PARTS", "1")
    plugins = PluginManager()
    choice = Interpreter(model_content=model(), experimental_delegates="auto", plugins=plugins, num_threads=2).choice
    assert choice is not None
    assert choice.candidate.nodes == ()
    [crashed] = [trial for trial in choice.trials if trial.crashed]
    assert crashed.candidate.nodes
    assert "it ended its process" in crashed.why


def test_runs_of_nodes_are_what_their_text_says() -> None:
    nodes = {0, 1, 2, 7, 9, 10}
    assert runs_text(nodes) == "0-2,7,9-10"
    runs = Runs(runs_text(nodes))
    assert {node for node in range(-5, 50) if node in runs} == nodes
    assert "0" not in runs


def test_a_way_of_many_runs_is_told_in_few_words() -> None:
    way = Candidate("", (), ("a", "b"), (runs_text(range(0, 40, 2)), "41-60"))
    assert str(way) == "a (nodes 0, 2, 4, ..., 38) + b (nodes 41-60) + builtin_ops"


def test_a_way_with_several_engines_is_taken_for_a_clear_gain_only() -> None:
    single, split = Candidate(delegates=("d",)), Candidate(delegates=("d",), nodes=("0-3",))
    assert fastest([Trial(single, 1.00), Trial(split, 0.99)]) == Trial(single, 1.00)
    assert fastest([Trial(single, 1.00), Trial(split, 0.90)]) == Trial(split, 0.90)
    assert fastest([Trial(single, 1.00), Trial(split, 0.90, why="it is wrong")]) == Trial(single, 1.00)
    assert fastest([Trial(single, why="it fails")]) is None


class Simulation:
    """Engines that take for each node of a chain what they are told to, and for each partition a little more."""

    def __init__(self, kernels: list[float], ops: str, crossing: float = 0.1, **delegates: list[float]) -> None:
        self.kernels, self.ops, self.crossing, self.delegates = kernels, ops, crossing, delegates
        self.runs = 0

    def profile(self, candidate: Candidate) -> NodeTimes:
        self.runs += 1
        takes: dict[int, str] = {}
        for name, text in candidate._pairs():
            takes.update({n: name for n in range(len(self.kernels)) if (not text or n in Runs(text)) and n not in takes})
        partitions: list[tuple[tuple[int, ...], float]] = []
        for node, name in sorted(takes.items()):
            before = partitions and partitions[-1][0][-1] == node - 1 and takes[node - 1] == name
            nodes, seconds = partitions.pop() if before else ((), self.crossing)
            partitions.append(((*nodes, node), seconds + self.delegates[name][node]))
        own = {node: seconds for node, seconds in enumerate(self.kernels) if node not in takes}
        return NodeTimes(own, partitions, {n: OwnNode(op, [n - 1] if n else [], 4096) for n, op in enumerate(self.ops)})

    def proposals(self) -> list[Candidate]:
        singles: Mapping[Candidate, float] = {
            way: self.profile(way).total for way in (Candidate(delegates=(name,)) for name in self.delegates)
        }
        return list(split_candidates(Candidate(), singles, self.profile))


def test_the_tail_of_small_nodes_is_left_to_the_kernels() -> None:
    found = Simulation([5.0] * 6 + [0.01] * 50, "c" * 6 + "t" * 50, d=[2.0] * 6 + [0.5] * 50).proposals()
    assert found[0].delegates == ("d",)
    assert Runs(found[0].nodes[0]).lasts[-1] in range(4, 8)


def test_a_slow_operator_is_left_to_the_kernels_wherever_it_stands() -> None:
    found = Simulation([5.0, 0.5] * 10, "cp" * 10, d=[2.0, 6.0] * 10).proposals()
    assert found[0] == Candidate(delegates=("d",), nodes=(runs_text(range(0, 20, 2)),))


def test_of_each_operator_the_largest_node_is_measured_apart_from_those_of_others() -> None:
    simulation = Simulation([5.0, 0.5, 4.0, 0.4] + [3.0, 0.3] * 9, "cp" * 11, d=[2.0, 6.0] * 11)
    asked: list[Candidate] = []

    def profile(candidate: Candidate) -> NodeTimes:
        asked.append(candidate)
        return simulation.profile(candidate)

    list(split_candidates(Candidate(), {Candidate(delegates=("d",)): 90.0}, profile))
    assert next(way.nodes for way in asked if way.nodes) == ("0,3",)


def test_two_delegates_share_a_model_that_neither_runs_well_alone() -> None:
    found = Simulation([9.0] * 24, "c" * 12 + "s" * 12, a=[2.0] * 12 + [6.0] * 12, b=[6.0] * 12 + [2.0] * 12).proposals()
    assert dict(zip(found[0].delegates, found[0].nodes)) == {"a": "0-11", "b": "12-23"}


@pytest.mark.parametrize(
    ("kernels", "delegate"),
    [([5.0] * 30, [2.0] * 30), ([1.0] * 30, [3.0] * 30), ([1.0] * 30, [1.0] * 30), ([0.0] * 30, [0.0] * 30)],
)
def test_where_one_engine_is_the_fastest_for_all_nodes_nothing_is_proposed(kernels: list[float], delegate: list[float]) -> None:
    assert Simulation(kernels, "c" * 30, d=delegate).proposals() == []


def test_a_delegate_that_cannot_run_apart_is_left_as_it_is() -> None:
    simulation = Simulation([5.0] * 6 + [0.01] * 50, "c" * 6 + "t" * 50, d=[2.0] * 6 + [0.5] * 50)

    def profile(candidate: Candidate) -> NodeTimes | None:
        return None if candidate.nodes else simulation.profile(candidate)

    assert list(split_candidates(Candidate(), {Candidate(delegates=("d",)): 30.0}, profile)) == []


def test_few_runs_find_it() -> None:
    simulation = Simulation([5.0, 0.5] * 200, "cp" * 200, a=[2.0, 6.0] * 200, b=[3.0, 1.0] * 200)
    simulation.proposals()
    assert simulation.runs <= 2 + 3 + 2 * 4
