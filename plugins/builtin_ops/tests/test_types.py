"""The types that registrations declare are those that `prepare` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, PluginManager, TensorType
from oplet.errors import OpletError
from oplet.schema.options import Conv2DOptions, PackOptions, Pool2DOptions, ShapeOptions, SpaceToDepthOptions
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

RESOLVER = PluginManager(load=["oplet-builtin-ops"]).resolver()
QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Types of which numpy has arrays, so that any of them can be put into a model.
TYPES = sorted(set(TensorType) - {TensorType.RESOURCE, TensorType.VARIANT, TensorType.COMPLEX128})
UNARY = (
    "ABS CEIL COS ELU EXP FLOOR HARD_SWISH LEAKY_RELU LOGICAL_NOT LOGISTIC LOG LOG_SOFTMAX NEG RANK RELU RELU6 RELU_0_TO_1 "
    "RELU_N1_TO_1 ROUND RSQRT SIGN SIN SQRT SQUARE SQUEEZE TANH ZEROS_LIKE"
)
BINARY = (
    "ADD ATAN2 BITWISE_XOR DIV FLOOR_DIV FLOOR_MOD LOGICAL_AND LOGICAL_OR MAXIMUM MINIMUM MUL POW PRELU RIGHT_SHIFT "
    "SQUARED_DIFFERENCE SUB"
)
REDUCTIONS = "MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM"
#: Operators that move values of any type, call subgraphs, or have no input.
UNTYPED = (
    "ASSIGN_VARIABLE CALL CALL_ONCE EXPAND_DIMS HASHTABLE "
    "HASHTABLE_LOOKUP IF RANK RESHAPE SHAPE SLICE SQUEEZE "
    "STABLEHLO_CASE STABLEHLO_COMPOSITE STABLEHLO_CUSTOM_CALL STABLEHLO_WHILE STRIDED_SLICE TRANSPOSE "
    "VAR_HANDLE WHILE"
)
POOLS = "AVERAGE_POOL_2D MAX_POOL_2D L2_POOL_2D"


def ints(*values: Any) -> Any:
    return np.array(values, np.int32)


#: What follows the main input, and the options.
REST: dict[str, tuple[list[Any], Any]] = {
    **{op: ([], None) for op in UNARY.split()},
    **{op: ([ints(1)], None) for op in REDUCTIONS.split()},
    **{op: ([], Pool2DOptions(filter_height=1, filter_width=1, stride_h=1, stride_w=1)) for op in POOLS.split()},
    "BROADCAST_TO": ([ints(1, 2, 2, 4)], None),
    "CUMSUM": ([ints(1)[0]], None),
    "EXPAND_DIMS": ([ints(0)], None),
    "GATHER": ([ints(0)], None),
    "GATHER_ND": ([ints([0])], None),
    "MIRROR_PAD": ([np.zeros((4, 2), np.int32)], None),
    "PACK": ([], PackOptions(values_count=1)),
    "PAD": ([np.zeros((4, 2), np.int32)], None),
    "RESHAPE": ([ints(16)], None),
    "RESIZE_BILINEAR": ([ints(4, 4)], None),
    "RESIZE_NEAREST_NEIGHBOR": ([ints(4, 4)], None),
    "REVERSE_V2": ([ints(1)], None),
    "SHAPE": ([], ShapeOptions(out_type=TensorType.INT32)),
    "SLICE": ([np.zeros(4, np.int32), np.ones(4, np.int32)], None),
    "SPACE_TO_BATCH_ND": ([ints(1, 1), np.zeros((2, 2), np.int32)], None),
    "SPACE_TO_DEPTH": ([], SpaceToDepthOptions(block_size=2)),
    "TILE": ([ints(1, 1, 1, 1)], None),
    "TRANSPOSE": ([ints(0, 1, 2, 3)], None),
}
OUTPUTS = {"SHAPE": TensorType.INT32, "RANK": TensorType.INT32}
#: Scale and zero point of outputs for which the operator allows one pair only.
FIXED = {
    ("LOG_SOFTMAX", TensorType.INT8): (1 / 16, 127),
    ("LOG_SOFTMAX", TensorType.UINT8): (1 / 16, 255),
    ("LOGISTIC", TensorType.INT16): (1 / 32768, 0),
    ("TANH", TensorType.INT16): (1 / 32768, 0),
}
#: Types that the operator takes plain, and not quantized.
PLAIN = {("REDUCE_PROD", TensorType.UINT8)}


def declared(op: str) -> tuple[TensorType, ...]:
    """The types that the newest kernel of an operator declares; all where it takes any."""
    code = BuiltinOperator[op]
    registration = RESOLVER.find_op(code, max(RESOLVER.versions(code)))
    assert registration is not None
    return registration.types or tuple(TensorType)


def tensor(type: TensorType, op: str = "", *, result: bool = False) -> Spec:
    if type not in QUANTIZED or (op, type) in PLAIN:
        return Spec(type, [1, 2, 2, 4])
    return Spec(type, [1, 2, 2, 4], *(FIXED.get((op, type), (1 / 256, 0)) if result else (1 / 256, 0)))


def refusal(op: str, inputs: list[Any], output: Spec, options: Any) -> str:
    """Why a node is refused; "" if it is not."""
    version = max(RESOLVER.versions(BuiltinOperator[op]))
    model = one_op_model(op, inputs, [output], options, version=version)
    try:
        Interpreter(model_content=model).allocate_tensors()
    except OpletError as error:
        return str(error)
    return ""


def agree(op: str, type: TensorType, reason: str) -> None:
    if type in declared(op):
        assert not reason, f"{op} declares {type.name} and refuses it: {reason}"
    else:
        assert reason, f"{op} takes {type.name} and does not say so"
        assert type.name in reason


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.name)
@pytest.mark.parametrize("op", REST)
def test_what_is_declared_is_taken_and_nothing_else(op: str, type: TensorType) -> None:
    others, options = REST[op]
    output = tensor(OUTPUTS.get(op, type), op, result=True)
    agree(op, type, refusal(op, [tensor(type, op), *others], output, options))


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.name)
@pytest.mark.parametrize("op", BINARY.split())
def test_what_is_declared_is_taken_by_operators_of_two_tensors(op: str, type: TensorType) -> None:
    agree(op, type, refusal(op, [tensor(type), tensor(type)], tensor(type), None))


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.name)
def test_what_is_declared_is_taken_by_convolutions(type: TensorType) -> None:
    weights = {TensorType.UINT8: TensorType.UINT8, TensorType.INT8: TensorType.INT8, TensorType.INT16: TensorType.INT8}
    filters = Spec(weights.get(type, TensorType.FLOAT32), [1, 1, 1, 4], [0.5] if type in weights else None, [0])
    agree("CONV_2D", type, refusal("CONV_2D", [tensor(type), filters, None], tensor(type), Conv2DOptions(stride_h=1, stride_w=1)))


def test_every_operator_of_one_type_or_more_says_so() -> None:
    silent = set()
    for entry in RESOLVER.entries():
        if entry.provenance.distribution == "oplet-builtin-ops":
            registration = entry.load(entry.max_version)
            if not registration.types:
                silent.add(registration.name)
    assert silent == set(UNTYPED.split())
