"""Compiled binary convolutions answer as those of oplet-larq-ops do, which serve the nodes that are declined, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled
from plugins.compiled_ops.tests.conftest import answer
from plugins.larq_ops.tests.layers import Layer, layers

from oplet import Interpreter, Limits
from oplet.errors import LimitError
from oplet_testing import invoke

pytest.importorskip("oplet_larq_ops")

OURS = ["oplet-larq-ops", "oplet-compiled-ops"]
LAYERS = [
    *layers(),
    Layer(window=(5, 5), pad_values=0, size=(1, 2, 2)),
    Layer(window=(5, 5), pad_values=1, size=(1, 1, 3)),
    Layer(dilations=(1 << 20, 1 << 30), padding=0),
    Layer(size=(2, 40, 40), channels=96, filters=70, pad_values=0),
]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layer", LAYERS, ids=[str(number) for number in range(len(LAYERS))])
def test_layers_are_the_same_bits(layer: Layer, threads: int) -> None:
    content = layer.model()
    assert is_compiled(content)
    [wanted] = answer(content, layer.feeds(), OURS[:1])
    [got] = answer(content, layer.feeds(), OURS, threads)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30, -0.0, 0.5, -0.5, 127.5])
def test_what_int8_cannot_hold_is_limited_alike(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer(output="int8", window=(1, 1), filters=20)
    values = {**layer.values(), "multiplier": np.zeros(20, np.float32), "bias": np.full(20, value, np.float32)}
    monkeypatch.setattr(Layer, "values", lambda _: values)
    wanted, got = (answer(layer.model(), layer.feeds(), plugins)[0] for plugins in (OURS[:1], OURS))
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
def test_thresholds_beyond_all_sums_give_one_bit(value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer(output="int32", filters=40)
    values = {**layer.values(), "thresholds": np.full(40, value, np.int32)}
    monkeypatch.setattr(Layer, "values", lambda _: values)
    wanted, got = (answer(layer.model(), layer.feeds(), plugins)[0] for plugins in (OURS[:1], OURS))
    np.testing.assert_array_equal(got, wanted)


def test_filters_that_are_inputs_are_left_to_numpy() -> None:
    assert not is_compiled(Layer().model(constant=False))


def test_memory_is_charged() -> None:
    layer = Layer(size=(1, 4, 4), channels=32 * 1024, filters=64)
    with pytest.raises(LimitError):
        invoke(Interpreter(model_content=layer.model(), plugins=OURS, limits=Limits(max_arena_bytes=1 << 20)), *layer.feeds())
