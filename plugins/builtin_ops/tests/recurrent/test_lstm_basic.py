"""The basic kernel of LSTM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet.schema.enums import ActivationFunctionType, LSTMKernelType
from oplet.schema.options import LSTMOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

OPTIONS = LSTMOptions(fused_activation_function=ActivationFunctionType.TANH, kernel_type=LSTMKernelType.BASIC)


def model_of(
    random: Any, batches: int, depth: int, cells: int, *, quantized: bool, variable: bool, state: float = 2.0**-11
) -> bytes:
    width = depth + cells
    if quantized:
        outer = 1 / 128, 128
        matrix, bias = random.integers(0, 256, (4 * cells, width)), random.integers(-9000, 9000, 4 * cells)
        weights = Spec("uint8", (4 * cells, width), 0.01, 120, data=matrix.astype(np.uint8))
        biases = Spec("int32", (4 * cells,), 0.0002, 0, data=bias.astype(np.int32))
    else:
        outer = ()
        weights = random.normal(0, 0.5, (4 * cells, width)).astype(np.float32)
        biases = random.normal(0, 0.5, 4 * cells).astype(np.float32)
    kind, inner = ("uint8", "int16") if quantized else ("float32", "float32")
    inside, middle = ((state, 0), (2.0**-12, 0)) if quantized else ((), ())
    inputs = [
        Spec(kind, (batches, depth), *outer),
        Spec(kind, (batches, cells), *outer, variable=variable),
        weights,
        biases,
        Spec(inner, (batches, cells), *inside, variable=variable),
    ]
    outputs = [
        Spec(kind, (batches, cells), *outer),
        Spec(inner, (batches, cells), *inside),
        Spec(kind, (batches, width), *outer),
        Spec(inner, (batches, 4 * cells), *middle),
    ]
    return one_op_model("LSTM", inputs, outputs, OPTIONS, version=2)


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("sizes", [(1, 3, 4), (3, 4, 1), (3, 5, 2), (4, 9, 8)])
def test_steps_agree_with_litert(agree, sizes, quantized, variable):
    random = np.random.default_rng(sum(sizes))
    batches, depth, cells = sizes

    def feed(kind: str, *shape: int) -> Any:
        limits = np.iinfo(kind) if quantized else None
        if limits is None:
            return random.normal(size=shape).astype(np.float32)
        return random.integers(limits.min, limits.max + 1, shape).astype(kind)

    states = () if variable else (("uint8", cells), ("int16", cells))
    steps = [[feed(kind, batches, width) for kind, width in (("uint8", depth), *states)] for _ in range(3)]
    agree(model_of(random, *sizes, quantized=quantized, variable=variable), steps)


def test_a_state_of_another_scale_is_refused():
    model = model_of(np.random.default_rng(0), 1, 2, 3, quantized=True, variable=True, state=2.0**-12)
    with pytest.raises(PrepareError, match=r"must be 2\*\*-11"):
        run_op(model, np.zeros((1, 2), np.uint8))
