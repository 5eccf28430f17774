"""Outputs of a partition that are an input as it is, which OpenVINO does not write where it is told to."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder, TensorType, load_delegate
from oplet.schema.options import AddOptions, CastOptions, ReshapeOptions

pytest.importorskip("openvino")


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_reshape_to_the_same_shape_gives_the_value_of_now(dtype: str) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, z = graph.add_tensor("x", dtype, [7]), graph.add_tensor("z", "float32", [7])
    shape = graph.add_tensor("shape", "int32", [1], data=np.array([7], np.int32))
    again, wide, total = (graph.add_tensor(name, kind, [7]) for name, kind in (("a", dtype), ("w", "float32"), ("t", "float32")))
    graph.add_operator("RESHAPE", [x, shape], [again], ReshapeOptions())
    if dtype == "float32":
        graph.add_operator("RELU", [x], [wide])
    else:
        graph.add_operator(
            "CAST", [x], [wide], CastOptions(in_data_type=TensorType[dtype.upper()], out_data_type=TensorType.FLOAT32)
        )
    graph.add_operator("ADD", [wide, z], [total], AddOptions())
    graph.set_inputs(x, z)
    graph.set_outputs(again, total)
    interpreter = Interpreter(model_content=builder.to_bytes(), experimental_delegates=[load_delegate("openvino")])
    interpreter.allocate_tensors()
    (report,) = interpreter.delegation_reports()
    assert 0 in [node for partition in report.partitions for node in partition]
    for seed in range(3):
        value = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 9, 7).astype(dtype)
        interpreter.set_tensor(x, value)
        interpreter.set_tensor(z, np.ones(7, np.float32))
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(again), value)
        np.testing.assert_array_equal(interpreter.get_tensor(total), value.astype(np.float32) + 1)
