"""Mutations of the graph's structure: inputs and outputs of subgraphs, calls, signatures, metadata."""

from __future__ import annotations

import numpy as np

from fuzz.choices import Choices
from fuzz.node_mutations import other_op
from fuzz.random_parts import flip_field, some_index, some_subgraph
from oplet.schema import options as o
from oplet.schema import stablehlo_options as h
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["MUTATIONS"]


def _borders(choices: Choices, root: tables.Model) -> None:
    """Change the inputs or outputs of a subgraph."""
    subgraph = some_subgraph(choices, root)
    name = choices.choice(("inputs", "outputs"))
    value = getattr(subgraph, name)
    items = [] if value is None else value.tolist()
    kind = choices.below(5)
    if kind == 0 and items:
        items.pop(choices.below(len(items)))
    elif kind == 1:
        items.append(some_index(choices, len(subgraph.tensors or [])))
    elif kind == 2 and items:
        items.append(items[0])
    elif items:
        items[choices.below(len(items))] = some_index(choices, len(subgraph.tensors or []))
    setattr(subgraph, name, np.array(items, np.int32))


def _calls(choices: Choices, root: tables.Model) -> None:
    """Change the subgraphs that control flow calls."""
    subgraphs = root.subgraphs or []
    found = [
        (options, field)
        for subgraph in subgraphs
        for operator in subgraph.operators or []
        for options in (operator.builtin_options, operator.builtin_options_2)
        if options is not None
        for field in options.fields
        if "subgraph" in field.name
    ]
    if found:
        options, field = choices.choice(found)
        index = some_index(choices, len(subgraphs))
        setattr(options, field.name, index if field.kind == "scalar" else np.full(1 + choices.below(3), index, field.dtype))
    elif len(subgraphs) == 1:
        root.subgraphs = [*subgraphs, decode(tables.SubGraph, memoryview(encode(subgraphs[0])))]
        other_op(choices, root)


def _subgraph_field(choices: Choices, root: tables.Model) -> None:
    flip_field(choices, some_subgraph(choices, root), 3)


def _signature(choices: Choices, root: tables.Model) -> None:
    if not root.signature_defs:
        index = some_index(choices, len(root.subgraphs or []))
        subgraph = (root.subgraphs or [tables.SubGraph()])[0]
        names = {
            role: [
                tables.TensorMap(name=f"{role}{i}", tensor_index=max(t, 0))
                for i, t in enumerate([] if value is None else value.tolist())
            ]
            for role, value in (("inputs", subgraph.inputs), ("outputs", subgraph.outputs))
        }
        root.signature_defs = [tables.SignatureDef(signature_key="serve", subgraph_index=max(index, 0), **names)]
    if choices.chance(70):
        flip_field(choices, choices.choice(root.signature_defs))


def _metadata(choices: Choices, root: tables.Model) -> None:
    entries = root.metadata = list(root.metadata or [])
    if not entries or choices.chance(30):
        name = choices.choice(("min_runtime_version", "CONTROL_DEPENDENCIES", "x", "stablehlo"))
        buffers = root.buffers = list(root.buffers or [])
        buffers.append(tables.Buffer(data=np.frombuffer(choices.raw(choices.choice((0, 1, 8, 16, 40))), np.uint8)))
        entries.append(tables.Metadata(name=name, buffer=len(buffers) - 1))
    else:
        flip_field(choices, choices.choice(entries))


def _called(choices: Choices, root: tables.Model) -> None:
    """Turn the main subgraph into one that a node calls: a branch, a loop's body, a composite's decomposition, a CALL_ONCE."""
    subgraphs = list(root.subgraphs or [])
    if not subgraphs:
        return
    main, inner = subgraphs[0], len(subgraphs)
    outer = decode(tables.SubGraph, memoryview(encode(main)))
    condition = inner + 1
    op, options = choices.choice(
        (
            (BuiltinOperator.CALL, o.CallOptions(subgraph=inner)),
            (BuiltinOperator.CALL_ONCE, o.CallOnceOptions(init_subgraph_index=inner)),
            (BuiltinOperator.IF, o.IfOptions(then_subgraph_index=inner, else_subgraph_index=inner)),
            (BuiltinOperator.WHILE, o.WhileOptions(cond_subgraph_index=condition, body_subgraph_index=inner)),
            (BuiltinOperator.STABLEHLO_WHILE, h.StablehloWhileOptions(cond_subgraph_index=condition, body_subgraph_index=inner)),
            (BuiltinOperator.STABLEHLO_CASE, h.StablehloCaseOptions(branch_subgraph_indices=np.array([inner, inner], np.int32))),
            (BuiltinOperator.STABLEHLO_COMPOSITE, h.StableHLOCompositeOptions(name="x", decomposition_subgraph_index=inner)),
        )
    )
    codes = root.operator_codes = [*(root.operator_codes or [])]
    codes.append(tables.OperatorCode(builtin_code=op, deprecated_builtin_code=min(int(op), 127)))
    given, made = ([] if ends is None else ends.tolist() for ends in (main.inputs, main.outputs))
    read = list(given)
    if op in (BuiltinOperator.IF, BuiltinOperator.STABLEHLO_CASE):
        chosen = tables.Tensor(name="chosen", shape=np.zeros(0, np.int32), type=TensorType.BOOL)
        chosen.type = TensorType.BOOL if op is BuiltinOperator.IF else TensorType.INT32
        outer.tensors = [*(outer.tensors or []), chosen]
        read.insert(0, len(outer.tensors) - 1)
        outer.inputs = np.array(read, np.int32)
    node = tables.Operator(opcode_index=len(codes) - 1, inputs=np.array(read, np.int32), outputs=np.array(made, np.int32))
    if op in (BuiltinOperator.CALL, BuiltinOperator.CALL_ONCE, BuiltinOperator.IF, BuiltinOperator.WHILE):
        node.builtin_options = options
    else:
        node.builtin_options_2 = options
    if op is BuiltinOperator.CALL_ONCE and choices.chance(70):
        node.inputs = node.outputs = np.zeros(0, np.int32)
        outer.operators = [node, *(outer.operators or [])]
    else:
        outer.operators = [node]
    root.subgraphs = [outer, *subgraphs[1:], main]
    if condition == inner + 1 and op in (BuiltinOperator.WHILE, BuiltinOperator.STABLEHLO_WHILE):
        root.subgraphs.append(_condition(choices, root, main))


def _condition(choices: Choices, root: tables.Model, body: tables.SubGraph) -> tables.SubGraph:
    """A loop's condition: a constant, or a value that is an input."""
    given = [] if body.inputs is None else [index for index in body.inputs.tolist() if 0 <= index < len(body.tensors or [])]
    arguments = [(body.tensors or [])[index] for index in given]
    buffers = root.buffers = list(root.buffers or [tables.Buffer()])
    buffers.append(tables.Buffer(data=np.array([choices.chance(30)], np.uint8)))
    answer = tables.Tensor(name="again", shape=np.zeros(0, np.int32), type=TensorType.BOOL, buffer=len(buffers) - 1)
    return tables.SubGraph(
        tensors=[*(tables.Tensor(shape=t.shape, type=t.type) for t in arguments), answer],
        inputs=np.arange(len(arguments), dtype=np.int32),
        outputs=np.array([len(arguments)], np.int32),
        operators=[],
    )


def _several_signatures(choices: Choices, root: tables.Model) -> None:
    """Add a signature for every subgraph, or several; tensors may be missing, or share a name."""
    made = []
    for index, subgraph in enumerate((root.subgraphs or [])[:6]):
        for key in choices.choice((("a",), ("a", "b"), ("serving_default",))):
            names = {
                role: [
                    tables.TensorMap(name=f"{role[:2]}{0 if choices.chance(3) else i}", tensor_index=max(t, 0))
                    for i, t in enumerate([] if value is None else value.tolist())
                    if not choices.chance(3)
                ]
                for role, value in (("inputs", subgraph.inputs), ("outputs", subgraph.outputs))
            }
            made.append(tables.SignatureDef(signature_key=f"{key}{index}", subgraph_index=index, **names))
    root.signature_defs = made


#: The mutations; repeated ones are chosen more often.
MUTATIONS = (
    *[_borders] * 2, *[_calls] * 2, *[_subgraph_field] * 1, *[_signature] * 1, *[_metadata] * 1, *[_called] * 2,
    *[_several_signatures] * 2,
)  # fmt: skip
