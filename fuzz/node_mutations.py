"""Mutations of nodes: operators, versions, options, inputs and outputs."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fuzz import byte_mutations, edge_values
from fuzz.choices import Choices
from fuzz.random_parts import flip_field, fresh, some_index, some_operator, some_subgraph
from oplet.model.builders.operator_options import options_class
from oplet.model.save.packing import pack_flexbuffer
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator
from oplet.schema.options import BuiltinOptions
from oplet.schema.stablehlo_options import BuiltinOptions2
from oplet.schema.table import Table

__all__ = ["MUTATIONS", "other_op", "set_options"]


def _options(choices: Choices, root: tables.Model) -> None:
    operator = some_operator(choices, root)
    options = operator.builtin_options or operator.builtin_options_2
    if options is not None:
        flip_field(choices, options)
    else:
        flip_field(choices, operator)


def _new_options(choices: Choices, root: tables.Model) -> None:
    operator = some_operator(choices, root)
    codes = root.operator_codes or []
    cls: type[Table] | None = None
    if operator.opcode_index < len(codes):
        number = max(int(codes[operator.opcode_index].builtin_code), codes[operator.opcode_index].deprecated_builtin_code)
        cls = options_class(BuiltinOperator(number)) if number in _OPERATORS else None
    if cls is None or choices.chance(15):
        cls = choices.choice(_all_options())
    set_options(choices, operator, cls)


def set_options(choices: Choices, operator: tables.Operator, cls: type[Table] | None) -> None:
    operator.builtin_options = operator.builtin_options_2 = None
    if cls is not None:
        options = fresh(choices, cls)
        if cls in _second_options():
            operator.builtin_options_2 = options
        else:
            operator.builtin_options = options


_OPERATORS = frozenset(int(op) for op in BuiltinOperator)


@cache
def _all_options() -> list[type[Table]]:
    return [*BuiltinOptions.values(), *BuiltinOptions2.values()]


@cache
def _second_options() -> frozenset[type[Table]]:
    return frozenset(BuiltinOptions2.values())


def other_op(choices: Choices, root: tables.Model) -> None:
    """Replace a node's operator, with options of the new one's type."""
    codes = root.operator_codes = list(root.operator_codes or [])
    op = choices.choice(list(BuiltinOperator))
    codes.append(
        tables.OperatorCode(
            builtin_code=op, deprecated_builtin_code=min(int(op), 127), version=choices.choice((1, 1, 2, 3, 4, 5, 6, 7))
        )
    )
    operator = some_operator(choices, root)
    operator.opcode_index = len(codes) - 1
    if choices.chance(80):
        set_options(choices, operator, options_class(op))


def _version(choices: Choices, root: tables.Model) -> None:
    if root.operator_codes:
        code = choices.choice(root.operator_codes)
        if choices.chance(70):
            code.version = 1 + choices.below(12)
        else:
            flip_field(choices, code)


def _node_tensors(choices: Choices, root: tables.Model) -> None:
    """Change a node's inputs or outputs."""
    subgraph = some_subgraph(choices, root)
    if not subgraph.operators:
        return
    operator = choices.choice(subgraph.operators)
    name = choices.choice(("inputs", "inputs", "inputs", "outputs", "intermediates"))
    value = getattr(operator, name)
    items = [] if value is None else value.tolist()
    count = len(subgraph.tensors or [])
    kind = choices.below(7)
    if kind == 0 and items:
        items[choices.below(len(items))] = -1
    elif kind == 1 and items:
        items.pop()
    elif kind == 2:
        items.append(some_index(choices, count))
    elif kind == 3 and len(items) > 1:
        items.reverse()
    elif kind == 4 and items:
        items = [items[0]] * len(items)
    elif items:
        items[choices.below(len(items))] = some_index(choices, count)
    setattr(operator, name, np.array(items, np.int32))


def _nodes(choices: Choices, root: tables.Model) -> None:
    """Drop, duplicate, or reorder nodes."""
    subgraph = some_subgraph(choices, root)
    operators = list(subgraph.operators or [])
    if not operators:
        return
    kind = choices.below(4)
    at = choices.below(len(operators))
    if kind == 0:
        del operators[at]
    elif kind == 1:
        operators.insert(choices.below(len(operators) + 1), operators[at])
    elif kind == 2:
        other = choices.below(len(operators))
        operators[at], operators[other] = operators[other], operators[at]
    else:
        operators.reverse()
    subgraph.operators = operators


def _chain(choices: Choices, root: tables.Model) -> None:
    """Add a node that reads the outputs of another one."""
    subgraph = some_subgraph(choices, root)
    tensors, operators = subgraph.tensors, subgraph.operators
    outputs = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    if not tensors or operators is None or not outputs or not 0 <= outputs[0] < len(tensors):
        return
    source = tensors[outputs[0]]
    subgraph.tensors = [
        *tensors,
        tables.Tensor(name="after", shape=source.shape, type=source.type, quantization=source.quantization),
    ]
    operand = [outputs[0]] * (1 + choices.below(3))
    subgraph.operators = [
        *operators, tables.Operator(inputs=np.array(operand, np.int32), outputs=np.array([len(tensors)], np.int32))
    ]  # fmt: skip
    subgraph.outputs = np.array([*outputs[1:], len(tensors)], np.int32)
    last = subgraph.operators[-1]
    codes = root.operator_codes = list(root.operator_codes or [])
    op = choices.choice(list(BuiltinOperator))
    codes.append(tables.OperatorCode(builtin_code=op, deprecated_builtin_code=min(int(op), 127), version=1 + choices.below(3)))
    last.opcode_index = len(codes) - 1
    set_options(choices, last, options_class(op))


def _custom_options(choices: Choices, root: tables.Model) -> None:
    operator = some_operator(choices, root)
    if operator.custom_options is not None and operator.custom_options.size and choices.chance(70):
        data = operator.custom_options.tobytes()
        operator.custom_options = np.frombuffer(byte_mutations.damage(data, choices), np.uint8)
    elif choices.chance(50):
        operator.custom_options = np.frombuffer(choices.raw(1 + choices.below(64)), np.uint8)
    else:
        operator.large_custom_options_offset = edge_values.int_value(choices, 0, 2**64 - 1)
        operator.large_custom_options_size = edge_values.int_value(choices, 0, 2**64 - 1)


#: Custom ops that packages of this repository serve, and an unknown one.
_CUSTOM = (
    "Atan", "AudioSpectrogram", "Convolution2DTransposeBias", "Landmarks2TransformMatrix", "MaxPoolingWithArgmax2D",
    "MaxUnpooling2D", "Mfcc", "Nobody", "NumericVerify", "SignalDelay", "SignalEnergy", "SignalFftAutoScale", "SignalFilterBank",
    "SignalFilterBankLog", "SignalFilterBankSpectralSubtraction", "SignalFilterBankSquareRoot", "SignalFramer", "SignalIrfft",
    "SignalOverlapAdd", "SignalPCAN", "SignalRfft", "SignalStacker", "SignalWindow", "TFLite_Detection_PostProcess",
    "TransformLandmarks", "TransformTensor", "TransformTensorBilinear", "aeq.hadamard_rotation",
)  # fmt: skip

_KEYS = (
    "T", "axis", "block_size", "fft_length", "frame_size", "frame_step", "num_channels", "max_detections", "max_classes_per_detection",
    "nms_iou_threshold", "num_classes", "x_scale", "y_scale", "delay_length", "shift", "padding", "stride_w", "hadamard_size",
)  # fmt: skip


def _custom_op(choices: Choices, root: tables.Model) -> None:
    """Turn a node into a custom op, with a FlexBuffers map of options that may be valid."""
    operator = some_operator(choices, root)
    codes = root.operator_codes = list(root.operator_codes or [])
    if choices.chance(60):
        codes.append(
            tables.OperatorCode(
                builtin_code=BuiltinOperator.CUSTOM,
                deprecated_builtin_code=int(BuiltinOperator.CUSTOM),
                custom_code=choices.choice(_CUSTOM),
            )
        )
        operator.opcode_index = len(codes) - 1
        operator.builtin_options = operator.builtin_options_2 = None
    options = {choices.choice(_KEYS): _flexible(choices) for _ in range(choices.below(6))}
    operator.custom_options = np.frombuffer(pack_flexbuffer(options), np.uint8)


def _flexible(choices: Choices, depth: int = 0) -> Any:
    """A random FlexBuffers value."""
    kind = choices.below(9 if depth < 3 else 6)
    if kind <= 2:
        return edge_values.small_int(choices)
    if kind == 3:
        return edge_values.int_value(choices, -(2**63), 2**63 - 1)
    if kind == 4:
        return edge_values.float_value(choices)
    if kind == 5:
        return choices.choice(("", "SAME", "x" * 40, True, None, b"\xff\0"))
    inner = [_flexible(choices, depth + 1) for _ in range(choices.below(5))]
    return inner if kind < 8 else {choices.choice(_KEYS): value for value in inner}


#: The mutations; repeated ones are chosen more often.
MUTATIONS = (
    *[_options] * 6, *[_new_options] * 2, *[other_op] * 4, *[_version] * 1, *[_node_tensors] * 4, *[_nodes] * 2, *[_chain] * 2,
    *[_custom_options] * 1, *[_custom_op] * 1,
)  # fmt: skip
