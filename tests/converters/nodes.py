"""Where a model departs from LiteRT: each node alone, fed the values that LiteRT's own nodes before it gave.

A net whose last bit of a float decides a quantized value a few layers later is judged so: what matters is that every node is
equal when it is given the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import flatbuffers
import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.differential.worker import forked

import oplet

from .cases import Array, Case, Step
from .engines import engine
from .files import opened, operator_name
from .grading import RANKS, Verdict, grade_output
from .oracle import WAYS, Oracle
from .running import run

__all__ = ["Departure", "departures", "isolated", "nodes_of"]


class Departure(NamedTuple):
    """A node that is not equal to any of LiteRT's ways.

    Attributes:
        step: number of the run; subgraph, node: where it stands; op: its operator.
        verdict: of the worst output.
    """

    step: int
    subgraph: int
    node: int
    op: str
    verdict: Verdict


class _Isolated(NamedTuple):
    model: bytes
    inputs: list[int]
    outputs: list[int]


def _constant(tables: Any, tensor: Any) -> bool:
    buffer = tables.buffers[tensor.buffer]
    return (buffer.data is not None and len(buffer.data) > 0) or bool(buffer.offset) or bool(tensor.externalBuffer)


def isolated(model: bytes, subgraph: int, node: int) -> _Isolated:
    """A model of one node, and of those before it whose inputs are all constant; its inputs are what else it reads."""
    tables = opened(model)
    graph = tables.subgraphs[subgraph]
    made = {int(out): number for number, op in enumerate(graph.operators) for out in op.outputs}
    fixed: dict[int, bool] = {}

    def known(index: int) -> bool:
        """Whether a tensor does not depend on the graph's inputs."""
        if index not in fixed:
            if index < 0 or index not in made:
                fixed[index] = index < 0 or _constant(tables, graph.tensors[index])
            else:
                fixed[index] = all(known(int(read)) for read in graph.operators[made[index]].inputs)
        return fixed[index]

    wanted, waiting = {node}, [int(i) for i in graph.operators[node].inputs]
    while waiting:
        index = waiting.pop()
        if index in made and known(index) and made[index] not in wanted:
            wanted.add(made[index])
            waiting += [int(i) for i in graph.operators[made[index]].inputs]
    reads = [int(i) for i in graph.operators[node].inputs]
    inputs = [i for i in dict.fromkeys(reads) if i >= 0 and not known(i) and not graph.tensors[i].isVariable]
    graph.operators = [graph.operators[number] for number in sorted(wanted)]
    outputs = [int(i) for i in graph.operators[-1].outputs]
    graph.inputs, graph.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
    used = {int(i) for op in graph.operators for i in [*op.inputs, *op.outputs] if i >= 0}
    for tensor in graph.tensors:  # blocks have their scales in a tensor that no operator names
        details = getattr(tensor.quantization, "details", None)
        used |= {details.scales} if hasattr(details, "scales") else set()
    tables.subgraphs[0] = graph
    signatures = {found.subgraphIndex for found in tables.signatureDefs or []} | {0}
    others = {t.buffer for number, g in enumerate(tables.subgraphs) if number not in signatures for t in g.tensors}
    kept = {graph.tensors[i].buffer for i in used} | others
    for number, buffer in enumerate(tables.buffers):
        if number not in kept:
            buffer.data = None
    for number in signatures - {0}:
        other = tables.subgraphs[number]
        other.operators, other.inputs, other.outputs = [], [], []
    tables.signatureDefs, tables.metadata = None, None
    called = [op for number, g in enumerate(tables.subgraphs) if number not in signatures - {0} for op in g.operators]
    codes = sorted({op.opcodeIndex for op in called})  # LiteRT refuses a file for a code that none of its kernels serves
    tables.operatorCodes = [tables.operatorCodes[code] for code in codes]
    for op in called:
        op.opcodeIndex = codes.index(op.opcodeIndex)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(tables.Pack(builder), b"TFL3")
    return _Isolated(bytes(builder.Output()), inputs, outputs)


def nodes_of(model: bytes) -> Iterator[tuple[int, int, str]]:
    """The nodes of the subgraphs that signatures run: subgraph, number, operator."""
    tables = opened(model)
    for number in sorted({found.subgraphIndex for found in tables.signatureDefs or []} or {0}):
        for place, op in enumerate(tables.subgraphs[number].operators):
            yield number, place, operator_name(tables.operatorCodes[op.opcodeIndex])


def _values(case: Case, step: Step) -> dict[tuple[int, int], Array]:
    """Each tensor's value, by subgraph and index, as LiteRT's own kernels give it; as oplet does where they run not."""
    tables = opened(case.model)
    graph = next((f.subgraphIndex for f in tables.signatureDefs or [] if f.signatureKey.decode() == step.signature), 0)

    def read(interpreter: Any) -> dict[tuple[int, int], Array]:
        interpreter.allocate_tensors()
        if step.signature is None:
            for detail, value in zip(interpreter.get_input_details(), step.inputs.values()):
                interpreter.resize_tensor_input(detail["index"], value.shape)
            interpreter.allocate_tensors()
            for detail, value in zip(interpreter.get_input_details(), step.inputs.values()):
                interpreter.set_tensor(detail["index"], value)
            interpreter.invoke()
        else:
            interpreter.get_signature_runner(step.signature)(**step.inputs)
        found = {}
        for index in range(len(tables.subgraphs[graph].tensors)):
            try:
                found[graph, index] = np.array(interpreter.get_tensor(index, graph))
            except (ValueError, RuntimeError):
                continue
        return found

    def asked(way: str) -> Any:
        resolver = OpResolverType[WAYS[way]]
        try:
            return read(
                Interpreter(
                    model_content=case.model, experimental_op_resolver_type=resolver, experimental_preserve_all_tensors=True
                )
            )
        except Exception:
            return None

    for way in ("opt", "ref"):
        kind, result = forked(partial(asked, way), 120)
        if kind == "ran" and result is not None:
            values: dict[tuple[int, int], Array] = result
            return values
    return read(oplet.Interpreter(model_content=case.model, experimental_preserve_all_tensors=True))


def departures(
    case: Case, oracle: Oracle, engines: tuple[str, ...] = ("numpy", "compiled"), steps: int = 1
) -> Iterator[Departure]:
    """The nodes of a case's first steps that are not equal to one of LiteRT's ways when they are given the same."""
    nodes = list(nodes_of(case.model))
    tables = opened(case.model)
    graphs = {found.signatureKey.decode(): found.subgraphIndex for found in tables.signatureDefs or []}
    for number, step in enumerate(case.steps[:steps] if len(graphs) < 2 else case.steps):
        values = _values(case, step)
        for subgraph, node, op in nodes:
            if subgraph != graphs.get(step.signature or "", 0):
                continue
            alone = isolated(case.model, subgraph, node)
            if any((subgraph, index) not in values for index in alone.inputs):
                continue
            fed = Step({str(place): values[subgraph, index] for place, index in enumerate(alone.inputs)})
            yield from _judge(alone, fed, oracle, engines, (number, subgraph, node, op))


def _judge(
    alone: _Isolated, fed: Step, oracle: Oracle, engines: tuple[str, ...], where: tuple[int, int, int, str]
) -> Iterator[Departure]:
    answers = [answer for way in WAYS if not isinstance(answer := oracle.ask(alone.model, [fed], way), str)]
    for name in engines:
        try:
            [found] = run(engine(name), alone.model, [fed])
        except Exception as error:
            if answers:
                yield Departure(*where, Verdict("refused", f"{name}: {' '.join(str(error).split())[:200]}"))
            continue
        verdicts = [grade_output(got, [answer[0][key] for answer in answers]) for key, got in found.items()]
        worst = max(verdicts, key=lambda verdict: RANKS.index(verdict.rank))
        if worst.rank != "equal":
            yield Departure(*where, Verdict(worst.rank, f"{name}: {worst.detail}"))
