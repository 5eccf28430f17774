"""Models that TensorFlow's converter wrote give what TensorFlow's own function gives; `python -m plugins.flex_delegate.tests.record` records them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plugins.flex_delegate.tests.record import RECORDED
from plugins.flex_ops.tests.record.recording import RECORDED as LISTED
from plugins.flex_ops.tests.record.recording import read_calls

from oplet import Interpreter, load_delegate

pytest.importorskip("tensorflow")
#: Random numbers of TensorFlow's are not promised to stay from one version to the next.
NAMES = sorted(path.stem for path in RECORDED.glob("*.tflite"))


def check(folder: Path, name: str) -> None:
    """Run the calls of a recording, all Flex nodes in TensorFlow; numpy's package has operators that go by their own names (Svd)."""
    interpreter = Interpreter(folder / f"{name}.tflite", experimental_delegates=[load_delegate("flex")])
    run = interpreter.get_signature_runner()
    for call in read_calls(name, folder):
        outputs = run(**call.inputs)
        assert sorted(outputs) == sorted(call.outputs)
        for key, wanted in call.outputs.items():
            assert (outputs[key].dtype, outputs[key].shape) == (wanted.dtype, wanted.shape), key
            if wanted.dtype.kind in "fc":
                np.testing.assert_allclose(outputs[key], wanted, rtol=1e-5, atol=1e-5, err_msg=key)
            else:
                np.testing.assert_array_equal(outputs[key], wanted, err_msg=key)
    assert not [report.op for report in interpreter.explain() if report.op.startswith("Flex")]


def test_there_are_models_of_operators_that_numpy_s_package_has_not() -> None:
    assert len(NAMES) >= 16


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_model_gives_what_tensorflow_gives(name: str) -> None:
    check(RECORDED, name)


@pytest.mark.sweep
@pytest.mark.parametrize("name", sorted(path.stem for path in LISTED.glob("*.tflite")))
def test_a_model_recorded_for_numpy_s_package_gives_the_same_in_tensorflow(name: str) -> None:
    check(LISTED, name)
