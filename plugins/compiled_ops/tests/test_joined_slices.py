"""CONCATENATION that absorbs slices, compiled: alone, joined with its neighbours, and in loops that run as one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.builtin_ops.tests.shaping.list_loops import loop
from plugins.compiled_ops.tests.compiled import compiled

from oplet import Interpreter
from oplet.errors import InvokeError, PrepareError
from oplet.schema.options import ConcatenationOptions, SliceOptions
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

OF = ConcatenationOptions(axis=0)
LIST = np.arange(12, dtype=np.float32).reshape(4, 3)


def joined(axis: int, first: str, second: str, dtype: str = "float32") -> bytes:
    """list[: end of the first slice], row, list[begin of the second slice :], with positions of two types."""
    row, signature = ([1, 3], [-1, 3]) if axis == 0 else ([4, 1], [4, -1])
    part, whole = Spec(dtype, row, signature=signature), Spec(dtype, [4, 3])
    tensors = {
        "list": whole, "row": Spec(dtype, row), "b": Spec(first, [2]), "s": Spec(first, [2]), "c": Spec(second, [2]),
        "t": Spec(second, [2]), "before": part, "after": part, "whole": whole,
    }  # fmt: skip
    ops = [
        Op("SLICE", "list b s", "before", SliceOptions()),
        Op("SLICE", "list c t", "after", SliceOptions()),
        Op("CONCATENATION", "before row after", "whole", ConcatenationOptions(axis=axis)),
    ]
    return graph_model(Graph(tensors, "list row b s c t", "whole", ops))


def run(interpreter: Interpreter, *values: Any) -> list[Any] | None:
    """The outputs; None where the run fails."""
    for details, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(details["index"], value)
    try:
        interpreter.invoke()
    except (InvokeError, PrepareError):
        return None
    return [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]


def same(found: list[Any] | None, wanted: list[Any] | None) -> None:
    assert (found is None) == (wanted is None)
    for one, other in zip(found or (), wanted or (), strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.shape == other.shape


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("first", "second"), [("int32", "int32"), ("int64", "int32")])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_it_gives_the_same_bits_as_numpy_s_kernels(axis: int, dtype: str, first: str, second: str, threads: int) -> None:
    model = joined(axis, first, second, dtype)
    fast = Interpreter(model_content=model, num_threads=threads)
    slow = Interpreter(model_content=model, plugins=["oplet-builtin-ops"])
    fast.allocate_tensors()
    slow.allocate_tensors()
    assert compiled(fast) == 1
    length = (4, 3)[axis]
    row = np.full((1, 3) if axis == 0 else (4, 1), -1, dtype)
    for i in (0, 1, 2, length - 1, 0):
        places = [[0, 0], [i, -1], [i + 1, 0], [-1, -1]]
        given = [
            np.array(place if axis == 0 else place[::-1], type) for place, type in zip(places, (first, first, second, second))
        ]
        same(run(fast, LIST.astype(dtype), row, *given), run(slow, LIST.astype(dtype), row, *given))
    assert len(fast._subgraphs[0].segments) == 1


@pytest.mark.parametrize(
    "places",
    [
        [[0, 0], [-1, -1], [0, 0], [-1, -1]],
        [[0, 0], [0, -1], [0, 0], [0, -1]],
        [[0, 0], [4, -1], [4, 0], [-1, -1]],
        [[-1, 0], [2, -1], [3, 0], [-1, -1]],
        [[0, 0], [5, -1], [0, 0], [-1, -1]],
        [[2**31 - 1, 0], [2**31 - 1, -1], [0, 0], [-1, -1]],
        [[0, 1], [1, 2], [2, 0], [-1, -1]],
        [[0, 0], [-2, -1], [2, 0], [-1, -1]],
    ],
)
def test_a_wrong_forecast_gives_what_numpy_s_kernels_give(places: list[list[int]]) -> None:
    model, row = joined(0, "int32", "int32"), -np.ones((1, 3), np.float32)
    fast, slow = Interpreter(model_content=model), Interpreter(model_content=model, plugins=["oplet-builtin-ops"])
    fast.allocate_tensors()
    slow.allocate_tensors()
    right = [np.array(place, np.int32) for place in ([0, 0], [1, -1], [2, 0], [-1, -1])]
    given = [np.array(place, np.int32) for place in places]
    for some in (right, right, given, right, given):
        same(run(fast, LIST, row, *some), run(slow, LIST, row, *some))


@pytest.mark.parametrize("start", [-1, 0, 2, 4])
def test_a_loop_over_a_list_runs_as_one_call_until_a_forecast_is_wrong(start: int) -> None:
    row = np.array([[1, -2, 3]], np.float32)
    fast, slow = Interpreter(model_content=loop()), Interpreter(model_content=loop(), plugins=["oplet-builtin-ops"])
    litert = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(model_content=loop())
    for interpreter in (fast, slow, litert):
        interpreter.allocate_tensors()
    for begin in (0, 0, 0):
        same(run(fast, np.array(begin, np.int32), LIST, row), run(slow, np.array(begin, np.int32), LIST, row))
    assert fast._subgraphs[0].segments[0].thunks[0]._rounds is not None  # type: ignore[attr-defined]
    for begin in (start, 0, start, 1):
        found = run(fast, np.array(begin, np.int32), LIST, row)
        same(found, run(slow, np.array(begin, np.int32), LIST, row))
        same(found, run(litert, np.array(begin, np.int32), LIST, row))
