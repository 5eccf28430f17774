"""The callable that actors hold, called as an actor calls it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from oplet import Predictor
from oplet.errors import ModelError, TensorError
from oplet_testing import Graph, Op, Spec, graph_model, one_op_model

pytest.importorskip("oplet_builtin_ops")
pytest.importorskip("ray")

from oplet_ray import PredictBatches

ROW = Spec("float32", [1, 3], signature=[-1, 3])
RELU = one_op_model("RELU", [ROW], [ROW])
TWO = graph_model(Graph({"a": ROW, "b": ROW, "y": ROW}, "a b", "y", [Op("SUB", "a b", "y")]), signatures={"serve": 0})
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) - 5


def test_the_only_column_is_the_only_input() -> None:
    made = PredictBatches(RELU)({"x": ROWS})
    assert set(made) == {"x", *Predictor(RELU).outputs} - {"x"}
    [output] = [name for name in made if name != "x"]
    np.testing.assert_array_equal(made[output], np.maximum(ROWS, 0))


def test_columns_are_named_and_others_kept() -> None:
    predict = PredictBatches(TWO, inputs={"a": "left", "b": "right"}, outputs={"y": "difference"}, keep=["id"])
    made = predict({"id": np.arange(4), "left": ROWS, "right": ROWS + 1, "more": np.zeros(4)})
    assert set(made) == {"id", "difference"}
    np.testing.assert_array_equal(made["difference"], np.full((4, 3), -1, np.float32))


def test_columns_that_are_called_as_the_inputs_need_no_names() -> None:
    made = PredictBatches(TWO)({"id": np.arange(4), "a": ROWS, "b": ROWS})
    assert set(made) == {"id", "y"}


def test_types_are_cast_where_no_value_changes() -> None:
    predict = PredictBatches(RELU, keep=[])
    [output] = predict({"x": ROWS.astype(np.float64)}).values()
    assert output.dtype == np.float32
    with pytest.raises(TensorError, match="float64"):
        predict({"x": ROWS.astype(np.float64) + 1e-12})


def test_a_missing_column_is_told_with_those_that_are_there() -> None:
    with pytest.raises(KeyError, match="no column b; it has a, and the inputs of <Predictor of .*> are a, b"):
        PredictBatches(TWO)({"a": ROWS})


def test_a_bad_row_ends_the_batch_or_is_told_in_a_column() -> None:
    rows = np.empty(3, object)
    rows[:] = [ROWS[0], np.zeros(4, np.float32), ROWS[1]]
    with pytest.raises(TensorError, match="row 1"):
        PredictBatches(RELU)({"x": rows})
    made = PredictBatches(RELU, errors="column", keep=[], outputs=dict.fromkeys(Predictor(RELU).outputs, "y"))({"x": rows})
    assert [bool(sentence) for sentence in made["error"]] == [False, True, False]
    np.testing.assert_array_equal(made["y"], [np.maximum(ROWS[0], 0), np.zeros(3), np.maximum(ROWS[1], 0)])


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="errors is 'ignore'"):
        PredictBatches(RELU, errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(ModelError):
        PredictBatches(7)  # type: ignore[arg-type]


def test_it_travels_as_its_arguments() -> None:
    again = pickle.loads(pickle.dumps(PredictBatches(RELU, keep=[])))
    [output] = again({"x": ROWS}).values()
    np.testing.assert_array_equal(output, np.maximum(ROWS, 0))
