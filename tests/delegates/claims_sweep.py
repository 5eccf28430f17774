"""Delegate recorded models in many random ways; a worker of test_random_claims.py, in a process of its own for its own threads.

    claims_sweep.py FOLDER ROUNDS [--part NUMBER/PARTS] [--only NAME ...]

prints one JSON line: what was counted, and what went wrong.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import partition_statement as rules

from oplet import BuiltinOperator, DelegateContext, DelegateKernel, DelegateParams, Interpreter, Node, TensorType
from oplet.errors import DelegateApplicationError, OpletError
from oplet_testing import WrappingDelegate, invoke

#: These run for seconds: with a few of their claim sets only; the partitions of all are compared.
HUGE = {"conv_huge_im2col": 3}

Arrays = list[np.ndarray[Any, Any]]
Claim = Callable[[DelegateContext, Node], bool]


class Case(NamedTuple):
    """A recorded model with its inputs."""

    name: str
    content: bytes
    steps: list[dict[str, Any]]
    data: dict[str, np.ndarray[Any, Any]]


class Way(NamedTuple):
    """One way of delegating a model."""

    kind: str
    claims: list[Claim]
    cluster: bool
    fuse: bool
    dynamic: list[bool]
    late: bool

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in ("cluster", "fuse", "dynamic", "late"))
        return f"{self.kind}, {len(self.claims)} delegates, {settings}"


class Stated(WrappingDelegate):
    """Compares what it is given with what the rules say."""

    def __init__(self, claim: Claim, way: Way, counts: Counter[str], *, dynamic: bool) -> None:
        super().__init__(claim, dynamic=dynamic)
        self.way = way
        self.counts = counts
        self.expected: list[Any] = []

    def prepare(self, context: DelegateContext) -> None:
        nodes = [context.node(index) for index in range(max(context.execution_plan, default=-1) + 1)]
        claimed = [
            index
            for index in context.execution_plan
            if nodes[index].op is not BuiltinOperator.DELEGATE and self.is_node_supported(context, nodes[index]) is True
        ]
        assert context.metadata("model_control_dependencies") is None
        stated = rules.stated_partitions(
            [_stated_node(node) for node in nodes],
            context.execution_plan,
            context.outputs,
            claimed,
            greedy=self.way.cluster,
            fuse=self.way.fuse,
        )
        assert [tuple(subset) for subset in context.preview_delegate_partitioning(claimed)] == [tuple(s) for s in stated]
        self.expected = [subset for subset in stated if subset.claimed]
        self.counts["partitionings"] += 1
        self.counts["partitions"] += len(self.expected)
        super().prepare(context)
        assert not self.expected
        plan = [subset.nodes if not subset.claimed else None for subset in stated]
        # Kernels come after all nodes, also after those that were made of composites and are not in the plan.
        kernels = [index for index in context.execution_plan if index >= len(nodes)]
        assert context.execution_plan == list(_plan(plan, kernels[0] if kernels else len(nodes))) or not claimed

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        subset = self.expected.pop(0)
        assert [node.index for node in params.nodes] == subset.nodes
        assert [tensor.index for tensor in params.input_tensors] == subset.inputs
        assert [tensor.index for tensor in params.output_tensors] == subset.outputs
        return super().create_kernel(params)


def _plan(subsets: list[list[int] | None], first_kernel: int) -> Iterator[int]:
    for nodes in subsets:
        if nodes is None:
            yield first_kernel
            first_kernel += 1
        else:
            yield from nodes


def _stated_node(node: Node) -> Any:
    tensors = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    effects = node.op in (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)
    return rules.StatedNode(
        [-1 if tensor is None else tensor.index for tensor in node.inputs],
        [tensor.index for tensor in node.outputs],
        effects or any(tensor.type is TensorType.RESOURCE for tensor in tensors),
    )


def cases(path: Path, only: list[str] | None) -> Iterator[Case]:
    """The recorded models of a zip file, or those of them that are named."""
    if path.stem == "unrunnable":
        return
    with zipfile.ZipFile(path) as archive:
        for name in sorted({n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith("case.json")}):
            if only is not None and name not in only:
                continue
            steps = json.loads(archive.read(f"{name}/case.json"))["steps"]
            if steps:
                with np.load(io.BytesIO(archive.read(f"{name}/io.npz")), allow_pickle=False) as arrays:
                    data = {key: arrays[key] for key in arrays.files}
                yield Case(name, archive.read(f"{name}/model.tflite"), steps, data)


def play(interpreter: Interpreter, case: Case) -> Arrays:
    """The outputs of all steps."""
    answers: Arrays = []
    interpreter.allocate_tensors()
    for step in case.steps:
        feeds = [(item, case.data[item["key"]]) for item in step["inputs"]]
        feeds = [(item, value.astype(object) if item.get("string") and value.ndim else value) for item, value in feeds]
        if step["signature"] is not None:
            answer = interpreter.get_signature_runner(step["signature"])(**{item["name"]: value for item, value in feeds})
            answers += [np.asarray(answer[name]) for name in sorted(answer)]
            continue
        indices = [detail["index"] for detail in interpreter.get_input_details()]
        for (item, value), index in zip(feeds, indices):
            if item.get("resize"):
                interpreter.resize_tensor_input(index, value.shape)
        interpreter.allocate_tensors()
        answers += invoke(interpreter, *(value for _, value in feeds))
    return answers


def run_resized(interpreter: Interpreter, case: Case) -> Arrays:
    """The outputs for inputs one larger where they are free, else in the first dimension; and again as they were."""
    details = interpreter.get_input_details()
    before = [tuple(int(dim) for dim in detail["shape"]) for detail in details]
    free = any(-1 in detail["shape_signature"] for detail in details)
    after = [
        tuple(dim + (signature == -1 if free else axis == 0) for axis, (dim, signature) in enumerate(zip(shape, d["shape_signature"])))
        for shape, d in zip(before, details)
    ]  # fmt: skip
    answers: Arrays = []
    for shapes in (after, before):
        for detail, shape in zip(details, shapes):
            interpreter.resize_tensor_input(detail["index"], shape)
        interpreter.allocate_tensors()
        recorded = [case.data[item["key"]] for item in case.steps[0]["inputs"]]
        answers += invoke(interpreter, *(np.resize(value, shape) for value, shape in zip(recorded, shapes)))
    return answers


def assert_same(got: Arrays, wanted: Arrays, what: str) -> None:
    assert len(got) == len(wanted), what
    for number, (one, other) in enumerate(zip(got, wanted)):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), f"{what}: output {number}"
        equal = one.tolist() == other.tolist() if one.dtype.hasobject else one.tobytes() == other.tobytes()
        assert equal, f"{what}: output {number} differs"


def draw_way(dice: random.Random, plans: list[list[Node]], may_be_static: bool) -> Way:
    """One way of delegating; `plans` has the nodes of each subgraph."""
    count = dice.choice([1, 1, 2, 3])
    kind = dice.choice(["all", "alternating", "random", "sparse", "dense", "types", "single", "stretch"])
    owners: list[dict[int, int]] = []  # for each subgraph: node -> the delegate that wants it
    types = sorted({node.op_name for plan in plans for node in plan})
    of_type = {name: dice.randrange(count) for name in types if dice.random() < 0.5}
    density = {"random": 0.5, "sparse": 0.1, "dense": 0.9}.get(kind, 1.0)
    bodies_too = dice.random() < 0.8
    for number, plan in enumerate(plans):
        begin, end = sorted((dice.randrange(len(plan) + 1), dice.randrange(len(plan) + 1)))
        chosen = dice.randrange(len(plan)) if plan else 0
        picked = {
            "alternating": [node for node in plan if node.index % 2],
            "types": [node for node in plan if node.op_name in of_type],
            "single": plan[chosen : chosen + 1],
            "stretch": plan[begin:end],
        }.get(kind, [node for node in plan if dice.random() < density])
        owner = {node.index: of_type[node.op_name] if kind == "types" else dice.randrange(count) for node in picked}
        owners.append(owner if number == 0 or bodies_too else {})

    def claim(delegate: int) -> Claim:
        return lambda context, node: owners[context.subgraph_index].get(node.index) == delegate

    return Way(
        kind,
        [claim(delegate) for delegate in range(count)],
        dice.random() < 0.7,
        dice.random() < 0.8,
        [not may_be_static or dice.random() < 0.6 for _ in range(count)],
        dice.random() < 0.5,
    )


def delegated(case: Case, way: Way, counts: Counter[str]) -> Interpreter:
    interpreter = Interpreter(
        model_content=case.content,
        experimental_disable_delegate_clustering=not way.cluster,
        experimental_disable_delegate_node_fusion=not way.fuse,
    )
    if way.late:
        interpreter.allocate_tensors()
    for claim, dynamic in zip(way.claims, way.dynamic):
        try:
            interpreter.modify_graph_with_delegate(Stated(claim, way, counts, dynamic=dynamic))
        except DelegateApplicationError:
            counts["refused"] += 1
    return interpreter


def sweep(case: Case, rounds: int, counts: Counter[str]) -> list[str]:
    """Delegate one model in many ways; return what went wrong."""
    plain = Interpreter(model_content=case.content)
    plans = [[subgraph.nodes[index] for index in subgraph.execution_plan] for subgraph in plain._runtime.session.subgraphs]
    if sum(map(len, plans)) < 2:
        return []
    counts["models"] += 1
    wanted = play(plain, case)
    runs = HUGE.get(case.name, rounds)
    stateful = any(not node.registration.pure for plan in plans for node in plan if node.registration is not None)
    try:
        resized = run_resized(plain, case) if case.steps[0]["signature"] is None and not stateful else None
    except OpletError:
        resized = None
    dice = random.Random(case.name)
    failures = []
    for number in range(rounds):
        way = draw_way(dice, plans, may_be_static=dice.random() < 0.7)
        counts["claim sets"] += 1
        try:
            with_delegates = delegated(case, way, counts)
            if number >= runs:
                continue
            assert_same(play(with_delegates, case), wanted, "first run")
            counts["runs"] += 1
            if resized is not None and number % 5 == 1:
                assert_same(run_resized(with_delegates, case), resized, "resized")
                counts["resized"] += 1
            if not stateful and number % 5 == 0:
                with_delegates.remove_all_delegates()
                assert_same(play(with_delegates, case), wanted, "delegates removed")
                counts["removed"] += 1
        except (OpletError, AssertionError) as error:
            failures.append(f"{case.name} {number} ({way}): {type(error).__name__}: {str(error)[:500]}")
    return failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rounds", type=int)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--only", nargs="+")
    arguments = parser.parse_args()
    part, parts = map(int, arguments.part.split("/"))
    counts: Counter[str] = Counter()
    failures: list[str] = []
    found = enumerate(case for path in sorted(arguments.folder.glob("*.zip")) for case in cases(path, arguments.only))
    for number, case in found:
        if number % parts == part:
            failures += sweep(case, arguments.rounds, counts)
    sys.stdout.write(json.dumps({"counts": counts, "failures": failures}) + "\n")


if __name__ == "__main__":
    main()
