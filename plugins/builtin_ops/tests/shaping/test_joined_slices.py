"""CONCATENATION that absorbs slices: what it gives, and that it gives what the nodes one by one give where its forecast is wrong."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from plugins.builtin_ops.tests.shaping.list_loops import loop, unknown

from oplet import Interpreter, MutableOpResolver, Node, Registration
from oplet.errors import InvokeError, TensorError
from oplet.schema.options import AddOptions, ConcatenationOptions, SliceOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

BUILTIN = ["oplet-builtin-ops"]
LIST = np.arange(12, dtype=np.float32).reshape(4, 3)
ROW = -np.ones((1, 3), np.float32)


def joined(axis: int = 0, type: str = "int32", **more: Any) -> bytes:
    """list[: end of the first slice], row, list[begin of the second slice :], with all positions and sizes given."""
    place, row = Spec(type, [2]), Spec("float32", [1, 3] if axis == 0 else [4, 1])
    tensors = {
        "list": Spec("float32", [4, 3]), "row": row, "b": place, "s": place, "c": place, "t": place,
        "before": unknown(axis), "after": unknown(axis), "whole": Spec("float32", [4, 3]), "sum": Spec("float32", [4, 3]),
    }  # fmt: skip
    ops = [
        Op("SLICE", "list b s", "before", SliceOptions()),
        Op("SLICE", "list c t", "after", SliceOptions()),
        Op("CONCATENATION", "before row after", "whole", ConcatenationOptions(axis=axis)),
        Op("ADD", "whole whole", "sum", AddOptions()),
    ]
    return graph_model(Graph({**tensors, **more}, "list row b s c t", "sum", ops))


def opened(model: bytes, **more: Any) -> Interpreter:
    interpreter = Interpreter(model_content=model, plugins=BUILTIN, **more)
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Any, *values: Any) -> list[Any] | str:
    """The outputs, or in place of an error its class."""
    for details, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(details["index"], value)
    try:
        interpreter.invoke()
    except (InvokeError, RuntimeError):
        return "refused"
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def same(found: list[Any] | str, wanted: list[Any] | str) -> None:
    assert isinstance(found, str) == isinstance(wanted, str)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        assert np.shape(one) == np.shape(other)


def absorbs(interpreter: Interpreter, graph: int = 0) -> bool:
    return bool(interpreter._subgraphs[graph].absorption.nodes)


def places(*values: int, type: str = "int32", axis: int = 0) -> list[Any]:
    """b, s, c and t of `joined`: along the axis the values, and all of the other axis."""
    pairs = [[value, other] for value, other in zip(values, (0, -1, 0, -1), strict=True)]
    return [np.array(pair if axis == 0 else pair[::-1], type) for pair in pairs]


@pytest.mark.parametrize(("axis", "type"), [(0, "int32"), (1, "int64")])
def test_a_replaced_row_is_as_the_nodes_one_by_one_give_it(axis: int, type: str) -> None:
    length = (4, 3)[axis]
    row = np.full((1, 3) if axis == 0 else (4, 1), -1, np.float32)
    whole, apart = opened(joined(axis, type)), opened(joined(axis, type), experimental_preserve_all_tensors=True)
    for i in (0, 1, length - 1):
        given = [LIST, row, *places(0, i, i + 1, -1, type=type, axis=axis)]
        same(run(whole, *given), run(apart, *given))
    assert (absorbs(whole), absorbs(apart)) == (True, False)
    assert len(whole._subgraphs[0].segments) == 1


@pytest.mark.parametrize(
    "values", [(0, -1, 0, -1), (0, 0, 0, 0), (0, 4, 4, 0), (-1, 2, 3, 1), (0, 5, 0, -1), (1, 1, 5, -1), (0, 1, 3, 2)]
)
def test_what_does_not_have_the_shape_of_the_list_is_as_the_nodes_one_by_one_give_it(values: tuple[int, ...]) -> None:
    whole, apart = opened(joined()), opened(joined(), experimental_preserve_all_tensors=True)
    right = [LIST, ROW, *places(0, 1, 2, -1)]
    for given in (right, [LIST, ROW, *places(*values)], right, [LIST, ROW, *places(*values)], right):
        same(run(whole, *given), run(apart, *given))


def test_a_slice_that_is_narrower_than_the_list_is_refused_as_ever() -> None:
    whole, apart = opened(joined()), opened(joined(), experimental_preserve_all_tensors=True)
    narrow = [LIST, ROW, *(np.array(values, np.int32) for values in ([0, 1], [1, 2], [2, 0], [-1, -1]))]
    for given in (narrow, [LIST, ROW, *places(0, 1, 2, -1)]):
        same(run(whole, *given), run(apart, *given))


def test_inputs_that_are_not_set_again_keep_their_values_and_views_stay_views_when_the_forecast_is_wrong() -> None:
    interpreter = opened(joined())
    run(interpreter, LIST, ROW, *places(0, 1, 2, -1))
    view = interpreter.tensor(interpreter.get_input_details()[1]["index"])
    for index, value in zip((2, 3, 4, 5), places(0, 4, 4, 0)):
        interpreter.set_tensor(interpreter.get_input_details()[index]["index"], value)
    interpreter.invoke()
    [details] = interpreter.get_output_details()
    np.testing.assert_array_equal(interpreter.get_tensor(details["index"]), 2 * np.concatenate([LIST, ROW]))
    view()[...] = 7
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(details["index"])[4], [14, 14, 14])


@pytest.mark.parametrize("values", list(itertools.product((-1, 0, 2, 4), (0, 1))))
def test_a_loop_gives_what_litert_and_the_nodes_one_by_one_give_wherever_it_begins(values: tuple[int, int]) -> None:
    start, sign = values
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=loop())
    litert.allocate_tensors()
    whole, apart = opened(loop()), opened(loop(), experimental_preserve_all_tensors=True)
    row = ROW * sign
    for begin in (0, start, 1):
        given = np.array(begin, np.int32), LIST, row
        found = run(whole, *given)
        same(found, run(apart, *given))
        same(found, run(litert, *given))
    assert absorbs(whole, 2) == (start >= 0)


def test_a_loop_over_a_list_has_static_shapes() -> None:
    interpreter = opened(loop())
    assert not interpreter._subgraphs[0].is_dynamic
    assert not interpreter._subgraphs[2].is_dynamic


def test_a_position_that_leaves_the_list_is_the_error_of_the_slice() -> None:
    interpreter = opened(joined())
    for details, value in zip(interpreter.get_input_details(), [LIST, ROW, *places(0, 5, 0, -1)], strict=True):
        interpreter.set_tensor(details["index"], value)
    with pytest.raises(InvokeError, match="SLICE"):
        interpreter.invoke()


def test_a_slice_of_another_package_is_not_passed_over() -> None:
    from oplet_builtin_ops.ops.slice import REGISTRATION

    calls = []

    def bind(context: Any, node: Node) -> Any:
        assert REGISTRATION.bind is not None
        thunk = REGISTRATION.bind(context, node)

        def counted() -> None:
            calls.append(node.index)
            thunk()

        return counted

    resolver = MutableOpResolver()
    resolver.add_builtin("SLICE", Registration(prepare=REGISTRATION.prepare, bind=bind, pure=True), 1, 5)
    interpreter = opened(joined(), op_resolver=resolver)
    run(interpreter, LIST, ROW, *places(0, 1, 2, -1))
    assert calls == [0, 1]


def test_a_slice_that_the_caller_reads_is_made() -> None:
    place, listed = Spec("int32", [2]), Spec("float32", [4, 3])
    tensors = {"list": listed, "b": place, "s": place, "before": unknown(0), "whole": listed}
    ops = [
        Op("SLICE", "list b s", "before", SliceOptions()),
        Op("CONCATENATION", "before", "whole", ConcatenationOptions(axis=0)),
    ]
    interpreter = opened(graph_model(Graph(tensors, "list b s", "before whole", ops)))
    same(run(interpreter, LIST, *places(0, 2, 0, 0)[:2]), [LIST[:2], LIST[:2]])


def test_what_is_never_made_cannot_be_read() -> None:
    interpreter = opened(joined())
    run(interpreter, LIST, ROW, *places(0, 1, 2, -1))
    before = next(details["index"] for details in interpreter.get_tensor_details() if details["name"] == "before")
    with pytest.raises(TensorError, match="experimental_preserve_all_tensors"):
        interpreter.get_tensor(before)


def test_a_model_with_state_runs_its_slices_one_by_one() -> None:
    place, listed = Spec("int32", [2]), Spec("float32", [4, 3])
    tensors = {
        "list": listed, "row": Spec("float32", [1, 3]), "b": place, "s": place, "before": unknown(0), "whole": listed,
        "shape": np.array([2], np.int32), "r": Spec("float32", [2]),
    }  # fmt: skip
    ops = [
        Op("RANDOM_UNIFORM", "shape", "r"),
        Op("SLICE", "list b s", "before", SliceOptions()),
        Op("CONCATENATION", "before row", "whole", ConcatenationOptions(axis=0)),
    ]
    assert not absorbs(opened(graph_model(Graph(tensors, "list row b s", "whole r", ops))))
