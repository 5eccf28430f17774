"""Mutations that combine: two models spliced into one, and chains of nodes."""

from __future__ import annotations

import numpy as np

from fuzz.choices import Choices
from fuzz.node_mutations import set_options
from fuzz.random_parts import some_subgraph
from oplet.model.builders.operator_options import options_class
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator

__all__ = ["chained", "spliced"]

_Op = BuiltinOperator

#: Operators that accept almost any tensors of one type, of which chains mostly consist.
_COMMON = (
    _Op.ADD, _Op.MUL, _Op.SUB, _Op.NEG, _Op.RELU, _Op.LOGISTIC, _Op.TANH, _Op.RESHAPE, _Op.CONCATENATION, _Op.SOFTMAX, _Op.ABS,
    _Op.MAXIMUM, _Op.MINIMUM, _Op.SQUARED_DIFFERENCE, _Op.CAST, _Op.QUANTIZE, _Op.DEQUANTIZE, _Op.SHAPE, _Op.PACK, _Op.DIV,
    _Op.EXP, _Op.SQUARE, _Op.RSQRT, _Op.GELU, _Op.HARD_SWISH, _Op.LEAKY_RELU, _Op.SUM, _Op.MEAN, _Op.TRANSPOSE, _Op.EQUAL,
    _Op.SELECT_V2, _Op.SQUEEZE, _Op.EXPAND_DIMS, _Op.TILE, _Op.GATHER, _Op.SLICE, _Op.FLOOR_DIV, _Op.POW, _Op.L2_NORMALIZATION,
)  # fmt: skip


def chained(choices: Choices, root: tables.Model) -> None:
    """Append two to eight nodes; each reads existing tensors, among them the output of the node before it."""
    subgraph = some_subgraph(choices, root)
    tensors, operators = list(subgraph.tensors or []), list(subgraph.operators or [])
    outputs = [] if subgraph.outputs is None else [index for index in subgraph.outputs.tolist() if 0 <= index < len(tensors)]
    if not outputs or len(tensors) > 500:
        return
    codes = root.operator_codes = list(root.operator_codes or [])
    last = outputs[0]
    for _ in range(2 + choices.below(7)):
        op = choices.choice(_COMMON) if choices.chance(80) else choices.choice(list(BuiltinOperator))
        codes.append(
            tables.OperatorCode(builtin_code=op, deprecated_builtin_code=min(int(op), 127), version=1 + choices.below(3))
        )
        source = tensors[last]
        alike = [i for i, tensor in enumerate(tensors) if tensor.type == source.type]
        read = [last] + [choices.choice(alike) if choices.chance(60) else last for _ in range(choices.below(3))]
        made = tables.Tensor(name=f"link{len(tensors)}", shape=source.shape, type=source.type, quantization=source.quantization)
        tensors.append(made)
        node = tables.Operator(opcode_index=len(codes) - 1, inputs=np.array(read, np.int32))
        node.outputs = np.array([len(tensors) - 1], np.int32)
        set_options(choices, node, options_class(op))
        operators.append(node)
        last = len(tensors) - 1
    subgraph.tensors, subgraph.operators = tensors, operators
    kept = outputs if choices.chance(40) else outputs[1:]
    subgraph.outputs = np.array([*kept, last], np.int32)


def spliced(choices: Choices, root: tables.Model, other: tables.Model) -> None:
    """Append another model's subgraphs; mostly its main subgraph is merged into ours, which feeds it."""
    subgraphs, others = list(root.subgraphs or []), list(other.subgraphs or [])
    if not subgraphs or not others:
        return
    _moved(root, other, len(subgraphs))
    root.buffers = [*(root.buffers or [tables.Buffer()]), *(other.buffers or [tables.Buffer()])]
    root.operator_codes = [*(root.operator_codes or []), *(other.operator_codes or [])]
    root.subgraphs = [*subgraphs, *others]
    if choices.chance(80):
        _merge(choices, subgraphs[0], others[0])


def _moved(root: tables.Model, other: tables.Model, subgraphs: int) -> None:
    """Renumber the other model's indices for their new positions."""
    buffers, codes = len(root.buffers or [0]), len(root.operator_codes or [])
    for subgraph in other.subgraphs or []:
        for tensor in subgraph.tensors or []:
            tensor.buffer += buffers if tensor.buffer else 0
        for operator in subgraph.operators or []:
            operator.opcode_index += codes
            for options in (operator.builtin_options, operator.builtin_options_2):
                for field in options.fields if options is not None else ():
                    value = getattr(options, field.name)
                    if "subgraph" not in field.name or value is None:
                        continue
                    if field.kind == "vector" or value >= 0:
                        setattr(options, field.name, value + subgraphs)


def _merge(choices: Choices, first: tables.SubGraph, second: tables.SubGraph) -> None:
    """Append the nodes of the second subgraph to the first, whose tensors of the same type feed them."""
    tensors, added = list(first.tensors or []), list(second.tensors or [])
    start = len(tensors)
    places = list(range(start, start + len(added)))
    given = [] if second.inputs is None else [index for index in second.inputs.tolist() if 0 <= index < len(added)]
    ends = [index for ends in (first.outputs, first.inputs) if ends is not None for index in ends.tolist() if 0 <= index < start]
    fed = []
    for index in given:
        alike = [end for end in ends if tensors[end].type == added[index].type]
        if alike and choices.chance(85):
            places[index] = choices.choice(alike)
            if choices.chance(60):
                tensors[places[index]].shape = added[index].shape
        else:
            fed.append(places[index])
    nodes = []
    for operator in second.operators or []:
        node = tables.Operator(**{field.name: getattr(operator, field.name) for field in operator.fields})
        for name in ("inputs", "outputs", "intermediates"):
            value = getattr(operator, name)
            if value is not None:
                moved = [places[index] if 0 <= index < len(places) else index for index in value.tolist()]
                setattr(node, name, np.array(moved, np.int32))
        nodes.append(node)
    made = [] if second.outputs is None else [places[i] for i in second.outputs.tolist() if 0 <= i < len(places)]
    first.tensors = tensors + added
    first.operators = [*(first.operators or []), *nodes]
    first.inputs = np.array([*([] if first.inputs is None else first.inputs.tolist()), *fed], np.int32)
    first.outputs = np.array([*([] if first.outputs is None else first.outputs.tolist()), *made], np.int32)
