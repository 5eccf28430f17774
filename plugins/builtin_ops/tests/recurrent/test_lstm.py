"""LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet import TensorType
from oplet.errors import PrepareError
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import LSTMOptions, UnidirectionalSequenceLSTMOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

BATCHES, STEPS, DEPTH, CELLS = 2, 4, 5, 6
KINDS = ["float", "hybrid", "hybrid uint8", "integer"]


def tensors(drawn: Any, shape: Any, outputs: int, parts: str, low: bool) -> tuple[list[Any], Spec, list[Spec]]:
    """Inputs, output and intermediate tensors; `parts` are letters: c CIFG, p peephole, j projection, n norm, d diagonal."""
    integer = drawn.kind == "integer"
    cifg, diagonal = "c" in parts, "d" in parts
    scale, zero_point = (0.008, -7) if integer else (None, None)
    state_scale = (2.0**-15 if low else 2.0**-11, 0) if integer else (None, None)
    kinds = (np.int8, np.int16) if integer else (np.float32, np.float32)

    def recurrent() -> Any:
        return drawn.random.normal(0, 0.5, CELLS).astype(np.float32) if diagonal else drawn.weights(CELLS, outputs)

    def gates(letter: str, make: Any, count: int = 4) -> list[Any]:
        wanted = not letter or letter in parts
        return [None if not wanted or (cifg and i == 0) else make() for i in range(count)]

    inputs = [Spec(kinds[0], shape, *((0.02, 11) if integer else ()))]
    inputs += gates("", lambda: drawn.weights(CELLS, DEPTH)) + gates("", recurrent)
    inputs += gates("p", lambda: drawn.side(CELLS), 3) + gates("", lambda: drawn.bias(CELLS))
    inputs += [drawn.weights(outputs, CELLS), drawn.bias(outputs)] if "j" in parts else [None, None]
    inputs += [Spec(kinds[0], (BATCHES, outputs), scale, zero_point, variable=True)]
    inputs += [Spec(kinds[1], (BATCHES, CELLS), *state_scale, variable=True)]
    inputs += gates("n", lambda: drawn.norm(CELLS))
    between = []
    if low:
        between = [Spec("int8", [1], 2.0**-12, 0) if i % 3 == 0 else Spec("int8", [1], 0.01 + i / 400, 5 - i) for i in range(12)]
    elif integer:
        between = [Spec("int16", [1], 0.8 * 2.0**-12, 0)] * 4 + [Spec("int8", [1], 0.006, 3 if "j" in parts else -7)]
    return inputs, Spec(kinds[0], (*shape[:-1], outputs), scale, zero_point), between


def lstm(drawn: Any, parts: str = "", *, sequence: bool = False, low: bool = False, **options: Any) -> tuple[bytes, Any]:
    shape: tuple[int, ...] = (BATCHES, DEPTH)
    if sequence:
        shape = (STEPS, BATCHES, DEPTH) if options.get("time_major") else (BATCHES, STEPS, DEPTH)
    inputs, output, between = tensors(drawn, shape, 4 if "j" in parts else CELLS, parts, low)
    options = {"fused_activation_function": ActivationFunctionType.TANH, **options}
    table = UnidirectionalSequenceLSTMOptions(**options) if sequence else LSTMOptions(**options)
    op = "UNIDIRECTIONAL_SEQUENCE_LSTM" if sequence else "LSTM"
    version = 4 if "d" in parts else 3
    return one_op_model(op, inputs, [output], table, version=version, intermediates=between), shape


@pytest.mark.parametrize("parts", ["", "c", "p", "n", "j", "cp", "pn", "cnj", "cpn"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [False, True], ids=["step", "sequence"])
def test_all_parts_agree_with_litert(agree, draw, kind, parts, sequence):
    drawn = draw(kind)
    model, shape = lstm(drawn, parts, sequence=sequence)
    agree(model, drawn.feeds(shape), 1e-3 if "hybrid" in kind else 1e-5)


@pytest.mark.parametrize("options", [{"time_major": True}, {"cell_clip": 0.3}, {"asymmetric_quantize_inputs": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_options_agree_with_litert(agree, draw, kind, options):
    drawn = draw(kind, 1)
    model, shape = lstm(drawn, "p", sequence=True, **options)
    agree(model, drawn.feeds(shape), 1e-3 if "hybrid" in kind else 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_clipped_projection_agrees_with_litert(agree, draw, kind):
    drawn = draw(kind, 2)
    model, shape = lstm(drawn, "j", proj_clip=0.2)
    agree(model, drawn.feeds(shape), 1e-3 if "hybrid" in kind else 1e-5)


@pytest.mark.parametrize(
    "activation", [ActivationFunctionType.RELU, ActivationFunctionType.RELU6, ActivationFunctionType.SIGN_BIT]
)
def test_other_activations_agree_with_litert(agree, draw, activation):
    drawn = draw("float", 3)
    model, shape = lstm(drawn, sequence=True, fused_activation_function=activation)
    agree(model, drawn.feeds(shape))


@pytest.mark.parametrize("kind", ["float", "hybrid"])
def test_diagonal_recurrent_weights_agree_with_litert(agree, draw, kind):
    drawn = draw(kind, 4)
    model, shape = lstm(drawn, "d", sequence=True, diagonal_recurrent_tensors=True)
    agree(model, drawn.feeds(shape), 1e-3)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{}, {"cell_clip": 0.4, "proj_clip": 0.3}])
def test_twelve_intermediate_scales_agree_with_litert(agree, draw, options, seed):
    drawn = draw("integer", seed)
    model, shape = lstm(drawn, "nj", low=True, **options)
    agree(model, drawn.feeds(shape))


def test_weights_may_arrive_at_run_time(draw):
    drawn = draw("float", 5)
    inputs, output, _ = tensors(drawn, (BATCHES, DEPTH), CELLS, "pn", False)
    options = LSTMOptions(fused_activation_function=ActivationFunctionType.TANH)
    fed = [Spec(x.dtype, x.shape) if isinstance(x, np.ndarray) else x for x in inputs]
    ((source,),) = drawn.feeds((BATCHES, DEPTH), 1)
    (wanted,) = run_op(one_op_model("LSTM", inputs, [output], options), source)
    constants = [x for x in inputs if isinstance(x, np.ndarray)]
    (result,) = run_op(one_op_model("LSTM", fed, [output], options), source, *constants)
    np.testing.assert_allclose(result, wanted, rtol=1e-6)


def changed(drawn: Any, position: int, replacement: Any) -> bytes:
    inputs, _, _ = tensors(drawn, (BATCHES, DEPTH), CELLS, "pnj", False)
    inputs[position] = replacement
    return one_op_model("LSTM", inputs, [Spec(TensorType.FLOAT32, (BATCHES, CELLS))], LSTMOptions())


@pytest.mark.parametrize(
    ("position", "replacement", "message"),
    [
        (2, None, "input 2, the forget gate's input weights, is left out"),
        (2, np.zeros((CELLS, 3), np.float32), r"forget gate's input weights.* must have shape \[6, 5\]"),
        (6, np.zeros((CELLS, CELLS), np.int8), "forget gate's recurrent weights.* FLOAT32"),
        (9, None, "input 9 is left out"),
        (13, np.zeros(3, np.float32), r"forget gate's bias.* \[6\]"),
        (16, None, "projection bias without weights"),
        (18, Spec("float32", (BATCHES, CELLS)), "output state .* must be a variable tensor"),
        (19, Spec("float32", (BATCHES, 3), variable=True), "must hold 12 values"),
        (23, None, "input 23, the output gate's layer-norm coefficients, is left out"),
    ],
)
def test_tensors_that_do_not_fit_are_named(draw, position, replacement, message):
    drawn = draw("float", 6)
    with pytest.raises(PrepareError, match=message):
        run_op(changed(drawn, position, replacement), np.zeros((BATCHES, DEPTH), np.float32))


def test_a_negative_clip_is_refused(draw):
    model, shape = lstm(draw("float"), cell_clip=-1.0)
    with pytest.raises(PrepareError, match="cell_clip is -1"):
        run_op(model, np.zeros(shape, np.float32))
