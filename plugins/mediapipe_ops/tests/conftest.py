"""What the tests of this package share: a way to run one node with this package's kernels alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers

from oplet import MutableOpResolver
from oplet_mediapipe_ops import register_ops
from oplet_testing import one_op_model, run_op


@pytest.fixture
def run_node() -> Callable[..., Any]:
    """Build a model of one node and run it once.

    `options` is a map, written as FlexBuffers, or the bytes themselves. `resize` gives the inputs the feeds' shapes.
    """
    resolver = MutableOpResolver()
    register_ops(resolver)

    def run(op: str, inputs: Any, outputs: Any, *feeds: Any, options: Any = b"", version: int = 1, resize: bool = False) -> Any:
        encoded = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(options))
        model = one_op_model(op, inputs, outputs, version=version, custom_options=encoded)
        return run_op(model, *feeds, op_resolver=resolver, plugins=[], resize=resize)

    return run


@pytest.fixture
def picture_of_a_person() -> Callable[[int, int], Any]:
    """Draws a person of a height and width, values 0 to 1."""
    return _person


def _person(height: int, width: int) -> Any:
    """A drawing: a head with eyes, brows and a mouth, on shoulders, before a plain wall."""
    y, x = np.mgrid[0:height, 0:width] / np.array([height, width]).reshape(2, 1, 1)
    picture = np.full((height, width, 3), (0.75, 0.8, 0.85), np.float32)

    def blob(cx: float, cy: float, rx: float, ry: float, colour: tuple[float, float, float]) -> None:
        picture[((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1] = colour

    blob(0.5, 1.05, 0.42, 0.3, (0.2, 0.25, 0.5))
    blob(0.5, 0.38, 0.27, 0.35, (0.25, 0.15, 0.1))
    blob(0.5, 0.45, 0.22, 0.3, (0.85, 0.65, 0.55))
    for side in (-0.09, 0.09):
        blob(0.5 + side, 0.4, 0.05, 0.02, (0.95, 0.95, 0.95))
        blob(0.5 + side, 0.4, 0.018, 0.02, (0.1, 0.1, 0.1))
        blob(0.5 + side, 0.34, 0.06, 0.01, (0.2, 0.12, 0.1))
    blob(0.5, 0.5, 0.025, 0.04, (0.75, 0.55, 0.45))
    blob(0.5, 0.6, 0.08, 0.02, (0.7, 0.3, 0.3))
    return picture[None]
