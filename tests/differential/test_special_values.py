"""NaN, infinities, denormals and negative zeros in the inputs of every operator that takes floats.

The cases are those of the specs, with some values replaced. docs/numerics.md says what differs from LiteRT on purpose.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oplet import Interpreter, PluginManager
from oplet.errors import OpletError
from oplet_testing.one_op import Spec, call_op

from . import specs  # noqa: F401
from .harness import RESOLVERS, Array, Case, LiteRT, verdict
from .strategies import SPECS, WEIGHTS, Draw
from .worker import Answer, run_steps

MODES = {
    "tiny": (1e-40, -1e-42, 1e-45, -0.0),
    "NaN": (np.nan,),
    "inf": (np.inf,),
    "-inf": (-np.inf,),
    "infinities": (np.inf, -np.inf),
    "all": (np.nan, np.inf, -np.inf, 0.0),
}
FINITE = ("tiny",)

#: Where what is not finite differs from all ways of LiteRT on purpose. Almost nothing (denormals) is the same there, too.
DIFFERENT = {
    # Rows that are quantized as they come: LiteRT turns a NaN into an integer. Activations and sums: it clamps NaN and infinities.
    **dict.fromkeys(
        ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "CONV_3D", "CONV_3D_TRANSPOSE", "FULLY_CONNECTED", "BATCH_MATMUL", "SVDF", "LSTM",
         "RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"),
        "NaN and infinities in layers",
    ),
    **dict.fromkeys(("ADD_N", "L2_POOL_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D"), "activations clamp them"),
    "RFFT2D": "the transform takes other sums",
    "STABLEHLO_SCATTER": "minima and maxima forget a NaN, depending on its side",
    "NON_MAX_SUPPRESSION_V5": "a sigma that is no number is refused",
}  # fmt: skip

RELAXED = list(HealthCheck)


def poisoned(draw: Draw, array: Array, values: tuple[float, ...]) -> Array:
    """An array with one value or more, up to a half, replaced."""
    if array.dtype.kind != "f" or not array.size:
        return array
    array = array.copy()
    flat = array.reshape(-1)
    count = max(1, int(flat.size * draw.rng.choice([0.0, 0.1, 0.5])))
    flat[draw.rng.choice(flat.size, count, replace=False)] = draw.rng.choice(values, count).astype(array.dtype)
    return array


def each(op: str, examples: int, modes: tuple[str, ...], use: Callable[[Case], None]) -> None:
    """Use cases of an op with special values."""

    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=RELAXED)
    @given(st.data())
    def run(data: Any) -> None:
        draw = Draw(data.draw, op)
        try:
            case = SPECS[op](draw)
        except OpletError:
            return  # what the writer refuses
        mode = draw.pick(*modes)
        if case.broken:
            return
        steps = [[poisoned(draw, array, MODES[mode]) for array in step] for step in case.steps]
        if any(array.dtype.kind == "f" for step in steps for array in step):
            case.steps, case.note = steps, f"{mode}: {case.note}"
            use(case)

    run()


def ran(case: Case, manager: PluginManager) -> Answer:
    """What oplet does with a case, without a sound."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run_steps(Interpreter, case.model, case.steps, OpletError, plugins=manager)


@pytest.fixture(scope="module")
def numpy_kernels() -> PluginManager:
    return PluginManager(block=["compiled_ops", "litert", "openvino"])


def held_against_litert(op: str, examples: int, manager: PluginManager, litert: LiteRT) -> None:
    def agree(case: Case) -> None:
        ours, found = ran(case, manager), []
        for resolver in RESOLVERS:
            contradiction = verdict(ours, litert.run(case, resolver), case)
            if not contradiction:
                return
            found.append(f"{resolver}: {contradiction}")
        raise AssertionError("\n".join([case.note, *found]))

    each(op, examples, FINITE if op in DIFFERENT else tuple(MODES), agree)


@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "FAKE_QUANT", "LOGISTIC", "QUANTIZE", "RNN"])
def test_some_operators_treat_special_values_as_litert_does(op: str, numpy_kernels: PluginManager, litert: LiteRT) -> None:
    held_against_litert(op, 15, numpy_kernels, litert)


#: Compared with the compiled kernels only, and why.
NOT_COMPARED = {
    "BIDIRECTIONAL_SEQUENCE_RNN": "a case of denormals differs, which is not explained",
    "DIV": "of quotients by denormals LiteRT's own kernels clamp infinities, and XNNPACK, which takes denormals for 0, makes NaN",
}


@pytest.mark.sweep
@pytest.mark.parametrize("op", sorted(set(SPECS).difference(NOT_COMPARED)))
def test_every_operator_treats_special_values_as_litert_does(op: str, numpy_kernels: PluginManager, litert: LiteRT) -> None:
    held_against_litert(op, 15 * WEIGHTS[op], numpy_kernels, litert)


def unlike(ours: Answer, others: Answer) -> str:
    """Where two answers differ in what is no number, infinite, or an integer."""
    if ours.kind != others.kind:
        return f"{ours} and {others}"
    for mine, theirs in zip(ours.outputs, others.outputs):
        for a, b in zip(mine, theirs):
            if a.dtype.kind == "f":
                a, b = (np.where(np.isfinite(array), 0, array) for array in (a, b))
            if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return f"{a} and {b}"
    return ""


def held_against_each_other(op: str, examples: int, manager: PluginManager) -> None:
    compiled = PluginManager(load=["compiled_ops", "builtin_ops"])

    def agree(case: Case) -> None:
        found = unlike(ran(case, manager), ran(case, compiled))
        assert not found, f"{case.note}\n{found}"

    each(op, examples, tuple(MODES), agree)


@pytest.mark.sweep
@pytest.mark.parametrize("op", ["FULLY_CONNECTED", "CONV_2D", "SVDF", "RESIZE_BILINEAR"])
def test_compiled_and_numpy_kernels_of_some_layers_agree_on_special_values(op: str, numpy_kernels: PluginManager) -> None:
    pytest.importorskip("oplet_compiled_ops")
    held_against_each_other(op, 15, numpy_kernels)


@pytest.mark.sweep
@pytest.mark.parametrize("op", sorted(SPECS))
def test_compiled_and_numpy_kernels_agree_on_special_values(op: str, numpy_kernels: PluginManager) -> None:
    pytest.importorskip("oplet_compiled_ops")
    if op not in pytest.importorskip("oplet_compiled_ops").VERSIONS:
        pytest.skip("there is no compiled kernel")
    held_against_each_other(op, 25 * WEIGHTS[op], numpy_kernels)


@pytest.mark.parametrize("rows", [1, 4, 5, 20])
@pytest.mark.parametrize("kind", ["quantize_asymmetric", "quantize_symmetric", "quantize_to_even"])
def test_a_row_of_almost_nothing_is_quantized_to_numbers(kind: str, rows: int) -> None:
    import oplet_builtin_ops.layers.hybrid as hybrid

    values = np.tile(np.array([1e-45, 0, -1e-42, -0.0], np.float32), (rows, 1))
    target, scales, spare = np.empty_like(values), np.empty(rows, np.float32), np.empty_like(values)
    with np.errstate(all="ignore"):
        getattr(hybrid, kind)(values, target, scales, spare)
    assert np.isfinite(target).all()
    assert np.isfinite(scales).all()


@pytest.mark.parametrize("channels", [1, 3, 8, 20])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_pixel_that_is_no_number_spoils_its_neighbours_only(value: float, channels: int) -> None:
    x = np.ones((2, 9, 9, channels), np.float32)
    x[1, 4, 4, 0] = value
    size = np.array([18, 18], np.int32)
    [y] = call_op("RESIZE_BILINEAR", [x, size], [Spec("float32", [2, 18, 18, channels])])
    wrong = ~np.isfinite(y)
    assert wrong[1, 8, 8, 0]
    wrong[1, 7:10, 7:10, 0] = False
    assert not wrong.any()
    assert (y[np.isfinite(y)] == 1).all()
