"""Constants that lie beside the model, and scales of blocks: what a stranger's file may say of them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, ModelBuilder
from oplet.builder import BlockwiseQuantization, QuantizationParameters
from oplet.errors import ModelError, PrepareError
from oplet.ops.tensor import Quantization, Tensor
from oplet.schema.enums import TensorType

KINDS = [TensorType.FLOAT32, TensorType.INT64, TensorType.INT4, TensorType.BOOL, TensorType.STRING]


def beside(folder: Path, kind: TensorType, held: bytes) -> Path:
    """A model whose constant of five values is in a file of these bytes."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    external = builder.add_external_buffer("weights.bin", bytes(64))
    w = main.add_tensor("w", kind, [5], external_buffer=external)
    x, y = (main.add_tensor(name, "float32", [1]) for name in "xy")
    main.add_operator("RELU", [x], [y])
    main.set_inputs(x)
    main.set_outputs(y, w)
    builder.root.external_buffers[0].length = len(held)  # type: ignore[index]
    builder.save(folder / "m.tflite")
    (folder / "weights.bin").write_bytes(held)
    return folder / "m.tflite"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", [b"\1", b"\1\2"])
def test_a_constant_beside_the_model_that_is_too_short_is_refused_when_it_is_loaded(
    kind: TensorType, held: bytes, tmp_path: Path
) -> None:
    match = (
        "num of string|buffer has"
        if kind is TensorType.STRING
        else r"requires \d+ bytes for the shape \[5\].* external buffer 1 has"
    )
    with pytest.raises(ModelError, match=match):
        Interpreter(str(beside(tmp_path, kind, held)))


def test_a_constant_beside_the_model_may_have_more_bytes_than_it_needs(tmp_path: Path) -> None:
    runner = Interpreter(str(beside(tmp_path, TensorType.FLOAT32, np.arange(7, dtype=np.float32).tobytes())))
    runner.allocate_tensors()
    assert runner.get_tensor(0).tolist() == [0, 1, 2, 3, 4]


def in_blocks(scales: Any, zero_points: Any = None, op: str = "TANH") -> Interpreter:
    """A node that knows nothing of blocks, on an input that is quantized by them."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    array = np.asarray(scales) if isinstance(scales, np.float64) else np.asarray(scales, np.float32)
    main.add_tensor("none", "float32", [1])
    at = main.add_tensor("scales", "float32", array.shape, data=array)
    details = BlockwiseQuantization(scales=at, zero_points=-1, block_size=2)
    if zero_points is not None:
        given = np.asarray(zero_points)
        details.zero_points = main.add_tensor("points", given.dtype, given.shape, data=given)
    x = main.add_tensor("x", "int8", [1, 2], quantization=QuantizationParameters(details=details))
    y = main.add_tensor("y", "int8", [1, 2], scale=1 / 128, zero_point=0)
    main.add_operator(op, [x], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    return Interpreter(model_content=builder.to_bytes())


@pytest.mark.parametrize("scales", [0.5, [[0.5]], [0.5], [[0.5, 0.25]], [1e30], [np.nan], [[np.inf]], np.float64(1e300)])
@pytest.mark.parametrize("zero_points", [None, np.int32([1]), np.float32([np.nan]), np.float32([1e30]), np.int64([2**40])])
def test_scales_of_blocks_are_described_without_a_warning(scales: Any, zero_points: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [details] = in_blocks(scales, zero_points).get_input_details()
    assert details["quantization_parameters"]["block_size"] == 2
    assert details["quantization_parameters"]["scales"].size == np.size(scales)


@pytest.mark.parametrize("scales", [0.5, [[0.5]], [0.5], [[0.5, 0.25]]])
@pytest.mark.parametrize("op", ["TANH", "LOGISTIC", "ABS", "RSQRT"])
def test_one_scale_is_not_taken_from_blocks(scales: Any, op: str) -> None:
    """The first one would be a wrong answer without a word."""
    with pytest.raises(PrepareError, match="'x' .* is quantized by blocks"):
        in_blocks(scales, op=op).allocate_tensors()


def test_a_tensor_of_one_scale_has_it() -> None:
    tensor = Tensor(0, "t", TensorType.INT8, (2,))
    assert (tensor.scale, tensor.zero_point) == (0.0, 0)
    tensor.quantization = Quantization(np.float32([0.5]), np.int64([3]))
    assert (tensor.scale, tensor.zero_point) == (0.5, 3)
