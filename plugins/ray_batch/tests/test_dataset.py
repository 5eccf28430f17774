"""Datasets of Ray Data through actors, on a local cluster."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oplet
from oplet import Predictor
from oplet.errors import ModelError
from oplet_testing import Spec, one_op_model

pytest.importorskip("oplet_builtin_ops")
pytest.importorskip("ray")

from oplet_ray import map_dataset

ROW = Spec("float32", [1, 3], signature=[-1, 3])
MODEL = one_op_model("TANH", [ROW], [ROW])
NAMES = {"inputs": dict.fromkeys(Predictor(MODEL).inputs, "x"), "outputs": dict.fromkeys(Predictor(MODEL).outputs, "y")}


def rows(ids: Any) -> np.ndarray[Any, Any]:
    return np.stack([np.asarray(ids), -np.asarray(ids), np.asarray(ids) % 7], 1).astype(np.float32) / 100


def dataset(ray: Any, count: int, blocks: int = 4) -> Any:
    return ray.data.range(count, override_num_blocks=blocks).map_batches(
        lambda batch: {"id": batch["id"], "x": rows(batch["id"])}, num_cpus=0.1
    )


def collected(dataset: Any) -> dict[int, Any]:
    """The results by number; a number that comes twice fails."""
    found: dict[int, Any] = {}
    for batch in dataset.iter_batches(batch_size=64, batch_format="numpy"):
        for number, value in zip(batch["id"].tolist(), batch["y"]):
            assert number not in found
            found[number] = value
    return found


@pytest.mark.parametrize("batch_size", [1, 7, 64])
def test_two_workers_give_what_a_serial_loop_gives(cluster: Any, batch_size: int) -> None:
    found = collected(map_dataset(dataset(cluster, 200), MODEL, workers=2, batch_size=batch_size, keep=["id"], **NAMES))
    assert sorted(found) == list(range(200))
    predict = Predictor(MODEL)
    for number, value in found.items():
        [wanted] = predict(rows([number])).values()
        np.testing.assert_array_equal(value, wanted[0])


def test_it_is_an_attribute_of_oplet() -> None:
    assert oplet.ray.map_dataset is map_dataset  # type: ignore[attr-defined]


def test_wrong_arguments_are_refused_before_anything_runs(cluster: Any) -> None:
    with pytest.raises(ValueError, match="workers is 0"):
        map_dataset(dataset(cluster, 4), MODEL, workers=0)
    with pytest.raises(ModelError):
        map_dataset(dataset(cluster, 4), 7)  # type: ignore[arg-type]


def workers_of_ray() -> list[int]:
    """The processes of the actors that hold a model."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if line.startswith(b"ray::") and b"PredictBatches" in line:
            found.append(int(path.parent.name))
    return found


@pytest.mark.environment
@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are found by their names in /proc")
def test_ten_thousand_rows_with_a_worker_killed_half_way_are_none_lost_and_none_doubled(cluster: Any) -> None:
    mapped = map_dataset(dataset(cluster, 10_000, blocks=100), MODEL, workers=2, batch_size=50, keep=["id"], **NAMES)
    found: dict[int, Any] = {}
    killed = 0
    for batch in mapped.iter_batches(batch_size=50, batch_format="numpy", prefetch_batches=0):
        for number, value in zip(batch["id"].tolist(), batch["y"]):
            assert number not in found
            found[number] = value
        if not killed:  # on a busy machine the workers are done before a tenth of the rows has come here
            for pid in workers_of_ray()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed = pid
    assert killed
    assert sorted(found) == list(range(10_000))
    [wanted] = Predictor(MODEL)(rows(np.arange(10_000))).values()
    np.testing.assert_array_equal(np.stack([found[number] for number in range(10_000)]), wanted)
