"""What the tests of the Beam handler share: models, pictures, and the answers of single rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import ModelBuilder, Predictor

pytest.importorskip("apache_beam")
pytest.importorskip("oplet_builtin_ops")

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "digits"


@pytest.fixture(scope="session")
def digits() -> str:
    """A model with the input "image", int8 [8, 8, 1], and the output "probabilities", int8 [10]."""
    return str(EXAMPLES / "digits_int8.tflite")


def pictures(count: int) -> list[Any]:
    """Random rows of the digits model."""
    return list(np.random.default_rng(5).integers(-128, 128, (count, 8, 8, 1), np.int8))


def binary(path: Path, op: str) -> str:
    """The path of a model that computes z, float32 [3], from the float32 rows [3] of x and y."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, z = (graph.add_tensor(name, np.float32, [1, 3]) for name in "xyz")
    graph.add_operator(op, [x, y], [z])
    graph.set_inputs(x, y)
    graph.set_outputs(z)
    path.write_bytes(builder.to_bytes())
    return str(path)


def unary(path: Path, op: str, dtype: type = np.float32) -> str:
    """The path of a model that computes y from the rows [3] of x."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, dtype, [1, 3]) for name in "xy")
    graph.add_operator(op, [x], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    path.write_bytes(builder.to_bytes())
    return str(path)


def serial(model: str, rows: list[Any]) -> list[Any]:
    """The answers of the model's first output, row by row."""
    with Predictor(model, batch=False) as predict:
        return [next(iter(predict(row[np.newaxis]).values()))[0] for row in rows]
