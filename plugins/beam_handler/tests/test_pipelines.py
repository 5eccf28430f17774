"""The handler in pipelines: Beam's DirectRunner runs them, nothing is pretended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.metrics import MetricsFilter
from apache_beam.ml.inference.base import KeyedModelHandler, KeyModelMapping, ModelMetadata, RunInference
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.util import assert_that
from plugins.beam_handler.tests.conftest import binary, pictures, serial, unary

from oplet.errors import OpletError, TensorError
from oplet_beam import OpletModelHandler

ONE_PROCESS = PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory", "--no_save_main_session"])


def collect(folder: Path, results: Any, shown: Any) -> None:
    """Write what a pipeline gives to a file, a line each."""
    results | beam.Map(shown) | beam.io.WriteToText(str(folder / "out"), num_shards=1)


def lines(folder: Path) -> list[str]:
    return sorted(line for path in folder.glob("out*") for line in path.read_text().splitlines())


def number_and_scores(result: Any) -> str:
    number, prediction = result
    return f"{number:05} {prediction.inference['probabilities'].tolist()} {prediction.model_id}"


def run_digits(digits: str, count: int, folder: Path, options: PipelineOptions, **settings: Any) -> None:
    """Rows with their numbers as keys through RunInference; the answers are those of single rows, none lost and none twice."""
    rows = pictures(count)
    with beam.Pipeline(options=options) as pipeline:
        results = (
            pipeline
            | beam.Create(list(enumerate(rows)))
            | beam.Reshuffle()
            | RunInference(KeyedModelHandler(OpletModelHandler(digits, **settings)))
        )
        collect(folder, results, number_and_scores)
    wanted = [f"{number:05} {scores.tolist()} {digits}" for number, scores in enumerate(serial(digits, rows))]
    assert lines(folder) == wanted


@pytest.mark.parametrize("size", [1, 7, *(pytest.param(size, marks=pytest.mark.sweep) for size in (2, 64))])
def test_batches_of_any_size_give_the_answers_of_single_rows(digits: str, tmp_path: Path, size: int) -> None:
    run_digits(digits, 150, tmp_path, ONE_PROCESS, min_batch_size=size, max_batch_size=size)


@pytest.mark.sweep
@pytest.mark.parametrize("size", range(1, 65))
def test_batches_of_every_size_give_the_answers_of_single_rows(digits: str, tmp_path: Path, size: int) -> None:
    run_digits(digits, 200, tmp_path, ONE_PROCESS, min_batch_size=size, max_batch_size=size, batch=True)


@pytest.mark.environment
def test_ten_thousand_pictures_give_the_answers_of_single_rows(digits: str, tmp_path: Path) -> None:
    run_digits(digits, 10_000, tmp_path, ONE_PROCESS, max_batch_size=64)


@pytest.mark.environment
@pytest.mark.parametrize(
    "settings", [{}, {"large_model": True}, {"model_copies": 2}], ids=["each its own", "one shared", "two shared"]
)
def test_processes_give_the_answers_of_single_rows(digits: str, tmp_path: Path, settings: dict[str, Any]) -> None:
    options = PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"])
    run_digits(digits, 1000, tmp_path, options, max_batch_size=32, **settings)


def test_a_model_shared_across_processes_gives_the_same_answers_and_errors(digits: str, tmp_path: Path) -> None:
    run_digits(digits, 40, tmp_path, ONE_PROCESS, large_model=True, max_batch_size=16)
    pipeline = beam.Pipeline(options=ONE_PROCESS)
    wrong = np.zeros((8, 8, 1), np.float32)
    _ = pipeline | beam.Create([wrong]) | RunInference(OpletModelHandler(digits, large_model=True))
    with pytest.raises(Exception, match="item 0: input 'image': the value is float32"):
        pipeline.run().wait_until_finish()


def test_examples_are_mappings_where_the_model_has_several_inputs(tmp_path: Path) -> None:
    model = binary(tmp_path / "sub.tflite", "SUB")
    rows = [{"x": np.full(3, n, np.float32), "y": np.full(3, 1, np.float32)} for n in range(5)]
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        results = pipeline | beam.Create(rows) | RunInference(OpletModelHandler(model))
        collect(tmp_path, results, lambda result: str(result.inference["z"].tolist()))
    assert lines(tmp_path) == sorted(str([n - 1.0] * 3) for n in range(5))


def test_inference_args_are_rows_that_all_examples_share(tmp_path: Path) -> None:
    model = binary(tmp_path / "sub.tflite", "SUB")
    shared = {"y": np.array([1, 2, 3], np.float32)}
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        rows = pipeline | beam.Create([np.full(3, 5, np.float32)])
        results = rows | RunInference(OpletModelHandler(model), inference_args=shared)
        collect(tmp_path, results, lambda result: str(result.inference["z"].tolist()))
    assert lines(tmp_path) == ["[4.0, 3.0, 2.0]"]


def test_functions_before_and_after_are_applied(digits: str, tmp_path: Path) -> None:
    rows = pictures(20)
    handler = (
        OpletModelHandler(digits)
        .with_preprocess_fn(lambda row: (row.astype(np.int16) - 128).astype(np.int8))
        .with_postprocess_fn(lambda result: int(result.inference["probabilities"].argmax()))
    )
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        results = pipeline | beam.Create([row.astype(np.int16) + 128 for row in rows]) | RunInference(handler)
        collect(tmp_path, results, str)
    assert lines(tmp_path) == sorted(str(int(scores.argmax())) for scores in serial(digits, rows))


def test_a_bad_example_fails_its_batch_which_comes_back_with_the_error(digits: str, tmp_path: Path) -> None:
    rows = [(number, row if number != 3 else row[:4]) for number, row in enumerate(pictures(9))]
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        handler = KeyedModelHandler(OpletModelHandler(digits, min_batch_size=1, max_batch_size=1))
        good, bad = pipeline | beam.Create(rows) | RunInference(handler).with_exception_handling()
        collect(tmp_path, good, lambda result: str(result[0]))
        assert_that(bad.failed_inferences, failed_as("got a row of the shape [4, 8, 1], but it takes [8, 8, 1]"))
    assert lines(tmp_path) == [str(number) for number in range(9) if number != 3]


def failed_as(message: str) -> Any:
    def check(found: list[Any]) -> None:
        [(batch, (kind, text, *_))] = found
        assert [number for number, _ in batch] == [3]
        assert kind is TensorError
        assert message in text

    return check


def test_a_bad_example_s_error_may_be_its_inference(digits: str, tmp_path: Path) -> None:
    rows = [(number, row if number != 3 else row[:4]) for number, row in enumerate(pictures(9))]
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        handler = KeyedModelHandler(OpletModelHandler(digits, min_batch_size=9, errors="return"))
        results = pipeline | beam.Create(rows) | RunInference(handler)
        collect(tmp_path, results, lambda result: f"{result[0]} {isinstance(result[1].inference, OpletError)}")
    assert lines(tmp_path) == [f"{number} {number == 3}" for number in range(9)]


def test_metrics_count_examples_and_bytes_under_the_handler_s_name(digits: str) -> None:
    pipeline = beam.Pipeline(options=ONE_PROCESS)
    _ = pipeline | beam.Create(pictures(30)) | RunInference(OpletModelHandler(digits, max_batch_size=10))
    result = pipeline.run()
    result.wait_until_finish()
    found = result.metrics().query(MetricsFilter().with_namespace("BeamML_Oplet"))
    counters = {each.key.metric.name: each.committed for each in found["counters"]}
    sums = {each.key.metric.name: each.committed.sum for each in found["distributions"]}
    assert counters["num_inferences"] == 30
    assert sums["inference_request_batch_size"] == 30
    assert sums["inference_request_batch_byte_size"] == 30 * 64
    assert "load_model_latency_milli_secs" in sums


def test_a_side_input_brings_another_model(tmp_path: Path) -> None:
    first, second = unary(tmp_path / "neg.tflite", "NEG"), unary(tmp_path / "abs.tflite", "ABS")
    rows = [np.array([-1, 2, -3], np.float32)] * 4
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        update = pipeline | "update" >> beam.Create([ModelMetadata(second, "abs")])
        results = pipeline | "rows" >> beam.Create(rows) | RunInference(OpletModelHandler(first), model_metadata_pcoll=update)
        collect(tmp_path, results, lambda result: f"{result.inference['y'].tolist()} {os.path.basename(result.model_id)}")
    assert lines(tmp_path) == ["[1.0, 2.0, 3.0] abs.tflite"] * 4


def test_keys_choose_among_models(tmp_path: Path) -> None:
    first, second = unary(tmp_path / "neg.tflite", "NEG"), unary(tmp_path / "abs.tflite", "ABS")
    row = np.array([-1, 2, -3], np.float32)
    handler = KeyedModelHandler(
        [KeyModelMapping(["neg"], OpletModelHandler(first)), KeyModelMapping(["abs"], OpletModelHandler(second))]
    )
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        results = pipeline | beam.Create([("neg", row), ("abs", row)]) | RunInference(handler)
        collect(tmp_path, results, lambda result: f"{result[0]} {result[1].inference['y'].tolist()}")
    assert lines(tmp_path) == ["abs [1.0, 2.0, 3.0]", "neg [1.0, -2.0, 3.0]"]


def test_rows_of_pandas_are_examples(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    model = unary(tmp_path / "neg.tflite", "NEG")
    table = pandas.DataFrame({"a": [1.0, 4.0], "b": [2, 5], "c": [3.5, 6.5]})
    rows = [row for _, row in table.iterrows()] + [table.iloc[[1]]]
    with beam.Pipeline(options=ONE_PROCESS) as pipeline:
        results = pipeline | beam.Create(rows) | RunInference(OpletModelHandler(model))
        collect(tmp_path, results, lambda result: str(result.inference["y"].tolist()))
    assert lines(tmp_path) == ["[-1.0, -2.0, -3.5]", "[-4.0, -5.0, -6.5]", "[-4.0, -5.0, -6.5]"]
