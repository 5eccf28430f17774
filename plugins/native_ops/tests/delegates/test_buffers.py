"""Values that a delegate library keeps in buffers of its own: copied when somebody reads them, freed when they are done with."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest
from plugins.native_ops.tests.delegates.conftest import Counts, answers, convolutions, run

from oplet import Interpreter, load_delegate
from oplet.errors import DelegateError, InvokeError


def with_buffers(library: str, count: int, **options: Any) -> Interpreter:
    delegate = load_delegate(library, {"buffers": 1, **options})
    interpreter = Interpreter(model_content=convolutions(count), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    return interpreter


def test_outputs_are_copied_when_somebody_else_reads_them(struct_delegate: str) -> None:
    counts = Counts(struct_delegate)
    interpreter = with_buffers(struct_delegate, 2)
    for seed in range(3):
        np.testing.assert_allclose(run(interpreter, seed)[0], answers(convolutions(2), seed=seed)[0], rtol=1e-5, atol=1e-5)
    # Each run: RELU reads two convolutions' outputs, and the application the mean.
    assert counts.copies == 9
    assert counts.handles_freed == 0
    interpreter.remove_all_delegates()
    assert counts.handles_freed == 3
    np.testing.assert_allclose(run(interpreter)[0], answers(convolutions(2))[0])
    del interpreter
    gc.collect()
    assert (counts.kernels, counts.delegates) == (0, 0)


def test_a_copy_that_fails_says_whose_it_was(struct_delegate: str) -> None:
    interpreter = with_buffers(struct_delegate, 1, fail="copy")
    with pytest.raises(
        (DelegateError, InvokeError), match="libmy_delegate.so cannot copy the data of tensor 3.*CopyFromBufferHandle"
    ):
        run(interpreter)


def test_the_application_can_name_a_buffer_of_the_delegate_s(my_delegate: str) -> None:
    if "opaque" not in my_delegate:
        pytest.skip("the one on structs has buffers of its own making alone")
    counts = Counts(my_delegate)
    delegate = load_delegate(my_delegate)
    interpreter = Interpreter(model_content=convolutions(1), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    output = interpreter.get_output_details()[0]["index"]
    interpreter.set_buffer_handle(output, 7, delegate)
    run(interpreter)
    interpreter.set_buffer_handle(output, None, delegate)
    assert counts.handles_freed == 1
    interpreter.set_buffer_handle(output, "seven", delegate)
    with pytest.raises(InvokeError, match="given the buffer handle 'seven'; the handles of compiled delegates are numbers"):
        run(interpreter)
