"""The work of the built-in operators, counted from shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, PluginManager, Work
from oplet.schema.options import BatchMatMulOptions, Conv2DOptions, DepthwiseConv2DOptions, Pool2DOptions, TransposeConvOptions
from oplet_builtin_ops import VERSIONS
from oplet_testing import Spec, one_op_model
from oplet_tools.describing.work import work_of_nodes

PLUGINS = PluginManager(load=["oplet-builtin-ops"])
#: Operators whose work depends on values, that call subgraphs, or that are rare.
NOT_COUNTED = """
    ASSIGN_VARIABLE BUCKETIZE CALL CALL_ONCE DYNAMIC_UPDATE_SLICE EMBEDDING_LOOKUP_SPARSE HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_LOOKUP
    HASHTABLE_SIZE IF LSH_PROJECTION MULTINOMIAL NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 RANDOM_STANDARD_NORMAL RANDOM_UNIFORM READ_VARIABLE
    REDUCE_WINDOW SCATTER_ND SKIP_GRAM SPARSE_TO_DENSE STABLEHLO_CASE STABLEHLO_COMPOSITE STABLEHLO_CUSTOM_CALL STABLEHLO_DYNAMIC_UPDATE_SLICE
    STABLEHLO_REDUCE_WINDOW STABLEHLO_RNG_BIT_GENERATOR STABLEHLO_SCATTER STABLEHLO_SORT STABLEHLO_WHILE TOPK_V2 UNIQUE VAR_HANDLE WHERE WHILE
    """


def f(*shape: int) -> Spec:
    return Spec("float32", list(shape))


def test_every_operator_is_counted_but_those_that_are_named_here() -> None:
    counted = {getattr(key, "name", key) for key in PLUGINS.work_table().rows}
    assert set(VERSIONS) - counted == set(NOT_COUNTED.split())


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "options", "macs", "operations"),
    [
        (
            "CONV_2D",
            [f(1, 8, 8, 3), f(5, 3, 3, 3), f(5)],
            [f(1, 4, 4, 5)],
            Conv2DOptions(stride_h=2, stride_w=2),
            4 * 4 * 5 * 27,
            0,
        ),
        ("CONV_2D", [f(1, 8, 8, 6), f(4, 1, 1, 3), f(4)], [f(1, 8, 8, 4)], Conv2DOptions(stride_h=1, stride_w=1), 64 * 4 * 3, 0),
        (
            "DEPTHWISE_CONV_2D",
            [f(2, 8, 8, 3), f(1, 5, 5, 6), f(6)],
            [f(2, 8, 8, 6)],
            DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=2),
            2 * 64 * 6 * 25,
            0,
        ),
        (
            "TRANSPOSE_CONV",
            [np.array([1, 8, 8, 5], np.int32), f(5, 3, 3, 2), f(1, 4, 4, 2)],
            [f(1, 8, 8, 5)],
            TransposeConvOptions(stride_h=2, stride_w=2),
            16 * 9 * 2 * 5,
            0,
        ),
        ("FULLY_CONNECTED", [f(4, 10), f(3, 10), f(3)], [f(4, 3)], None, 4 * 10 * 3, 0),
        ("BATCH_MATMUL", [f(2, 6, 3), f(2, 6, 5)], [f(2, 3, 5)], BatchMatMulOptions(adj_x=True), 2 * 3 * 5 * 6, 0),
        (
            "MAX_POOL_2D",
            [f(1, 6, 6, 4)],
            [f(1, 3, 3, 4)],
            Pool2DOptions(filter_width=2, filter_height=2, stride_w=2, stride_h=2),
            0,
            36 * 4,
        ),
        ("ADD", [f(4, 1), f(1, 5)], [f(4, 5)], None, 0, 20),
        ("SUM", [f(4, 5), np.array([1], np.int32)], [f(4)], None, 0, 20),
        ("SOFTMAX", [f(4, 5)], [f(4, 5)], None, 0, 100),
        ("PAD", [f(4, 5), np.array([[1, 1], [0, 0]], np.int32)], [f(6, 5)], None, 0, 0),
        ("UNIQUE", [f(4)], [f(4), Spec("int32", [4])], None, None, None),
    ],
)
def test_products_count_multiply_adds_and_all_else_operations(
    op: str, inputs: list[Any], outputs: list[Any], options: Any, macs: int | None, operations: int | None
) -> None:
    interpreter = Interpreter(model_content=one_op_model(op, inputs, outputs, options), plugins=PLUGINS)
    interpreter.allocate_tensors()
    work = work_of_nodes(interpreter)[0, 0]
    assert (work.macs, work.operations) == (macs, operations)


def test_a_gather_reads_what_it_takes_and_not_the_whole_table() -> None:
    model = one_op_model("GATHER", [f(1000, 16), Spec("int32", [3])], [f(3, 16)])
    work = work_of_nodes(Interpreter(model_content=model, plugins=PLUGINS))[0, 0]
    assert work == Work(0, 0, 3 * 16 * 4 + 3 * 4, 3 * 16 * 4)
