"""What tests of `oplet run` on many rows share: a model of one input and one of two, pictures, and the values of rows run one by one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oplet import Interpreter, ModelBuilder


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder of 12 pictures of several sizes, two of them in a folder of their own."""
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    random = np.random.default_rng(0)
    for number in range(12):
        pixels = random.integers(0, 255, (8 + number, 8 + number % 3), np.uint8)
        Image.fromarray(pixels).save(folder / ("more" if number > 9 else ".") / f"{number:02}.png")
    return folder


@pytest.fixture
def images() -> np.ndarray:
    """Twenty rows for the model that tells digits apart, as real values."""
    return np.random.default_rng(1).random((20, 8, 8, 1), np.float32)


@pytest.fixture
def expected(digits: Path) -> Callable[[np.ndarray], np.ndarray]:
    """The real values of that model's outputs, by an interpreter, row by row."""

    def run(rows: np.ndarray) -> np.ndarray:
        interpreter = Interpreter(str(digits))
        interpreter.allocate_tensors()
        into, out = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
        scale, zero = into["quantization"]
        results = []
        for row in rows:
            whole = np.floor(row / np.float32(scale) + np.float32(0.5)) + zero
            interpreter.set_tensor(into["index"], np.clip(whole, -128, 127).astype(np.int8)[np.newaxis])
            interpreter.invoke()
            value = interpreter.get_tensor(out["index"])[0]
            results.append((value.astype(np.float32) - out["quantization"][1]) * np.float32(out["quantization"][0]))
        return np.array(results)

    return run


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """z = x + y for rows of two floats."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(name, "float32", [1, 2]) for name in ("x", "y", "z")]
    main.add_operator("ADD", tensors[:2], tensors[2:])
    main.set_inputs(0, 1)
    main.set_outputs(2)
    path = tmp_path / "sums.tflite"
    path.write_bytes(builder.to_bytes())
    return path
