"""A delegate library that LiteRT itself applies, to the parts that oplet-litert-delegate gives it."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from plugins.native_ops.tests.delegates.conftest import Counts, answers, convolutions, partitions, run

from oplet import Interpreter, load_delegate
from oplet.errors import DelegateLoadError


def test_litert_applies_the_library_to_each_part(struct_delegate: str) -> None:
    counts = Counts(struct_delegate)
    content = convolutions(2)
    delegate = load_delegate("litert", {"library": struct_delegate, "library.max_partitions": 2, "num_threads": 1})
    interpreter = Interpreter(model_content=content, experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [(0, True, [[0, 1, 2, 3, 4]])]
    assert counts.kernels == 2
    np.testing.assert_allclose(run(interpreter)[0], answers(content)[0], rtol=1e-5, atol=1e-5)
    del interpreter, delegate
    gc.collect()
    assert (counts.kernels, counts.delegates) == (0, 0)


def test_what_fails_in_the_library_is_litert_s_refusal(struct_delegate: str) -> None:
    delegate = load_delegate("litert", {"library": struct_delegate, "library.fail": "prepare"})
    interpreter = Interpreter(model_content=convolutions(1), experimental_delegates=[delegate])
    interpreter.allocate_tensors()
    report = interpreter.delegation_reports()[0]
    assert not report.partitions
    assert "it was told to fail in Prepare" in report.unsupported[0]
    np.testing.assert_allclose(run(interpreter)[0], answers(convolutions(1))[0])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"library": "libnowhere.so"}, "LiteRT makes no delegate of the library libnowhere.so"),
        ({"library.colour": "red"}, "'library.colour' is for a library, and there is none; give library=PATH too"),
        ({"colour": "red"}, "'colour=red' is none of its options: num_threads, .* library=PATH"),
        ({"library": ""}, "'library=' is none of its options"),
        ({"library.": "red"}, "'library.=red' is none of its options"),
    ],
)
def test_a_library_that_is_none_is_refused_at_once(options: dict[str, str], text: str) -> None:
    with pytest.raises(DelegateLoadError, match=text):
        load_delegate("litert", options)


def test_options_that_the_library_refuses_are_refused_at_once(struct_delegate: str) -> None:
    with pytest.raises(DelegateLoadError, match="unknown option colour"):
        load_delegate("litert", {"library": struct_delegate, "library.colour": "red"})
