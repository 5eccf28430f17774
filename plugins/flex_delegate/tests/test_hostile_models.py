"""Whatever a model says, TensorFlow does not end or hang the process, and no error is another's than oplet's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from plugins.flex_delegate.tests.flex_models import FlexModel, opened, run
from tests.places import SWEEP

from oplet import Limits, TensorType
from oplet.errors import LimitError, OpletError

pytest.importorskip("tensorflow")

F32, I32, I64 = np.float32, np.int32, np.int64
_FLOAT, _INT, _LONG, _COMPLEX = TensorType.FLOAT32, TensorType.INT32, TensorType.INT64, TensorType.COMPLEX64


def refused(op: str, inputs: list[Any], made: list[Any], **attributes: Any) -> str:
    """The error of a node with these inputs."""
    model, names = FlexModel(), []
    for place, value in enumerate(map(np.asarray, inputs)):
        model.tensor(f"x{place}", value.dtype, [None] * value.ndim)
        names.append(f"x{place}")
    for place, kind in enumerate(made):
        model.tensor(f"y{place}", kind, [])
    outputs = " ".join(f"y{place}" for place in range(len(made)))
    content = model.flex(op, " ".join(names), outputs, **attributes).content(" ".join(names), outputs)
    with pytest.raises(OpletError) as caught:
        run(opened(content), *inputs)
    return str(caught.value)


def _references(text: bytes) -> Any:
    """Many references to one object; `np.full` would make as many objects."""
    found = np.empty(100_000, object)
    found[:] = [text] * len(found)
    return found


def test_strings_of_one_object_are_charged_before_tensorflow_copies_them() -> None:
    model = FlexModel().tensor("x", TensorType.STRING, [100_000]).tensor("y", TensorType.STRING, [])
    content = model.flex("StringStrip", "x", "y").content("x", "y")
    interpreter = opened(content, limits=Limits(max_arena_bytes=64 << 20))
    with pytest.raises(LimitError, match="besides its tensors"):
        run(interpreter, _references(b"a" * 10_000))
    run(interpreter, _references(b"a"))


@pytest.mark.parametrize(
    ("op", "attributes", "inputs", "made", "reason"),
    [
        ("IRFFT", {"Treal": _FLOAT, "Tcomplex": _COMPLEX}, [np.zeros(2, np.complex64), np.array([0], I32)], [F32], "from 1 on"),
        (
            "GatherV2", {"Tparams": _FLOAT, "Tindices": _INT, "Taxis": _INT, "batch_dims": 127},
            [np.zeros(2, F32), np.zeros(1, I32), I32(0)], [F32], "batch_dims is 127",
        ),
        (
            "RaggedGather", {"Tvalues": _FLOAT, "Tindices": _INT, "Tsplits": _LONG, "PARAMS_RAGGED_RANK": 1, "OUTPUT_RAGGED_RANK": 1},
            [np.array([0, 9], I64), np.zeros(2, F32), np.zeros(1, I32)], [I64, F32], "do not go from 0 up to 2",
        ),
        (
            "Conv2DBackpropFilter", {"T": _FLOAT, "strides": [1, 1, 1, 1], "padding": "SAME"},
            [np.zeros((1, 2, 2), F32), np.array([1, 1, 2, 1], I32), np.zeros((1, 2, 2, 1), F32)], [F32], "it must have 4",
        ),
        ("RandomPoissonV2", {"S": _INT, "R": _FLOAT, "dtype": _LONG}, [np.array([1], I32), F32(np.nan)], [I64], "not finite"),
        (
            "SplitV", {"T": _FLOAT, "Tlen": TensorType.INT8, "num_split": 1},
            [np.zeros(2, F32), np.array([2], np.int8), I32(0)], [F32], "int8, which its kernel does not read",
        ),
    ],
)  # fmt: skip
def test_what_ends_tensorflow_s_process_is_refused_with_a_sentence(
    op: str, attributes: Any, inputs: list[Any], made: list[Any], reason: str
) -> None:
    message = refused(op, inputs, made, **attributes)
    assert reason in message
    assert f"Flex{op}, node 0" in message


def test_a_negative_place_of_a_list_is_refused() -> None:
    model = FlexModel().tensor("x", F32, [2, 3]).tensor("places", I32, [2]).tensor("shape", I32, [1], [3]).tensor("n", I32, [], 2)
    model.tensor("a", TensorType.VARIANT).tensor("b", TensorType.VARIANT).tensor("length", I32, [])
    model.flex("TensorListReserve", "shape n", "a", element_dtype=_FLOAT, shape_type=_INT)
    model.flex("TensorListScatterIntoExistingList", "a x places", "b", element_dtype=_FLOAT)
    interpreter = opened(model.flex("TensorListLength", "b", "length").content("x places", "length"))
    assert run(interpreter, np.zeros((2, 3), F32), np.array([1, 0], I32))[0] == 2
    with pytest.raises(OpletError, match="the element -1 of a list"):
        run(interpreter, np.zeros((2, 3), F32), np.array([-1, 0], I32))


def test_a_variable_of_another_type_than_the_node_says_is_refused() -> None:
    """The handle comes from another partition, so that TensorFlow's shape function does not know the variable."""
    model = (
        FlexModel().tensor("x", F32, [3]).tensor("v", TensorType.RESOURCE).tensor("n", I32).tensor("place", I32).tensor("y", I64)
    )
    model.flex("VarHandleOp", "", "v", dtype=_FLOAT, shape=(3,)).flex("AssignVariableOp", "v x", "", dtype=_FLOAT)
    model.flex("Size", "x", "n", T=_FLOAT, out_type=_INT).node("NEG", "n", "place")
    content = model.flex("ResourceGather", "v place", "y", dtype=_LONG, Tindices=_INT).content("x", "y")
    with pytest.raises(
        OpletError, match="input 0 is not the variable that it should be: Trying to read variable with wrong dtype"
    ):
        run(opened(content), np.zeros(3, F32))


def test_a_number_of_inputs_that_the_node_has_not_is_a_reason() -> None:
    model = FlexModel().tensor("x", F32, [3]).tensor("y", F32, [3])
    [report] = opened(model.flex("AddN", "x", "y", T=_FLOAT, N=1 << 40).content("x", "y")).delegation_reports()
    assert report.unsupported[0] == f"the attribute 'N' is {1 << 40}, and the node has 2 inputs and outputs"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_attributes_that_are_no_numbers_are_a_reason(value: float) -> None:
    """TensorFlow's Mfcc ends the process with such a limit."""
    model = FlexModel().tensor("x", F32, [1, 9, 65]).tensor("rate", np.int32, [], np.int32(8000)).tensor("y", F32, [1, 9, 10])
    content = model.flex("Mfcc", "x rate", "y", lower_frequency_limit=value).content("x", "y")
    [report] = opened(content).delegation_reports()
    assert report.unsupported[0].startswith(f"the attribute 'lower_frequency_limit' of Mfcc is {value}")


@pytest.mark.parametrize("name", ["ksize", "strides"])
def test_windows_of_no_size_are_a_reason(name: str) -> None:
    """TensorFlow's MaxPoolGrad ends the process with some of them."""
    model = FlexModel().tensor("x", F32, [1, 4, 4, 1]).tensor("made", F32, [1, 2, 2, 1]).tensor("y", F32, [1, 4, 4, 1])
    attributes = {"T": _FLOAT, "padding": "SAME", "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], name: [1, -(2**31), 2, 1]}
    content = model.flex("MaxPoolGrad", "x made made", "y", **attributes).content("x made", "y")
    [report] = opened(content).delegation_reports()
    assert report.unsupported[0].endswith("sizes of windows and their steps are 1 or more")


@pytest.mark.sweep
def test_mutated_models_neither_crash_nor_hang_nor_raise_what_is_not_oplet_s() -> None:
    """20,000 of them with OPLET_EVERY_CASE."""
    from plugins.flex_delegate.tests.mutants import run_batches

    outcomes, ended = run_batches(0, 20_000 // SWEEP)
    assert not ended
    assert outcomes["ran"] > 2000 // SWEEP
    assert sum(outcomes.values()) == 20_000 // SWEEP
