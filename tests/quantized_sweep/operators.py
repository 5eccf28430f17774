"""The operators that the sweep knows: what they take, what they give, and which quantization of it they insist on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode, Padding, TensorType
from oplet.schema.table import Table

from .conditions import Condition, conditions
from .draft import Draft, Net, Quantized, values

INT8, UINT8, INT16 = "int8", "uint8", "int16"
ALL = (INT8, UINT8, INT16)
EIGHT = (INT8, UINT8)
SHAPE = (1, 4, 4, 8)
FOLLOWERS = ("DEQUANTIZE", "MEAN", "QUANTIZE", "ADD", "CONCATENATION", "FULLY_CONNECTED", "AVERAGE_POOL_2D")


@dataclass
class Operator:
    """One operator on activations alone.

    Attributes:
        types: the types that it takes.
        inputs: how many activations.
        shape: of the output; () for the input's.
        options: its options.
        constants: what stands behind the activations.
        before: whether the constants stand before them.
        keeps: whether the output has the input's quantization.
        gives: the output's quantization where the operator insists on one, by type.
        result: the output's type where it is no quantized one.
        constant: whether the second input is constant.
        outputs: how many.
        least: how far above the zero point values of the last input have to be.
        source: the shape of the inputs.
    """

    types: tuple[str, ...] = ALL
    inputs: int = 1
    shape: tuple[int, ...] = SHAPE
    options: Table | None = None
    constants: tuple[Any, ...] = ()
    before: bool = False
    keeps: bool = False
    gives: dict[str, Quantized] | None = None
    result: str = ""
    constant: bool = False
    outputs: int = 1
    least: int | None = None
    source: tuple[int, ...] = SHAPE


def _i32(*numbers: Any) -> np.ndarray[Any, Any]:
    return np.array(numbers, np.int32)


def _pool(code: int = 0) -> o.Pool2DOptions:
    return o.Pool2DOptions(
        stride_w=1, stride_h=1, filter_width=2, filter_height=3, padding=Padding.SAME,
        fused_activation_function=ActivationFunctionType(code),
    )  # fmt: skip


def _activation(code: int) -> ActivationFunctionType:
    return ActivationFunctionType(code)


_REDUCED = (1, 4, 4)
#: Of scales below it a bound of RELU6 is beyond int32.
_FINEST = 6 / 2**31
#: Kernels of which LiteRT has no reference form, so that its ways with a follower have little in common.
_ALONE = ("ELU",)
#: Beyond it LiteRT's ways of FULLY_CONNECTED differ among themselves.
_LARGEST = 1e4
_REDUCER = {"shape": _REDUCED, "options": o.ReducerOptions(), "constants": (_i32(3),)}
_MOVED = {"keeps": True}
_COMPARED = {"inputs": 2, "result": "bool"}
_UNIT = {INT8: Quantized(1 / 256, -128), UINT8: Quantized(1 / 256, 0), INT16: Quantized(1 / 32768, 0)}
_SIGNED_UNIT = {INT8: Quantized(1 / 128, 0), UINT8: Quantized(1 / 128, 128), INT16: Quantized(1 / 32768, 0)}
_LOGARITHM = {INT8: Quantized(16 / 256, 127), UINT8: Quantized(16 / 256, 255), INT16: Quantized(16 / 65536, 0)}

OPERATORS: dict[str, Operator] = {
    "ABS": Operator((INT8, INT16)),
    "NEG": Operator((INT8, INT16)),
    "RELU": Operator(), "RELU6": Operator(), "RELU_N1_TO_1": Operator(), "RELU_0_TO_1": Operator(),
    "LOGISTIC": Operator(gives=_UNIT), "TANH": Operator(gives=_SIGNED_UNIT),
    "HARD_SWISH": Operator(EIGHT), "LEAKY_RELU": Operator(options=o.LeakyReluOptions(alpha=0.3)),
    "ELU": Operator((INT8,)), "GELU": Operator(EIGHT, options=o.GeluOptions()),
    "GELU approximate": Operator(EIGHT, options=o.GeluOptions(approximate=True)), "EXP": Operator((INT8, INT16)),
    "SQRT": Operator((INT8, INT16), least=0), "RSQRT": Operator((INT8, INT16), least=1), "LOG": Operator((INT8, INT16)),
    "SOFTMAX": Operator(options=o.SoftmaxOptions(beta=1.0), gives=_UNIT),
    "SOFTMAX to int16": Operator((INT8,), options=o.SoftmaxOptions(beta=1.0), gives=_UNIT, result=INT16),
    "LOG_SOFTMAX": Operator(gives=_LOGARITHM),
    "L2_NORMALIZATION": Operator(EIGHT, options=o.L2NormOptions(), gives=_SIGNED_UNIT),
    "QUANTIZE": Operator(), "QUANTIZE to int16": Operator(EIGHT, result=INT16), "QUANTIZE from int16": Operator((INT16,), result=INT8),
    "QUANTIZE swapping": Operator((INT8,), result=UINT8), "QUANTIZE from floats": Operator(("float32",), result=INT8), "QUANTIZE from floats to uint8": Operator(("float32",), result=UINT8),
    "QUANTIZE from floats to int16": Operator(("float32",), result=INT16), "DEQUANTIZE": Operator(result="float32"),
    "RESHAPE": Operator(shape=(1, 16, 8), constants=(_i32(1, 16, 8),), options=o.ReshapeOptions(new_shape=_i32(1, 16, 8)), **_MOVED),
    "TRANSPOSE": Operator(shape=(1, 4, 8, 4), constants=(_i32(0, 1, 3, 2),), **_MOVED),
    "PAD": Operator(shape=(1, 6, 6, 8), constants=(_i32((0, 0), (1, 1), (1, 1), (0, 0)),), **_MOVED),
    "MIRROR_PAD": Operator(shape=(1, 6, 6, 8), constants=(_i32((0, 0), (1, 1), (1, 1), (0, 0)),),
                           options=o.MirrorPadOptions(mode=MirrorPadMode.REFLECT), **_MOVED),
    "SLICE": Operator(shape=(1, 2, 2, 8), constants=(_i32(0, 1, 1, 0), _i32(1, 2, 2, 8)), **_MOVED),
    "STRIDED_SLICE": Operator(shape=(1, 2, 4, 8), constants=(_i32(0, 0, 0, 0), _i32(1, 4, 4, 8), _i32(1, 2, 1, 1)),
                              options=o.StridedSliceOptions(), **_MOVED),
    "GATHER": Operator(shape=(1, 4, 4, 2), constants=(_i32(7, 1),), options=o.GatherOptions(axis=3), **_MOVED),
    "TILE": Operator(shape=(1, 4, 4, 16), constants=(_i32(1, 1, 1, 2),), **_MOVED),
    "SPACE_TO_DEPTH": Operator(EIGHT, shape=(1, 2, 2, 32), options=o.SpaceToDepthOptions(block_size=2), **_MOVED),
    "REVERSE_V2": Operator(constants=(_i32(3),), **_MOVED),
    "RESIZE_BILINEAR": Operator(shape=(1, 7, 7, 8), constants=(_i32(7, 7),), options=o.ResizeBilinearOptions(), **_MOVED),
    "RESIZE_NEAREST_NEIGHBOR": Operator(shape=(1, 7, 7, 8), constants=(_i32(7, 7),), options=o.ResizeNearestNeighborOptions(), **_MOVED),
    "SPLIT": Operator(shape=(1, 4, 4, 4), constants=(np.array(3, np.int32),), before=True, outputs=2, options=o.SplitOptions(num_splits=2), **_MOVED),
    "MAX_POOL_2D": Operator(options=_pool(), **_MOVED), "AVERAGE_POOL_2D": Operator(options=_pool(), **_MOVED),
    "MAX_POOL_2D RELU6": Operator(options=_pool(3)), "AVERAGE_POOL_2D RELU": Operator(options=_pool(1)),
    "MEAN": Operator(**_REDUCER), "SUM": Operator(**_REDUCER), "REDUCE_PROD": Operator((INT8, INT16), **_REDUCER),
    "MEAN of maps": Operator(shape=(1, 8), options=o.ReducerOptions(), constants=(_i32(1, 2),)),
    "MEAN of maps kept": Operator(shape=(1, 1, 1, 8), options=o.ReducerOptions(keep_dims=True), constants=(_i32(1, 2),)),
    "REDUCE_MAX": Operator(**_REDUCER, keeps=True), "REDUCE_MIN": Operator(**_REDUCER, keeps=True),
    "ARG_MAX": Operator(EIGHT, shape=_REDUCED, constants=(np.array(3, np.int32),), options=o.ArgMaxOptions(output_type=TensorType.INT64), result="int64"),
    "ADD": Operator(inputs=2, options=o.AddOptions()), "SUB": Operator(inputs=2, options=o.SubOptions()),
    "MUL": Operator(inputs=2, options=o.MulOptions()), "DIV": Operator((UINT8,), inputs=2, options=o.DivOptions(), least=1),
    "ADD RELU": Operator(inputs=2, options=o.AddOptions(fused_activation_function=_activation(1))),
    "ADD RELU6": Operator(inputs=2, options=o.AddOptions(fused_activation_function=_activation(3))),
    "SUB RELU": Operator(inputs=2, options=o.SubOptions(fused_activation_function=_activation(1))),
    "MUL RELU_N1_TO_1": Operator(inputs=2, options=o.MulOptions(fused_activation_function=_activation(2))),
    "ADD constant": Operator(inputs=2, options=o.AddOptions(), constant=True),
    "SUB constant": Operator(inputs=2, options=o.SubOptions(), constant=True),
    "MUL constant": Operator(inputs=2, options=o.MulOptions(), constant=True),
    "SQUARED_DIFFERENCE": Operator((INT8,), inputs=2),
    "MAXIMUM": Operator(inputs=2, keeps=True), "MINIMUM": Operator(inputs=2, keeps=True),
    "PRELU": Operator(EIGHT, inputs=2, constant=True),
    "EQUAL": Operator(EIGHT, **_COMPARED), "NOT_EQUAL": Operator(EIGHT, **_COMPARED), "LESS": Operator(ALL, **_COMPARED),
    "LESS_EQUAL": Operator(EIGHT, **_COMPARED), "GREATER": Operator(EIGHT, **_COMPARED), "GREATER_EQUAL": Operator(EIGHT, **_COMPARED),
    "CONCATENATION": Operator(inputs=2, shape=(1, 4, 4, 16), options=o.ConcatenationOptions(axis=3)),
    "PACK": Operator(inputs=2, shape=(2, 1, 4, 4, 8), options=o.PackOptions(values_count=2), keeps=True),
    "BATCH_MATMUL": Operator((INT8, INT16), inputs=2, shape=(1, 4, 4, 4), options=o.BatchMatMulOptions(adj_y=True)),
}  # fmt: skip


def _clamps_beyond(label: str) -> bool:
    """Whether a bound of the fused activation may be beyond int32."""
    return "POOL_2D RELU" in label or label.endswith((" RELU6", " RELU_N1_TO_1"))


def _shifts_left(condition: Condition) -> bool:
    """Whether the output of a SUB of int16 is so fine that sums are shifted to the left."""
    largest = max(quantized.scale for quantized in condition.inputs)
    return 2 * largest >= 2**15 * condition.output.scale


def nets_of(label: str) -> Iterator[Callable[[], Net | None]]:
    """What makes the nets of an operator on activations, all of them."""
    operator = OPERATORS[label]
    for type in operator.types:
        for number, condition in enumerate(conditions(INT8 if type == "float32" else type, operator.inputs)):
            if _clamps_beyond(label) and condition.output.scale < _FINEST:
                continue  # LiteRT's pools clamp to what is in memory, and of its ways XNNPACK alone may run the rest
            if label.startswith("SUB") and type == INT16 and _shifts_left(condition):
                continue  # which C++ leaves undefined, and the compiler makes different things of
            if operator.result == "bool" and min(quantized.scale for quantized in condition.inputs) > 1e38:
                continue  # shifts that C++ leaves undefined
            if type == "float32" and condition.inputs[0].scale != 0.05:
                continue
            if operator.gives and number and condition.output.scale != condition.inputs[0].scale:
                continue
            if (operator.keeps or operator.result in ("bool", "int64", "float32")) and condition.output.scale != 0.05:
                continue
            yield partial(one_net, label, operator, type, condition, "")
            if number % 3 == 0 and not operator.result and operator.outputs == 1 and label not in _ALONE:
                follower = FOLLOWERS[(number // 3) % len(FOLLOWERS)]
                if (
                    follower == "FULLY_CONNECTED"
                    and (condition.inputs[0] if operator.keeps else condition.output).scale > _LARGEST
                ):
                    continue
                if follower != "AVERAGE_POOL_2D" or len(operator.shape) == 4:
                    yield partial(one_net, label, operator, type, condition, follower)


def one_net(label: str, operator: Operator, type: str, condition: Condition, follower: str) -> Net:
    """The net of one operator under one condition."""
    draft = Draft()
    op = label.split()[0]
    first, other = condition.inputs
    if operator.keeps:
        other = first
    activations = [
        draft.fed_tensor(
            type, operator.source, None if type == "float32" else first, operator.least if operator.inputs == 1 else None
        )
    ]
    for _ in range(operator.inputs - 1):
        if operator.constant:
            data = values(type, operator.source[-1:], 5)
            if other.scale < 1e-6:
                data[...] = other.zero_point
            activations.append(draft.tensor(type, operator.source[-1:], other, data=data))
        else:
            activations.append(draft.fed_tensor(type, operator.source, other, operator.least))
    constants = [draft.tensor(str(constant.dtype), constant.shape, data=constant) for constant in operator.constants]
    result = operator.result or type
    quantized = condition.output
    if operator.keeps:
        quantized = first
    if operator.gives:
        quantized = operator.gives[result]
    if operator.result == INT16:
        quantized = Quantized(quantized.scale, 0)
    elif operator.result == UINT8:
        quantized = Quantized(quantized.scale, 9)
    plain = result in ("bool", "int64", "float32")
    made = [draft.given(draft.tensor(result, operator.shape, None if plain else quantized)) for _ in range(operator.outputs)]
    draft.node(op, [*constants, *activations] if operator.before else [*activations, *constants], made, operator.options)
    if follower:
        draft.follow(follower, result, operator.shape, made[0], quantized)
    return draft.net(f"{label} {type} {condition.name}{' then ' + follower if follower else ''}", op)
