"""One server for all tests that ask it: the digits, models of every type, versions and signatures, with small bounds."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest
from plugins.serve.tests.models import counting, mirror, two_signatures

#: MLServer runs on Python 3.10 to 3.12; elsewhere what reads tensors is tested alone.
HAS_MLSERVER = importlib.util.find_spec("mlserver") is not None
if not HAS_MLSERVER:
    collect_ignore_glob = [path.name for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_tensors.py"]

if TYPE_CHECKING:
    from plugins.serve.tests.serving import Server

#: Types by the protocol's names, as models are made of them.
TYPES = {
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "FP32": np.float32,
    "FP64": np.float64,
    "BYTES": object,
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of models."""
    made = tmp_path_factory.mktemp("models")
    for name, dtype in TYPES.items():
        (made / f"mirror_{name}.tflite").write_bytes(mirror(dtype, [1, 4], op="RESHAPE"))
    (made / "floor.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    (made / "free.tflite").write_bytes(mirror(np.float32, [1, 1], [-1, -1]))
    (made / "flat.tflite").write_bytes(mirror(np.float32, [3]))
    (made / "two.tflite").write_bytes(two_signatures())
    (made / "tally.tflite").write_bytes(counting())
    for version, size in (("1", 2), ("2", 5), ("10", 7)):
        (made / "wide" / version).mkdir(parents=True)
        (made / "wide" / version / "any.tflite").write_bytes(mirror(np.float32, [1, size]))
    return made


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[Server]:
    """The server."""
    from plugins.serve.tests.serving import DIGITS, served

    bounds = [
        "--max-request-bytes",
        100_000,
        "--max-rows",
        2000,
        "--max-batch-size",
        16,
        "--max-batch-time",
        0.02,
        "--max-seconds",
        10,
    ]
    with served(folder, DIGITS, *bounds) as running:
        yield running
        status, written = running.end()
        assert status == 0, written
        assert "Traceback" not in written, written
