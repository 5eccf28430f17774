"""How graphs are compiled: on how many threads."""

from __future__ import annotations

import numpy as np
import openvino
import pytest
from openvino import opset13 as ov

from oplet_openvino_delegate import compiling


def convolution(size: int, channels: int) -> openvino.Model:
    x = ov.parameter([1, channels, size, size], openvino.Type.f32)
    weights = np.zeros((channels, channels, 3, 3), np.float32)
    made = ov.convolution(x, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return openvino.Model([ov.result(made)], [x], "convolution")


def product(rows: int, depth: int, columns: int, *, turned: bool) -> openvino.Model:
    x = ov.parameter([depth, rows] if turned else [rows, depth], openvino.Type.f32)
    made = ov.matmul(x, np.zeros((depth, columns), np.float32), turned, False)
    return openvino.Model([ov.result(made)], [x], "product")


def addition() -> openvino.Model:
    x = ov.parameter([4], openvino.Type.f32)
    return openvino.Model([ov.result(ov.add(x, x))], [x], "addition")


@pytest.mark.parametrize(
    ("model", "threads"),
    [
        (convolution(4, 8), 1),
        (convolution(64, 16), 2),
        (product(2, 4000, 2, turned=True), 1),
        (product(100, 100, 100, turned=False), 2),
        (addition(), 2),
    ],
)
def test_a_graph_of_small_nodes_runs_on_one_thread(model: openvino.Model, threads: int) -> None:
    compiled = compiling.compiled(model, "CPU", compiling.settings("CPU", 2, ""))
    assert compiled.get_property("INFERENCE_NUM_THREADS") == threads
