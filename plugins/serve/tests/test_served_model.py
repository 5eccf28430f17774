"""A served model without its server: how many rows run at once, and which requests are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.serve.tests.models import mirror

from oplet import ModelBuilder
from oplet.errors import LimitError, TensorError
from oplet_serve.options import Options
from oplet_serve.served_model import ServedModel

Array = np.ndarray[Any, Any]


@pytest.fixture
def floor(tmp_path: Path) -> str:
    """A model of any number of rows."""
    path = tmp_path / "floor.tflite"
    path.write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    return str(path)


def halves(rows: int) -> Array:
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4) / 2


def test_rows_run_at_once_where_their_bits_stay_the_same_or_so_many_are_asked_for(floor: str, tmp_path: Path) -> None:
    assert ServedModel(floor, Options()).batch_size > 1
    assert ServedModel(floor, Options(), 4).batch_size == 4
    (tmp_path / "flat.tflite").write_bytes(mirror(np.float32, [3]))
    flat = ServedModel(str(tmp_path / "flat.tflite"), Options(), 4)
    assert (flat.takes_rows, flat.batch_size) == (False, 1)


@pytest.mark.parametrize(("rows", "parts"), [(1, [1]), (4, [4]), (5, [4, 1]), (9, [4, 4, 1])])
def test_more_rows_than_run_at_once_run_in_parts(
    rows: int, parts: list[int], floor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = ServedModel(floor, Options(), 4)
    predict, ran = model._predict, []

    def counted(values: dict[str, Array]) -> Any:
        ran.append(len(values["x"]))
        return predict(values)

    monkeypatch.setattr(model, "_predict", counted)
    np.testing.assert_array_equal(model.run({"x": halves(rows)})["y"], np.floor(halves(rows)))
    assert ran == parts


def test_outputs_that_are_wider_for_some_rows_are_refused(floor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, widths = ServedModel(floor, Options(), 4), iter((3, 3, 3, 2))
    monkeypatch.setattr(model, "_predict", lambda values: {"y": np.zeros((len(values["x"]), next(widths)))})
    assert model.run({"x": halves(6)})["y"].shape == (6, 3)
    with pytest.raises(TensorError, match="The output 'y' has another shape for some rows"):
        model.run({"x": halves(6)})


def test_all_inputs_have_as_many_rows_and_no_more_than_allowed(tmp_path: Path) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    a, b, c = (graph.add_tensor(name, np.float32, [1, 4], shape_signature=[-1, 4]) for name in "abc")
    graph.add_operator("MAXIMUM", [a, b], [c])
    graph.set_inputs(a, b)
    graph.set_outputs(c)
    builder.save(tmp_path / "two.tflite")
    model = ServedModel(str(tmp_path / "two.tflite"), Options(max_rows=3))
    assert model.rows_of({"a": halves(3), "b": halves(3)}) == 3
    for values, told in (
        ({"a": halves(2), "b": halves(3)}, "different numbers of rows: 'a' 2, 'b' 3"),
        ({"a": halves(2)}, "The input 'b' is missing"),
    ):
        with pytest.raises(TensorError, match=told):
            model.rows_of(values)
    with pytest.raises(LimitError, match="has 4 rows, and one may have 3"):
        model.rows_of({"a": halves(4), "b": halves(4)})
    small = ServedModel(str(tmp_path / "two.tflite"), Options(max_tensor_bytes=32))
    assert small.rows_of({"a": halves(2), "b": halves(2)}) == 2
    with pytest.raises(LimitError, match="of 3 rows would have 48 bytes, and one may have 32"):
        small.rows_of({"a": halves(3), "b": halves(3)})
