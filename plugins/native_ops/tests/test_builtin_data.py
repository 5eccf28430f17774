"""Options of built-in operators reach libraries as the structs of builtin_op_data.h."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, TensorType
from oplet.errors import PrepareError
from oplet.schema import options, stablehlo_options
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode, Padding
from oplet.schema.table import Table
from oplet_native_ops.values.builtin_data import STRUCTS, builtin_data, fields_of, struct_of

OPERATORS = [op for op in BuiltinOperator if struct_of(op)]


def given(op: BuiltinOperator, table: Table) -> Any:
    return builtin_data(op, table)


def test_a_convolution_s() -> None:
    table = options.Conv2DOptions(
        padding=Padding.SAME,
        stride_w=2,
        stride_h=3,
        fused_activation_function=ActivationFunctionType.RELU6,
        dilation_w_factor=4,
        dilation_h_factor=5,
        quantized_bias_type=TensorType.INT64,
    )
    made = given(BuiltinOperator.CONV_2D, table)
    assert np.frombuffer(bytes(made), np.int32).tolist() == [1, 2, 3, 3, 4, 5, 4]


def test_arrays_come_with_their_number() -> None:
    made = given(BuiltinOperator.SQUEEZE, options.SqueezeOptions(squeeze_dims=np.array([1, 3], np.int32)))
    assert (list(made.squeeze_dims), made.num_squeeze_dims) == ([1, 3, 0, 0, 0, 0, 0, 0], 2)
    made = given(BuiltinOperator.RESHAPE, options.ReshapeOptions(new_shape=np.array([-1, 7], np.int32)))
    assert (list(made.shape)[:3], made.num_dimensions) == ([-1, 7, 0], 2)
    made = given(BuiltinOperator.RESHAPE, options.ReshapeOptions())
    assert made.num_dimensions == 0


def test_more_values_than_the_struct_has_room_for_are_refused() -> None:
    table = options.ReshapeOptions(new_shape=np.ones(9, np.int32))
    with pytest.raises(PrepareError, match="new_shape has 9 values, and compiled operators are given 8 at most"):
        given(BuiltinOperator.RESHAPE, table)


def test_what_a_struct_points_to_lives_as_long_as_it() -> None:
    made = given(BuiltinOperator.BUCKETIZE, options.BucketizeOptions(boundaries=np.array([1, 2.5], np.float32)))
    assert made.num_boundaries == 2
    assert list((ctypes.c_float * 2).from_address(made.boundaries)) == [1, 2.5]
    made = given(BuiltinOperator.VAR_HANDLE, options.VarHandleOptions(container="c", shared_name="n\N{SNOWMAN}"))
    assert (made.container, made.shared_name.decode()) == (b"c", "n\N{SNOWMAN}")
    table = stablehlo_options.StableHLOCompositeOptions(
        name="odml.x", decomposition_subgraph_index=3, composite_attributes=np.array([7, 8], np.uint8), version=2
    )
    made = given(BuiltinOperator.STABLEHLO_COMPOSITE, table)
    assert (made.name, made.subgraph_index, made.version, made.attributes_size) == (b"odml.x", 3, 2, 2)
    assert ctypes.string_at(made.attributes, 2) == b"\7\10"


def test_numbers_that_begin_at_1_in_c() -> None:
    made = given(BuiltinOperator.MIRROR_PAD, options.MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC))
    assert made.mode == 2
    assert given(BuiltinOperator.AVERAGE_POOL_2D, options.Pool2DOptions(padding=Padding.VALID)).padding == 2


def test_types_have_the_runtime_s_numbers() -> None:
    made = given(BuiltinOperator.CAST, options.CastOptions(in_data_type=TensorType.FLOAT16, out_data_type=TensorType.INT8))
    assert (made.in_data_type, made.out_data_type) == (10, 9)


def test_a_model_without_options_gives_zeros_and_an_operator_without_a_struct_nothing() -> None:
    made = builtin_data(BuiltinOperator.CONV_2D, None)
    assert made is not None
    assert not any(bytes(made))
    assert builtin_data(BuiltinOperator.FLOOR, None) is None


@pytest.mark.parametrize("op", OPERATORS, ids=[op.name for op in OPERATORS])
def test_every_field_is_an_option_of_the_operator_s_table(op: BuiltinOperator) -> None:
    tables = [*options.BuiltinOptions.values(), *stablehlo_options.BuiltinOptions2.values()]
    wanted = {field.option for field in fields_of(struct_of(op)) if field.option}
    fitting = [table for table in tables if wanted <= set(dir(table))]
    assert fitting, wanted
    assert any(builtin_data(op, table()) is not None for table in fitting)


def test_every_struct_is_some_operator_s() -> None:
    assert {struct_of(op) for op in OPERATORS} == set(STRUCTS)
