"""LceBconv2d: every kind of layer gives what larq's definition and its own kernels give, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.larq_ops.tests.layers import RELU, SAME, VALID, Layer, layers

from oplet import Limits
from oplet.errors import LimitError
from oplet_larq_ops import bits, differences
from oplet_larq_ops.ops import bconv2d
from oplet_testing import OpContract

LAYERS = list(layers())
IDS = [
    f"{number}-{layer.output}-{'SV'[layer.padding]}{layer.pad_values}-{layer.activation}" for number, layer in enumerate(LAYERS)
]


def check(layer: Layer, ours: Any) -> None:
    wanted = layer.answer()
    assert ours.dtype == wanted.dtype
    if layer.has_late_zeros:  # rounded in another order than the definition
        np.testing.assert_allclose(ours, wanted, rtol=0, atol=1e-5 * max(1, np.abs(wanted).max()))
    else:
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("layer", LAYERS, ids=IDS)
def test_layers_are_what_larq_defines(layer: Layer, run: Any) -> None:
    check(layer, run(layer.model(), *layer.feeds())[0])


@pytest.mark.parametrize("number", range(len(LAYERS)), ids=IDS)
def test_layers_are_larq_s_own_to_the_last_bit(number: int, run: Any, recorded: dict[str, Any]) -> None:
    layer = LAYERS[number]
    [ours] = run(layer.model(), *layer.feeds())
    theirs = recorded[f"layer{number}"]
    assert ours.dtype == theirs.dtype
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("layer", LAYERS[::5], ids=IDS[::5])
def test_filters_may_be_inputs(layer: Layer, run: Any) -> None:
    check(layer, run(layer.model(constant=False), *layer.feeds(constant=False))[0])


@pytest.mark.parametrize("layer", LAYERS[::3], ids=IDS[::3])
@pytest.mark.parametrize("most", [1, 700])
def test_windows_in_small_chunks_are_the_same(layer: Layer, most: int, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [whole] = run(layer.model(), *layer.feeds())
    monkeypatch.setattr(bconv2d, "_CHUNK", most)
    monkeypatch.setattr(differences, "_KEPT_TAPS", 0)
    np.testing.assert_array_equal(run(layer.model(), *layer.feeds())[0], whole)


@pytest.mark.parametrize("layer", LAYERS[::3], ids=IDS[::3])
def test_a_numpy_without_an_instruction_for_it_counts_the_same(layer: Layer, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    [whole] = run(layer.model(), *layer.feeds())
    monkeypatch.setattr(bits, "_count_bits", bits._count_by_table)
    np.testing.assert_array_equal(run(layer.model(), *layer.feeds())[0], whole)


def test_filters_larger_than_the_map_see_its_values_and_zeros(run: Any) -> None:
    for size in ((1, 2, 2), (1, 1, 3)):
        layer = Layer(window=(5, 5), pad_values=0, size=size)
        check(layer, run(layer.model(), *layer.feeds())[0])


@pytest.mark.parametrize(("value", "wanted"), [(np.nan, -128), (np.inf, 127), (-np.inf, -128), (1e30, 127)])
def test_what_int8_cannot_hold_is_limited(value: float, wanted: int, run: Any) -> None:
    layer = Layer(output="int8", window=(1, 1), filters=1)
    feeds = layer.feeds(constant=False)
    feeds[2][:], feeds[3][:] = 0, value
    assert (run(layer.model(constant=False), *feeds)[0] == wanted).all()


@pytest.mark.parametrize(("value", "wanted"), [(2**31 - 1, 0), (-(2**31), -1)])
def test_thresholds_beyond_all_sums_give_one_bit(value: int, wanted: int, run: Any) -> None:
    layer = Layer(output="int32", filters=32)
    feeds = layer.feeds(constant=False)
    feeds[2][:] = value
    assert (run(layer.model(constant=False), *feeds)[0] == wanted).all()


@pytest.mark.parametrize("options", [{"stride_height": 0}, {"dilation_width_factor": -1}, {"padding": 2}, {"pad_values": 2},
    {"fused_activation_function": 4}, {"channels_in": 0}, {"channels_in": 65}, {"channels_in": 2**31 - 1}, {"stride_width": None}])  # fmt: skip
def test_options_that_no_layer_has_are_refused(options: dict[str, Any], run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = Layer()
    wrong = {key: value for key, value in {**layer.options, **options}.items() if value is not None}
    monkeypatch.setattr(Layer, "options", property(lambda _: wrong))
    with pytest.raises(RuntimeError, match=f"{next(iter(options))}.*LceBconv2d"):
        run(layer.model(), *layer.feeds())


def test_what_larq_has_no_kernel_for_is_refused(run: Any) -> None:
    for layer in (Layer(channels=7, pad_values=0, output="int32"), Layer(channels=7, pad_values=0, activation=RELU)):
        with pytest.raises(RuntimeError, match="odd number"):
            run(layer.model(), *layer.feeds())
    with pytest.raises(RuntimeError, match="cannot be in 2 groups"):
        run(Layer(groups=2, channels=128, filters=7).model(), np.zeros((2, 6, 5, 4), np.int32))


def test_a_window_beyond_all_measure_takes_no_memory(run: Any) -> None:
    """Taps a million pixels apart lie outside: no padded map is made."""
    layer = Layer(dilations=(1 << 20, 1 << 30), padding=SAME)
    check(layer, run(layer.model(), *layer.feeds(), limits=Limits(max_arena_bytes=32 << 20))[0])


def test_memory_of_a_chunk_is_charged(run: Any) -> None:
    layer = Layer(size=(1, 64, 64), channels=256, filters=64)
    with pytest.raises(LimitError):
        run(layer.model(), *layer.feeds(), limits=Limits(max_arena_bytes=2 << 20))


class TestContract(OpContract):
    model = Layer(pad_values=0).model()
    inputs = Layer(pad_values=0).feeds()


class TestContractOfBits(OpContract):
    model = Layer(output="int32", padding=VALID, filters=40).model()
    inputs = Layer(output="int32", padding=VALID, filters=40).feeds()


class TestContractOfInt8(OpContract):
    model = Layer(output="int8", pad_values=0, activation=RELU).model(constant=False)
    inputs = Layer(output="int8", pad_values=0, activation=RELU).feeds(constant=False)
