"""What the definition of an operator says, with names as in TensorFlow's OpDef or by types alone."""

from __future__ import annotations

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options

from oplet import TensorType
from oplet.errors import PrepareError
from oplet_flex_ops.signature import Signature
from oplet_testing import Spec, one_op_model, run_op

FLOAT, INT = TensorType.FLOAT32, TensorType.INT32


def test_a_definition_tells_on_which_inputs_values_shapes_depend():
    assert Signature("input: T, begin: Index[1]!, size: Index[1]! -> output: T", {}).reads == [1, 2]
    assert Signature("T, Tidx=INT32! -> T", {}).reads == [1]
    assert Signature("values: N*T, axis: Tidx! -> output: T", {}).reads == [-1], "behind many tensors it counts from the end"


def test_the_first_input_or_else_output_has_the_main_types():
    assert Signature("T, Tidx -> T", {"T": (FLOAT,), "Tidx": (INT,)}).main_types() == (FLOAT,)
    assert Signature("N*T -> T", {"T": (FLOAT, INT)}).main_types() == (FLOAT, INT)
    assert Signature(" -> INT32", {}).main_types() == (INT,)


@pytest.mark.parametrize(
    ("given", "refusal"), [({"T": FLOAT}, ""), ({}, "the attribute 'T' of Sum is missing"), ({"T": INT}, "T' of Sum is INT32")]
)
def test_a_type_with_a_default_may_be_left_out_and_others_not(given, refusal):
    model = one_op_model(
        "FlexSum", [Spec(FLOAT, [2]), Spec(INT, [1])], [Spec(FLOAT, [])], custom_options=flex_options("Sum", given)
    )
    fed = (np.array([1.5, 2.5], np.float32), np.array([0], np.int32))
    if refusal:
        with pytest.raises(PrepareError, match=refusal):
            run_op(model, *fed)
    else:
        assert run_op(model, *fed)[0] == 4
