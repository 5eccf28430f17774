"""The handler by itself: its arguments, what it loads, and its errors."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from apache_beam.io.localfilesystem import LocalFileSystem
from plugins.beam_handler.tests.conftest import binary, pictures, serial, unary

from oplet.errors import DelegateError, ModelError, OpletError, TensorError
from oplet_beam import OpletModelHandler


def test_an_unknown_option_is_refused_and_not_left_out(digits: str) -> None:
    with pytest.raises(TypeError, match="no option 'max_batchsize'; Beam's are .*max_batch_size"):
        OpletModelHandler(digits, max_batchsize=3)


def test_it_is_an_attribute_of_oplet() -> None:
    import oplet.beam

    assert oplet.beam.OpletModelHandler is OpletModelHandler


def test_batching_and_sharing_are_beam_s(digits: str) -> None:
    handler = OpletModelHandler(digits, min_batch_size=2, max_batch_size=8, max_batch_duration_secs=3, model_copies=2)
    assert handler.batch_elements_kwargs() == {"min_batch_size": 2, "max_batch_size": 8, "max_batch_duration_secs": 3}
    assert handler.share_model_across_processes()
    assert handler.model_copies() == 2
    assert not OpletModelHandler(digits).share_model_across_processes()


def test_environment_variables_are_set_before_the_model_is_loaded(digits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_BEAM_TEST", "before")
    OpletModelHandler(digits, env_vars={"OPLET_BEAM_TEST": "after"}).set_environment_vars()
    assert os.environ["OPLET_BEAM_TEST"] == "after"


def test_a_pickled_handler_loads_the_model_it_was_made_with(digits: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(Path(digits).parent)
    handler = OpletModelHandler(Path("digits_int8.tflite"))
    monkeypatch.chdir(tmp_path)  # a worker is elsewhere
    copy = pickle.loads(pickle.dumps(handler))
    [row] = rows = pictures(1)
    [result] = copy.run_inference([row], copy.load_model())
    assert np.array_equal(result.inference["probabilities"], serial(digits, rows)[0])
    assert result.example is row
    assert result.model_id == digits


class Shelf(LocalFileSystem):  # type: ignore[misc, unused-ignore]
    """A file system of Beam's with a scheme of its own, as gs:// has."""

    @classmethod
    def scheme(cls) -> str:
        return "shelf"

    def open(self, path: str, *args: Any, **settings: Any) -> Any:
        return super().open(path.removeprefix("shelf:/"), *args, **settings)


def test_a_model_is_read_where_beam_reads_files(tmp_path: Path) -> None:
    path = unary(tmp_path / "neg.tflite", "NEG")
    handler = OpletModelHandler(f"shelf:/{path}")
    [result] = handler.run_inference([np.ones(3, np.float32)], handler.load_model())
    assert result.inference["y"].tolist() == [-1, -1, -1]
    assert result.model_id == f"shelf:/{path}"
    with pytest.raises(ModelError, match="The model 'shelf://gone.tflite' cannot be read by Beam's FileSystems"):
        OpletModelHandler("shelf://gone.tflite").load_model()
    with pytest.raises(ModelError, match="The model 'nowhere://neg.tflite' cannot be read by Beam's FileSystems"):
        OpletModelHandler("nowhere://neg.tflite").load_model()
    (tmp_path / "empty.tflite").touch()
    with pytest.raises(ModelError, match="is empty"):
        OpletModelHandler(f"shelf:/{tmp_path}/empty.tflite").load_model()


def test_a_missing_model_fails_when_it_is_loaded_and_not_in_the_first_batch(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no file '.*gone.tflite' here"):
        OpletModelHandler(tmp_path / "gone.tflite").load_model()


@pytest.mark.parametrize("path", [None, ""])
def test_an_empty_update_keeps_the_model(digits: str, path: str | None) -> None:
    handler = OpletModelHandler(digits)
    handler.update_model_path(path)
    [result] = handler.run_inference(pictures(1), handler.load_model())
    assert result.model_id == digits


def test_wrong_arguments_are_refused_where_the_pipeline_is_built(digits: str) -> None:
    with pytest.raises(ModelError, match="takes the path or address of a model, which b'TFL3' is not"):
        OpletModelHandler(b"TFL3")  # type: ignore[arg-type]
    with pytest.raises(TensorError, match="errors is 'raise' or 'return', and not 'ignore'"):
        OpletModelHandler(digits, errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(DelegateError):
        OpletModelHandler(digits, delegates=[object()])
    with pytest.raises(TensorError, match="num_threads"):
        OpletModelHandler(digits, num_threads=0)


def test_inference_args_are_checked_when_the_pipeline_is_built(digits: str) -> None:
    handler = OpletModelHandler(digits)
    handler.validate_inference_args(None)
    handler.validate_inference_args({"image": 1})
    with pytest.raises(TensorError, match="and 3 is no name"):
        handler.validate_inference_args({3: 1})  # type: ignore[dict-item]
    with pytest.raises(TensorError, match="inference_args is a mapping"):
        handler.validate_inference_args(["image"])  # type: ignore[arg-type]


def test_an_input_given_twice_is_refused(tmp_path: Path) -> None:
    handler = OpletModelHandler(binary(tmp_path / "sub.tflite", "SUB"))
    row = np.zeros(3, np.float32)
    with pytest.raises(TensorError, match="item 0: the input 'y' is in the example and in inference_args"):
        handler.run_inference([{"x": row, "y": row}], handler.load_model(), {"y": row})
    with pytest.raises(TensorError, match="item 0: .* has 0 inputs besides those of inference_args"):
        handler.run_inference([row], handler.load_model(), {"x": row, "y": row})


def test_errors_keep_their_number_in_the_batch(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    handler = OpletModelHandler(unary(tmp_path / "neg.tflite", "NEG"), errors="return")
    good, short = np.ones(3, np.float32), np.ones(2, np.float32)
    two_rows = pandas.DataFrame({"a": [1, 2]})
    found = [r.inference for r in handler.run_inference([good, two_rows, good, short], handler.load_model())]
    assert [isinstance(each, OpletError) for each in found] == [False, True, False, True]
    assert str(found[1]) == "item 1: an example is one row, and not a DataFrame of 2; give its rows one by one."
    assert str(found[3]).startswith("item 3: input 'x': got a row of the shape [2]")


def test_cells_of_pandas_become_the_input_s_dtype_where_it_holds_them(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    model = OpletModelHandler(unary(tmp_path / "neg.tflite", "NEG", np.int32), errors="return").load_model()
    rows = [
        pandas.Series({"a": 1, "b": 2, "c": 3}),
        pandas.Series({"x": np.array([4, 5, 6], np.int32)}),
        pandas.Series({"a": 1, "b": 2, "c": 2**40}),
        pandas.Series({"a": 1, "b": 2, "c": 2.5}),
        pandas.Series({"a": 1, "b": 2}),
    ]
    one, named, large, broken, few = model.run(rows)
    assert isinstance(one, dict)
    assert one["y"].tolist() == [-1, -2, -3]
    assert isinstance(named, dict)
    assert named["y"].tolist() == [-4, -5, -6]
    assert f"the column 'c' has {2**40}" in repr(large).replace("np.int64(", "").replace(")", "")
    assert "which int32 does not hold" in str(broken)
    assert "a row of 2 columns does not fill [3]" in str(few)


def test_bytes_are_those_of_the_values(digits: str) -> None:
    pandas = pytest.importorskip("pandas")
    handler = OpletModelHandler(digits)
    text = np.array([b"abc", b"de"], object)
    examples = [
        pictures(1)[0],
        {"x": np.zeros(3, np.float32), "y": text},
        pandas.Series([1.0, 2.0]),
        pandas.DataFrame({"a": [1.0]}),
    ]
    assert handler.get_num_bytes(examples) == 64 + 12 + 5 + 16 + 8
