"""A large gRPC request is counted while it is still bytes: it may have as many elements as its shape says, no more and no fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mlserver.grpc import dataplane_pb2 as pb

from oplet_serve.doors.wire import check_message
from oplet_serve.refusals import Refusal
from oplet_serve.values.tensors import TensorSpec

#: By type, the field of its elements, and one of them: of several bytes where they take what they take.
FIELDS = {
    "bool": ("bool_contents", True),
    "int8": ("int_contents", -3),
    "int64": ("int64_contents", 1 << 40),
    "uint32": ("uint_contents", 300),
    "uint64": ("uint64_contents", 5),
    "float32": ("fp32_contents", 0.5),
    "float64": ("fp64_contents", 0.5),
    "object": ("bytes_contents", b"text"),
}


def counted(dtype: str, shapes: list[int], counts: list[int]) -> None:
    """Have a message with so many inputs of one row checked."""
    spec = TensorSpec("x", np.dtype(dtype), (-1, 4))
    field, value = FIELDS[dtype]
    made = pb.ModelInferRequest(model_name="m")
    for size, count in zip(shapes, counts):
        tensor = made.inputs.add(name="x", datatype=spec.datatype, shape=[size, 4])
        getattr(tensor.contents, field).extend([value] * count)
    check_message(made.SerializeToString(), {"x": spec, "y": spec}, 1)


@pytest.mark.parametrize("dtype", FIELDS)
def test_as_many_elements_as_the_shape_has_are_taken_and_others_refused(dtype: str) -> None:
    counted(dtype, [2, 1], [8, 4])
    for count, told in ((7, "7 elements were given"), (9, r"9 elements and more were given, but the shape \[2, 4\] has 8")):
        with pytest.raises(Refusal, match=told):
            counted(dtype, [2], [count])


@pytest.mark.parametrize(("inputs", "outputs", "raw"), [(3, 0, 0), (0, 2, 0), (0, 0, 3)])
def test_no_more_inputs_outputs_and_contents_are_taken_than_the_model_has(inputs: int, outputs: int, raw: int) -> None:
    spec = TensorSpec("x", np.dtype("float32"), (1,))

    def check(fewer: int) -> Any:
        made = pb.ModelInferRequest(model_name="m")
        for _ in range(inputs - fewer):
            made.inputs.add(name="x", datatype="FP32", shape=[1])
        for _ in range(outputs - fewer):
            made.outputs.add(name="y")
        made.raw_input_contents.extend([b"1234"] * (raw - fewer))
        check_message(made.SerializeToString(), {"x": spec, "z": spec}, 1)

    check(fewer=1)
    with pytest.raises(Refusal):
        check(fewer=0)
