"""RANDOM_UNIFORM, RANDOM_STANDARD_NORMAL, MULTINOMIAL and STABLEHLO_RNG_BIT_GENERATOR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.schema.enums import RngAlgorithm
from oplet.schema.options import CallOptions, IfOptions, RandomOptions
from oplet.schema.stablehlo_options import StablehloRngBitGeneratorOptions
from oplet_builtin_ops.control.philox import PhiloxRandom, philox4x32, threefry2x32
from oplet_testing import invoke_steps, litert_interpreter, one_op_model, run_op
from oplet_testing.graphs import Graph, Op, graph_model
from oplet_testing.one_op import Spec

SEEDS = [(1, 0), (0, 7), (1234, 5678), (-3, 2**40 + 2**31 + 9)]


def several(model: bytes, *feeds: Any, interpreter: Any = Interpreter) -> list[Any]:
    """What three invokes in a row draw."""
    return [drawn for [drawn] in invoke_steps(interpreter(model_content=model), [feeds] * 3)]


def theirs(model: bytes, *feeds: Any) -> list[Any]:
    return several(model, *feeds, interpreter=litert_interpreter())


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("op", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_a_seeded_stream_is_litert_s_and_goes_on(op: str, seeds: tuple[int, int], constant: bool) -> None:
    shape = np.array([3, 2, 3], np.int32)
    options = RandomOptions(seed=seeds[0], seed2=seeds[1])
    model = one_op_model(op, [shape if constant else Spec("int32", [3])], [Spec("float32", [1])], options)
    ours = several(model, *([] if constant else [shape]))
    assert not np.array_equal(ours[0], ours[1])
    for a, b in zip(ours, theirs(model, *([] if constant else [shape]))):
        np.testing.assert_allclose(a, b, rtol=1e-5 if "NORMAL" in op else 0, atol=1e-6 if "NORMAL" in op else 0)


@pytest.mark.parametrize("op", ["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"])
def test_without_seeds_each_interpreter_draws_its_own(op: str) -> None:
    model = one_op_model(op, [np.array([50], np.int32)], [Spec("float32", [50])], RandomOptions())
    first, second = run_op(model)[0], run_op(model)[0]
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("samples", [1, 5, 8])
@pytest.mark.parametrize("type", ["int32", "int64"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_multinomial_draws_what_litert_draws(seeds: tuple[int, int], type: str, samples: int) -> None:
    logits = np.array([[0, 1, -2, 3], [5, 5, np.inf, np.nan], [-np.inf, 0, 0.5, -80]], np.float32)
    options = RandomOptions(seed=seeds[0], seed2=seeds[1])
    model = one_op_model("MULTINOMIAL", [Spec("float32", [3, 4]), np.array(samples, np.int32)], [Spec(type, [1])], options)
    for a, b in zip(several(model, logits), theirs(model, logits)):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == type


def test_no_samples_give_an_empty_output() -> None:
    model = one_op_model("MULTINOMIAL", [Spec("float32", [3, 4]), np.array(0, np.int32)], [Spec("int32", [1])], RandomOptions())
    assert run_op(model, np.zeros((3, 4), np.float32))[0].shape == (3, 0)


@pytest.mark.parametrize("type", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize(
    ("algorithm", "words"),
    [(RngAlgorithm.THREEFRY, 2), *((algorithm, n) for algorithm in (RngAlgorithm.PHILOX, RngAlgorithm.DEFAULT) for n in (2, 3))],
)
def test_random_bits_are_litert_s(algorithm: RngAlgorithm, words: int, type: str, litert: Callable[..., Any]) -> None:
    state = np.array([0x123456789ABCDEF, 2**64 - 2, 77][:words], np.uint64)
    model = one_op_model(
        "STABLEHLO_RNG_BIT_GENERATOR",
        [Spec("uint64", [words])],
        [Spec("uint64", [words]), Spec(type, [3, 7])],
        StablehloRngBitGeneratorOptions(algorithm=algorithm),
    )
    for ours, expected in zip(run_op(model, state), litert(model, state)):
        np.testing.assert_array_equal(ours, expected)


def test_the_generators_give_the_numbers_of_their_paper() -> None:
    # The known answers that come with the authors' Random123.
    ones = 0xFFFFFFFF
    assert philox4x32((ones, ones), (ones,) * 4).tolist() == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    assert threefry2x32((ones, ones), (ones,) * 2).reshape(-1).tolist() == [0x1CB996FC, 0xBB002BE7]


def test_the_counter_carries_into_its_upper_half() -> None:
    stream = PhiloxRandom(5, 9)
    stream.skip(2**64 - 2)
    words = stream.words(4).reshape(4, 4)
    counters = [(2**32 - 2, 2**32 - 1, 9, 0), (2**32 - 1, 2**32 - 1, 9, 0), (0, 0, 10, 0), (1, 0, 10, 0)]
    assert words.tolist() == [philox4x32((5, 0), counter).tolist() for counter in counters]


@pytest.mark.parametrize("op", ["IF", "CALL"])
def test_a_called_subgraph_draws_the_same_numbers_each_time(op: str) -> None:
    x, shape = Spec("float32", [2]), np.array([2], np.int32)
    drawing = Graph({"a": x, "s": shape, "y": x}, "a", "y", [Op("RANDOM_UNIFORM", "s", "y", RandomOptions(seed=1))])
    if op == "IF":
        call = Op("IF", "c a", "y", IfOptions(then_subgraph_index=1, else_subgraph_index=2))
    else:
        call = Op("CALL", "a", "y", CallOptions(subgraph=1))
    model = graph_model(Graph({"c": np.array(True), "a": x, "y": x}, "a", "y", [call]), drawing, Graph({"a": x}, "a", "a"))
    a = np.zeros(2, np.float32)
    ours = several(model, a)
    assert ours[0].tolist() == ours[1].tolist() == ours[2].tolist()
    if op == "IF":
        np.testing.assert_array_equal(ours, theirs(model, a))


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            one_op_model("RANDOM_UNIFORM", [np.array([2, -1], np.int32)], [Spec("float32", [2])]),
            "a dimension must not be negative",
        ),
        (one_op_model("RANDOM_UNIFORM", [np.array([2], np.int64)], [Spec("float32", [2])]), "takes INT32 here"),
        (one_op_model("RANDOM_UNIFORM", [np.array([2], np.int32)], [Spec("int32", [2])]), "takes FLOAT32 here"),
        (one_op_model("MULTINOMIAL", [np.zeros((1, 2), np.float32), np.array(-1, np.int32)], [Spec("int32", [1])]), "-1 samples"),
        (one_op_model("MULTINOMIAL", [np.zeros((1, 0), np.float32), np.array(1, np.int32)], [Spec("int32", [1])]), "no classes"),
        (one_op_model("MULTINOMIAL", [np.zeros(2, np.float32), np.array(1, np.int32)], [Spec("int32", [1])]), "two dimensions"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model: bytes, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run_op(model)
