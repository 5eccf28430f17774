"""Models of one recurrent layer, random but for what a test says, and several invokes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet_testing import invoke_steps, litert_interpreter
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]


@dataclass
class Drawer:
    """Draws tensors of the kind of the layer: float, hybrid or integer."""

    kind: str
    random: np.random.Generator

    def weights(self, *shape: int) -> Spec | Array:
        if self.kind == "float":
            return self.random.normal(0, 0.5, shape).astype(np.float32)
        values = self.random.integers(-127, 128, shape).astype(np.int8)
        if self.kind == "hybrid uint8":
            values = values.view(np.uint8)
        return Spec(values.dtype, shape, float(self.random.uniform(0.003, 0.02)), 0, data=values)

    def side(self, *shape: int) -> Spec | Array:
        """Peephole weights."""
        return self._int16(shape) if self.kind == "integer" else self.weights(*shape)

    def norm(self, *shape: int) -> Spec | Array:
        return self._int16(shape) if self.kind == "integer" else self.random.normal(1, 0.3, shape).astype(np.float32)

    def _int16(self, shape: Sequence[int]) -> Spec:
        values = self.random.integers(-32767, 32768, shape).astype(np.int16)
        return Spec("int16", shape, float(self.random.uniform(1e-5, 5e-5)), 0, data=values)

    def bias(self, *shape: int) -> Spec | Array:
        if self.kind != "integer":
            return self.random.normal(0, 0.3, shape).astype(np.float32)
        return Spec("int32", shape, 1e-4, 0, data=self.random.integers(-3000, 3000, shape).astype(np.int32))

    def feeds(self, shape: Sequence[int], count: int = 3) -> list[list[Array]]:
        if self.kind == "integer":
            return [[self.random.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]
        return [[self.random.normal(0, 1, shape).astype(np.float32)] for _ in range(count)]


@pytest.fixture
def draw() -> Callable[..., Drawer]:
    """`draw(kind, seed)` gives a source of tensors."""
    return lambda kind, seed=0: Drawer(kind, np.random.default_rng(seed))


@pytest.fixture(scope="session")
def agree() -> Callable[..., None]:
    """`agree(model, steps)` invokes oplet and LiteRT with the same inputs, state going on, and compares all outputs."""
    litert = litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")

    def compare(model: bytes, steps: list[list[Array]], tolerance: float = 1e-5) -> None:
        wanted = invoke_steps(litert(model_content=model), steps)
        for results, answers in zip(invoke_steps(Interpreter(model_content=model), steps), wanted):
            for result, answer in zip(results, answers):
                assert result.shape == answer.shape
                if result.dtype == np.float32:
                    np.testing.assert_allclose(result, answer, rtol=tolerance, atol=tolerance)
                else:
                    np.testing.assert_array_equal(result, answer)

    return compare
