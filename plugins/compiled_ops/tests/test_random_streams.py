"""Compiled random numbers are those of the numpy kernels, bit by bit, from run to run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet import Interpreter
from oplet.schema.enums import RngAlgorithm
from oplet.schema.options import RandomOptions
from oplet.schema.stablehlo_options import StablehloRngBitGeneratorOptions
from oplet_builtin_ops.control.philox import PhiloxRandom, uniform_floats
from oplet_compiled_ops.elementwise.random_words import UNIFORM
from oplet_testing import Spec, invoke, one_op_model

PLUGINS = ["oplet-builtin-ops"], ["oplet-builtin-ops", "oplet-compiled-ops"]


@pytest.mark.parametrize("shape", [(1,), (3, 2), (4,), (101,), (0,)])
@pytest.mark.parametrize("constant", [True, False])
def test_a_seeded_stream_goes_on_as_numpys_does(shape: tuple[int, ...], constant: bool) -> None:
    wanted = np.array(shape, np.int32)
    given: Any = wanted if constant else Spec("int32", wanted.shape)
    model = one_op_model("RANDOM_UNIFORM", [given], [Spec("float32", shape)], RandomOptions(seed=1234, seed2=7))
    assert is_compiled(model)
    fed = [] if constant else [wanted]
    streams = []
    for plugins in PLUGINS:
        interpreter = Interpreter(model_content=model, plugins=plugins)
        runs = [invoke(interpreter, *fed)[0] for _ in range(3)]
        interpreter.allocate_tensors()
        streams.append([*runs, invoke(interpreter, *fed)[0]])
    for one, other in zip(*streams):
        assert one.shape == other.shape == shape
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("count", [1, 3, 40, 5000])
@pytest.mark.parametrize("op", ["RANDOM_STANDARD_NORMAL", "MULTINOMIAL"])
def test_numbers_from_compiled_bits_are_numpys(op: str, count: int) -> None:
    if op == "MULTINOMIAL":
        logits = np.random.default_rng(0).standard_normal((2, 5)).astype(np.float32)
        inputs, output, fed = [Spec("float32", (2, 5)), np.array(count, np.int32)], Spec("int64", (2, count)), [logits]
    else:
        inputs, output, fed = [np.array([count], np.int32)], Spec("float32", (count,)), []
    model = one_op_model(op, inputs, [output], RandomOptions(seed=1234, seed2=7))
    assert is_compiled(model)
    streams = []
    for plugins in PLUGINS:
        interpreter = Interpreter(model_content=model, plugins=plugins)
        runs = [invoke(interpreter, *fed)[0] for _ in range(3)]
        interpreter.allocate_tensors()
        streams.append([*runs, invoke(interpreter, *fed)[0]])
    for one, other in zip(*streams):
        assert one.tobytes() == other.tobytes()


def test_a_stream_keeps_its_place_while_the_shape_changes() -> None:
    model = one_op_model("RANDOM_UNIFORM", [Spec("int32", (1,))], [Spec("float32", (3,))], RandomOptions(seed=3, seed2=4))
    sizes = [3, 3, 9, 1, 9, 3]
    streams = []
    for plugins in PLUGINS:
        interpreter = Interpreter(model_content=model, plugins=plugins)
        streams.append([invoke(interpreter, np.array([size], np.int32))[0].tolist() for size in sizes])
    assert streams[0] == streams[1]


def test_a_counter_carries_into_its_upper_half() -> None:
    generator = PhiloxRandom(5, 6)
    generator.skip(2**64 - 2)
    state, floats = np.array(generator.state, np.uint64), np.empty(20, np.float32)
    UNIFORM.compiled()(state, floats)
    np.testing.assert_array_equal(floats, uniform_floats(generator.words(5)))
    assert state.tolist() == list(generator.state)


@pytest.mark.parametrize("algorithm", list(RngAlgorithm))
@pytest.mark.parametrize("length", [2, 3])
@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_bits_and_the_state_after_them_are_equal(algorithm: RngAlgorithm, length: int, kind: str, count: int) -> None:
    if algorithm is RngAlgorithm.THREEFRY and length == 3:
        pytest.skip("Threefry has two numbers of state")
    options = StablehloRngBitGeneratorOptions(algorithm=algorithm)
    outputs = [Spec("uint64", (length,)), Spec(kind, (count,))]
    model = one_op_model("STABLEHLO_RNG_BIT_GENERATOR", [Spec("uint64", (length,))], outputs, options)
    assert is_compiled(model)
    for state in ([1, 2, 3], [2**64 - 1, 2**64 - 2, 2**63], [2**32, 2**32 - 1, 0]):
        fed = np.array(state[:length], np.uint64)
        one, other = (invoke(Interpreter(model_content=model, plugins=plugins), fed) for plugins in PLUGINS)
        for a, b in zip(one, other):
            np.testing.assert_array_equal(a, b)
