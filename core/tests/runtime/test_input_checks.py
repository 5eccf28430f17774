"""What is wrong with a node's inputs is found before its kernel sees them."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import Interpreter, Limits
from oplet.errors import InvokeError, LimitError, PrepareError
from oplet.model.builders.sparsity import sparsify
from oplet.schema.options import AddOptions, FullyConnectedOptions
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

X = Spec("float32", [2, 4])


def sparse(*shape: int) -> Spec:
    values, sparsity = sparsify(np.eye(*shape, dtype=np.float32))
    return Spec("float32", shape, data=values, sparsity=sparsity)


def test_a_kernel_that_reads_no_sparse_constants_gets_none() -> None:
    interpreter = Interpreter(model_content=one_op_model("ADD", [X, sparse(2, 4)], [X], AddOptions()))
    with pytest.raises(PrepareError, match=r"tensor 1 .* is stored sparse, which this kernel does not read as input 1"):
        interpreter.allocate_tensors()


def test_only_the_inputs_that_it_names_may_be_sparse() -> None:
    full = FullyConnectedOptions()
    Interpreter(model_content=one_op_model("FULLY_CONNECTED", [X, sparse(3, 4)], [X], full)).allocate_tensors()
    biased = one_op_model("FULLY_CONNECTED", [X, sparse(3, 4), sparse(3, 1)], [X], full)
    with pytest.raises(PrepareError, match=r"is stored sparse, which this kernel does not read as input 2"):
        Interpreter(model_content=biased).allocate_tensors()


def test_an_input_beyond_the_limit_is_refused_before_work_is_planned_for_it() -> None:
    huge = Spec("uint8", [2**31 - 1, 128], scale=0.1, zero_point=0)
    weights = Spec("uint8", [4, 128], scale=0.1, zero_point=0, data=np.zeros((4, 128), np.uint8))
    output = Spec("uint8", [1, 4], scale=0.1, zero_point=0)
    model = one_op_model("FULLY_CONNECTED", [huge, weights], [output], FullyConnectedOptions())
    with pytest.raises(LimitError, match=r"tensor 0 .* takes 274877906816 bytes.*Node number 0 \(FULLY_CONNECTED\)"):
        Interpreter(model_content=model, limits=Limits(max_tensor_bytes=1 << 20)).allocate_tensors()


def test_a_sparse_constant_counts_as_if_it_were_dense() -> None:
    model = one_op_model("FULLY_CONNECTED", [X, sparse(300, 4)], [X], FullyConnectedOptions())
    with pytest.raises(LimitError, match=r"tensor 1 .* takes 4800 bytes"):
        Interpreter(model_content=model, limits=Limits(max_tensor_bytes=4000)).allocate_tensors()


def test_a_value_that_a_folded_node_refuses_is_told_with_the_node_when_it_runs() -> None:
    shapes = [np.array([2, 3], np.int32), np.array([4, 3], np.int32)]
    interpreter = Interpreter(model_content=one_op_model("BROADCAST_ARGS", shapes, [Spec("int32", [2])]))
    for _ in range(2):
        interpreter.allocate_tensors()
        with pytest.raises(InvokeError, match=r"do not broadcast together.*Node number 0 \(BROADCAST_ARGS\)"):
            interpreter.invoke()
