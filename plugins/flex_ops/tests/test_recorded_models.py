"""Models that TensorFlow's converter wrote with SELECT_TF_OPS give what TensorFlow's own function gives, without TensorFlow.

`python -m plugins.flex_ops.tests.record` records them; see there.
"""

from __future__ import annotations

import numpy as np
import pytest
from plugins.flex_ops.tests.record.recording import LARGEST, RECORDED, read_calls

from oplet import Interpreter

NAMES = sorted(path.stem for path in RECORDED.glob("*.tflite"))


def test_every_model_has_its_calls_and_is_small() -> None:
    assert sorted(path.stem for path in RECORDED.glob("*.npz")) == NAMES
    assert all(path.stat().st_size <= LARGEST for path in RECORDED.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_model_gives_what_tensorflow_gives(name: str) -> None:
    path = RECORDED / f"{name}.tflite"
    interpreter = Interpreter(path, plugins=["oplet-flex-ops", "oplet-text-ops", "oplet-builtin-ops"])
    run = interpreter.get_signature_runner()
    for call in read_calls(name):
        outputs = run(**call.inputs)
        assert sorted(outputs) == sorted(call.outputs)
        for key, wanted in call.outputs.items():
            assert outputs[key].dtype == wanted.dtype, key
            if wanted.dtype.kind in "fc":
                np.testing.assert_allclose(outputs[key], wanted, rtol=1e-5, atol=1e-5, err_msg=key)
            else:
                np.testing.assert_array_equal(outputs[key], wanted, err_msg=key)
