"""Damaged nodes of the operators on arrays, images, volumes, sparse and ragged tensors and sequences are refused, or run: never more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests import test_arrays, test_images, test_ragged, test_sequences, test_sparse, test_volumes
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.sweeps import Case, type_of

import oplet
from oplet import Limits
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

SWEEPS = [
    *test_arrays.SWEEPS,
    *test_images.SWEEPS,
    *test_volumes.SWEEPS,
    *test_sparse.SWEEPS,
    *test_ragged.SWEEPS,
    *test_sequences.SWEEPS,
]
EXTREMES = (0, -1, 1, 2**31 - 1, -(2**31), 2**40, 2**62, 7)


def damaged(case: Case, rng: np.random.Generator) -> Case:
    """The case with an input, an attribute or the number of outputs changed."""
    inputs, attributes, outputs = list(case.inputs), dict(case.attributes), case.outputs
    kind = rng.integers(6)
    at = int(rng.integers(len(inputs))) if inputs else 0
    if kind < 3 and inputs:
        array = np.array(inputs[at])
        if array.size and array.dtype.kind in "iufb":
            value: Any = (
                EXTREMES[rng.integers(len(EXTREMES))] if array.dtype.kind in "iu" else rng.choice([np.nan, np.inf, -1e30, 0])
            )
            with np.errstate(all="ignore"):
                array.reshape(-1)[rng.integers(array.size)] = np.array(value).astype(array.dtype)
        inputs[at] = array
    elif kind == 3 and inputs:
        array = np.asarray(inputs[at])
        inputs[at] = [array[..., None], array.reshape(-1), array[:0] if array.ndim else array, array[None]][rng.integers(4)]
    elif kind == 4 and attributes:
        name = list(attributes)[rng.integers(len(attributes))]
        value = attributes[name]
        if isinstance(value, list) and value and type(value[0]) is int:
            attributes[name] = [EXTREMES[rng.integers(len(EXTREMES))] if rng.random() < 0.4 else item for item in value]
        elif type(value) is int:
            attributes[name] = EXTREMES[rng.integers(len(EXTREMES))]
        else:
            attributes[name] = [1, -1, 2.5, "x", True, [1, 2], None][rng.integers(7)]
    else:
        outputs = int(rng.integers(0, 4))
    return Case(case.op, inputs, attributes, outputs)


def run(case: Case) -> None:
    specs = [Spec(type_of(array), array.shape) for array in case.inputs]
    options = flex_options(case.op, case.attributes)
    model = one_op_model(f"Flex{case.op}", specs, [Spec("float32", [1])] * case.outputs, custom_options=options)
    interpreter = oplet.Interpreter(model_content=model, limits=Limits(max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20))
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), case.inputs):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()


@pytest.mark.sweep
@pytest.mark.parametrize("sweep", SWEEPS)
def test_damaged_nodes_are_refused_or_run(sweep: Any) -> None:
    rng = np.random.default_rng(77)
    every = list(sweep())
    for case in every[:: max(1, len(every) // 25)]:
        for _ in range(4):
            changed = damaged(case, rng)
            refused = ""
            try:
                run(changed)
            except (RuntimeError, ValueError) as error:
                refused = str(error).split(" Node number")[0]
            # an exception that a kernel did not mean is told by its class
            assert "Error: " not in refused[:60], (changed, refused)
