from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import SVDFOptions
from oplet_testing import invoke_steps, litert_interpreter, one_op_model, run_op
from oplet_testing.one_op import Spec

BATCHES, DEPTH, UNITS, RANK, MEMORY = 2, 6, 4, 2, 5
FILTERS = UNITS * RANK


def svdf(kind: str, rank: int = RANK, bias: int = UNITS, state: int = FILTERS * MEMORY, asymmetric: bool = False) -> bytes:
    random = np.random.default_rng(0)
    features, times = random.normal(size=(FILTERS, DEPTH)), random.normal(size=(FILTERS, MEMORY))
    biases = random.normal(size=bias)
    activation = ActivationFunctionType.RELU if kind == "integer" else ActivationFunctionType.NONE
    options = SVDFOptions(rank=rank, fused_activation_function=activation, asymmetric_quantize_inputs=asymmetric)
    if kind == "integer":
        specs = [
            Spec("int8", (BATCHES, DEPTH), [0.02], [3]),
            Spec("int8", features.shape, [0.03], [0], data=np.clip(features / 0.03, -127, 127).astype(np.int8)),
            Spec("int16", times.shape, [0.0001], [0], data=np.clip(times / 0.0001, -32767, 32767).astype(np.int16)),
            Spec("int32", (bias,), [0.0003 * 0.0001], [0], data=(biases * 1e7).astype(np.int32)),
            Spec("int16", (BATCHES, state), [0.0003], [0], variable=True),
        ]
        output = Spec("int8", (BATCHES, UNITS), [0.1], [-7])
    else:
        weights: list[Any] = [features.astype(np.float32), times.astype(np.float32)]
        if kind == "hybrid":
            weights = [Spec("int8", w.shape, [0.03], [0], data=np.clip(w / 0.03, -127, 127).astype(np.int8)) for w in weights]
        state_spec = Spec("float32", (BATCHES, state), variable=True)
        specs = [Spec("float32", (BATCHES, DEPTH)), *weights, biases.astype(np.float32), state_spec]
        output = Spec("float32", (BATCHES, UNITS))
    return one_op_model("SVDF", specs, [output], options, version=4)


def steps(interpreter: Any) -> list[list[np.ndarray]]:
    random = np.random.default_rng(1)
    [given] = interpreter.get_input_details()
    shape, dtype = given["shape"], given["dtype"]
    values = [random.normal(size=shape) if dtype == np.float32 else random.integers(-128, 128, shape) for _ in range(MEMORY + 3)]
    return invoke_steps(interpreter, [[value.astype(dtype)] for value in values])


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("kind", ["float", "hybrid", "integer"])
def test_steps_equal_litert_s(kind: str, asymmetric: bool) -> None:
    model = svdf(kind, asymmetric=asymmetric)
    reference = litert_interpreter("BUILTIN_REF")(model_content=model)
    for [ours], [theirs] in zip(steps(Interpreter(model_content=model)), steps(reference)):
        if kind == "integer":
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def by_definition(sources: list[np.ndarray], features: Any, times: Any, zero_point: int) -> list[np.ndarray]:
    """tflite-micro's rule for an int8 state, with factors that are powers of two: no step needs to be rounded."""
    state = np.full((1, *times.shape), zero_point, np.int64)
    results = []
    for source in sources:
        newest = (np.clip(source.astype(np.int64) @ features.astype(np.int64).T, -128, 127) + zero_point).astype(np.int8)
        state = np.concatenate([state[..., 1:], newest[..., None]], axis=-1)
        sums = ((state - zero_point) * times).sum(axis=-1).reshape(1, -1, 2).sum(axis=-1)
        results.append(np.clip(sums, -128, 127).astype(np.int8))
    return results


@pytest.mark.parametrize("zero_point", [0, 5, -11])
def test_a_state_of_int8_has_a_zero_point_of_its_own(zero_point: int) -> None:
    random = np.random.default_rng(0)
    features, times = (random.integers(-3, 4, shape).astype(np.int8) for shape in ((8, 6), (8, 5)))
    specs = [
        Spec("int8", (1, 6), [1.0], [0]),
        Spec("int8", features.shape, [1.0], [0], data=features),
        Spec("int8", times.shape, [1.0], [0], data=times),
        None,
        Spec("int8", (1, 40), [1.0], [zero_point], variable=True),
    ]
    options = SVDFOptions(rank=2, fused_activation_function=ActivationFunctionType.RELU)
    model = one_op_model("SVDF", specs, [Spec("int8", (1, 4), [1.0], [0])], options, version=3)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    given, made = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    sources = [random.integers(-9, 10, (1, 6)).astype(np.int8) for _ in range(8)]
    for source, wanted in zip(sources, by_definition(sources, features, times, zero_point)):
        interpreter.set_tensor(given, source)
        interpreter.invoke()
        np.testing.assert_array_equal(interpreter.get_tensor(made), wanted)


def test_the_state_is_forgotten_when_variables_are_reset() -> None:
    interpreter = Interpreter(model_content=svdf("float"))
    first = steps(interpreter)
    interpreter.reset_all_variables()
    np.testing.assert_array_equal(steps(interpreter), first)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"rank": 0}, "rank is 0"),
        ({"rank": 3}, "rank is 3"),
        ({"bias": 3}, "must have 4 values"),
        ({"state": 7}, "must have shape"),
    ],
)
def test_a_wrong_model_is_refused(arguments: dict[str, int], reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run_op(svdf("float", **arguments), np.zeros((BATCHES, DEPTH), np.float32))
