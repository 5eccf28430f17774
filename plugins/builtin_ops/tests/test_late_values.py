"""Values and sizes that a node cannot run with: the model is allocated, the node refuses its run, and other branches and sizes run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import InvokeError, PrepareError
from oplet.schema import options as _o
from oplet.schema.enums import Padding
from oplet_testing import invoke
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]


class Late(NamedTuple):
    """A node that cannot run with an input of ones.

    Attributes:
        op: its operator.
        small: the shape of its first input, with which it cannot run.
        grown: one with which it can.
        constants: the other inputs.
        reason: what it says.
        wanted: what it gives of the numbers from 0 on.
        options: its options.
        position: of the first input among all.
        type: of the first input and the output.
    """

    op: str
    small: Sequence[int]
    grown: Sequence[int]
    constants: Sequence[Array]
    reason: str
    wanted: Any
    options: Any = None
    position: int = 0
    type: str = "float32"


def i(*numbers: Any) -> Array:
    return np.array(numbers, np.int32)


_SHRINK = _o.StridedSliceOptions(begin_mask=1, end_mask=1, shrink_axis_mask=2)
LATE = {
    "x[:, 2]": Late("STRIDED_SLICE", [2, 1], [2, 3], [i(0, 2), i(0, 3), i(1, 1)], "position 2 of an axis of length 1", [2, 5], _SHRINK),
    "gathered rows": Late("GATHER", [1], [4], [i(3, 1)], "position 3 is outside", [3, 1], _o.GatherOptions()),
    "gathered points": Late("GATHER_ND", [1, 1], [2, 2], [np.array([[1, 0], [0, 1]], np.int32)], r"index \[1, 0\]", [2, 1]),
    "points of nothing": Late("GATHER_ND", [0], [2], [np.array([[1]], np.int32)], "is empty", [1]),
    "a map of no pixels": Late("RESIZE_NEAREST_NEIGHBOR", [1, 0, 1, 1], [1, 1, 1, 1], [i(1, 2)], "no pixels", [[[[0], [0]]]]),
    "bilinear": Late("RESIZE_BILINEAR", [1, 1, 0, 1], [1, 1, 1, 1], [i(1, 2)], "no pixels", [[[[0], [0]]]]),
    "the best of few": Late("TOPK_V2", [1], [3], [i(2)[0]], "k is 2", [2, 1]),
    "segments of fewer rows": Late("SEGMENT_SUM", [1], [3], [i(0, 0, 1)], "vector of 1 ids", [1, 2]),
    "sequences of fewer batches": Late(
        "REVERSE_SEQUENCE", [1, 2], [2, 2], [i(2, 1)], "vector of 1 lengths", [[1, 0], [2, 3]], _o.ReverseSequenceOptions(seq_dim=1)
    ),
    "a box of more": Late("SLICE", [1], [3], [i(1), i(2)], r"begin \[1\] and size \[2\] leave", [1, 2]),
    "a box to the end": Late("SLICE", [1], [3], [i(2), i(-1)], r"begin \[2\] and size \[-1\] leave", [2]),
    "rows of weights": Late(
        "FULLY_CONNECTED", [1, 1], [1, 2], [np.array([[1, 2]], np.float32)], "cannot be cut into rows of 2", [[2]], _o.FullyConnectedOptions()
    ),
    "a window of more": Late(
        "CONV_2D", [1, 1, 3, 1], [1, 5, 5, 1], [np.full((1, 5, 5, 1), 1, np.float32), np.zeros(1, np.float32)], "covers 5 along the h",
        [[[[300]]]], _o.Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1),
    ),
    "a window of more, by depth": Late(
        "DEPTHWISE_CONV_2D", [1, 5, 1, 1], [1, 5, 5, 1], [np.full((1, 5, 5, 1), 1, np.float32)], "covers 5 along the w",
        [[[[300]]]], _o.DepthwiseConv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, depth_multiplier=1),
    ),
}  # fmt: skip

#: Constants that nothing but another value would mend.
WRONG = {
    "an axis that there is not": ("CUMSUM", [np.ones(2, np.float32), i(4)[0]], "axis is 4"),
    "the same axis twice": ("REVERSE_V2", [np.ones((2, 2), np.float32), i(0, 0)], "must be different"),
    "a permutation": ("TRANSPOSE", [np.ones((2, 2), np.float32), i(0, 0)], "names an axis twice"),
    "scattered points": ("SCATTER_ND", [i([5]), np.ones(1, np.float32), i(3)], r"index \[5\]"),
    "sparse points": ("SPARSE_TO_DENSE", [i([5]), i(3), np.ones(1, np.float32), np.float32(0)], r"index \[5\]"),
    "ids that jump": ("SEGMENT_SUM", [np.ones(2, np.float32), i(0, 2)], "rise by at most 1"),
    "a shape that does not broadcast": ("BROADCAST_ARGS", [i(2, 3), i(4, 3)], "do not broadcast"),
}


def late_graph(late: Late, shape: Sequence[int], name: str = "") -> Graph:
    tensors: dict[str, Any] = {"x": Spec(late.type, shape), "y": Spec(late.type, [1])}
    names = [f"k{number}" for number in range(len(late.constants))]
    tensors |= dict(zip(names, map(np.asarray, late.constants)))
    outputs = "y"
    if late.op == "TOPK_V2":
        tensors["at"] = Spec("int32", [1])
        outputs = "y at"
    operands = [*names[: late.position], "x", *names[late.position :]]
    return Graph(tensors, "x", "y", [Op(late.op, " ".join(operands), outputs, late.options)], name)


@pytest.mark.parametrize("form", ["alone", "in a branch"])
@pytest.mark.parametrize("name", LATE)
def test_a_size_that_a_resize_mends_is_refused_in_the_run_alone(name: str, form: str) -> None:
    late = LATE[name]
    graph = late_graph(late, late.small)
    if form == "alone":
        interpreter, given = Interpreter(model_content=graph_model(graph)), []
    else:
        given = [np.array(True)]
        main = Graph({"c": Spec("bool", []), "x": Spec(late.type, late.small), "y": Spec(late.type, [1])}, "c x", "y",
                     [Op("IF", "c x", "y", _o.IfOptions(then_subgraph_index=1, else_subgraph_index=2))])  # fmt: skip
        other = Graph({"x": Spec(late.type, late.small), "k": np.array([7], late.type)}, "x", "k")
        interpreter = Interpreter(model_content=graph_model(main, graph, other))
    interpreter.allocate_tensors()
    small = np.zeros(late.small, late.type)
    for _ in range(2):
        with pytest.raises(InvokeError, match=late.reason):
            invoke(interpreter, *given, small)
        if given:
            assert invoke(interpreter, np.array(False), small)[0].tolist() == [7]
        values = np.arange(np.prod(late.grown)).reshape(late.grown).astype(late.type)
        assert invoke(interpreter, *given, values, resize=True)[0].tolist() == late.wanted
        with pytest.raises(InvokeError, match=late.reason):
            invoke(interpreter, *given, small, resize=True)


@pytest.mark.parametrize("fed", [False, True], ids=["constants", "the first is fed"])
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_constant_refuses_neither_the_model_nor_the_other_branch(name: str, fed: bool) -> None:
    op, operands, reason = WRONG[name]
    type = {"SCATTER_ND": "float32", "SPARSE_TO_DENSE": "float32"}.get(op, str(operands[0].dtype))
    names = [f"k{number}" for number in range(len(operands))]
    tensors: dict[str, Any] = dict(zip(names, map(np.asarray, operands)))
    tensors["y"] = Spec(type, [1])
    x = Spec(operands[0].dtype, operands[0].shape)
    if fed:
        tensors["k0"] = x
    else:
        tensors["x"] = x
    first = "k0" if fed else "x"
    wrong = Graph(tensors, first, "y", [Op(op, " ".join(names), "y")], "wrong")
    other = Graph({"x": x, "k": np.array([7, 8], type)}, "x", "k", name="other")
    main = Graph({"c": Spec("bool", []), "x": x, "y": Spec(type, [2])}, "c x", "y",
                 [Op("IF", "c x", "y", _o.IfOptions(then_subgraph_index=1, else_subgraph_index=2))])  # fmt: skip
    alone = Interpreter(model_content=graph_model(wrong))
    alone.allocate_tensors()
    with pytest.raises(InvokeError, match=reason):
        invoke(alone, operands[0])
    both = Interpreter(model_content=graph_model(main, wrong, other))
    for condition in (False, True, False):
        if condition:
            with pytest.raises(InvokeError, match=reason):
                invoke(both, np.array(condition), operands[0])
        else:
            assert invoke(both, np.array(condition), operands[0])[0].tolist() == [7, 8]


def test_a_slice_that_holds_nothing_may_begin_anywhere() -> None:
    options = _o.StridedSliceOptions(shrink_axis_mask=1)
    graph = Graph({"x": Spec("float32", [1, 1]), "b": i(1, 1), "e": i(2, 3), "s": i(1, 1), "y": Spec("float32", [1])}, "x", "y",
                  [Op("STRIDED_SLICE", "x b e s", "y", options)])  # fmt: skip
    interpreter = Interpreter(model_content=graph_model(graph))
    interpreter.allocate_tensors()
    assert invoke(interpreter, np.zeros((1, 1), np.float32))[0].shape == (0,)
    assert invoke(interpreter, np.arange(6, dtype=np.float32).reshape(2, 3), resize=True)[0].tolist() == [4, 5]
    with pytest.raises(InvokeError, match="position 1 of an axis of length 1"):
        invoke(interpreter, np.zeros((1, 3), np.float32), resize=True)


@pytest.mark.parametrize(
    ("op", "operands", "reason"),
    [
        ("STRIDED_SLICE", [np.ones(2, np.float32), i(0), i(1), i(0)], "must not be zero"),
        ("GATHER", [np.ones(2, np.float32), np.ones(1, np.float32)], "is of type FLOAT32"),
        ("REVERSE_SEQUENCE", [np.ones((2, 2), np.float32), np.ones((2, 1), np.int32)], "must be a vector"),
        ("SLICE", [np.ones((2, 2), np.float32), i(0), i(1)], "one value for each of the 2 axes"),
    ],
)
def test_what_no_resize_mends_is_refused_while_preparing(op: str, operands: list[Array], reason: str) -> None:
    options = {"STRIDED_SLICE": _o.StridedSliceOptions(), "REVERSE_SEQUENCE": _o.ReverseSequenceOptions(seq_dim=1)}.get(op)
    names = [f"k{number}" for number in range(1, len(operands))]
    tensors: dict[str, Any] = {
        "x": Spec("float32", operands[0].shape),
        "y": Spec("float32", [1]),
        **dict(zip(names, operands[1:])),
    }
    interpreter = Interpreter(
        model_content=graph_model(Graph(tensors, "x", "y", [Op(op, " ".join(["x", *names]), "y", options)]))
    )
    with pytest.raises(PrepareError, match=reason):
        interpreter.allocate_tensors()
