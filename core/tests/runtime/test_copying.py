"""An interpreter is not pickled or copied; the error names what is."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from oplet import Interpreter, MutableOpResolver, Predictor, Registration
from oplet_testing import Spec, one_op_model

MODEL = one_op_model("Twice", [Spec("float32", [2])], [Spec("float32", [2])])


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("prepared", [False, True])
def test_an_interpreter_names_the_predictor_where_it_is_pickled_or_copied(copied: Callable[[Any], Any], prepared: bool) -> None:
    own = MutableOpResolver()
    own.add_custom("Twice", Registration(invoke=lambda context, node: None))
    interpreter = Interpreter(model_content=MODEL, op_resolver=own, plugins=[])
    if prepared:
        interpreter.allocate_tensors()
    with pytest.raises(TypeError, match=r"cannot be pickled or copied.*oplet\.Predictor, which can be pickled"):
        copied(interpreter)
    interpreter.allocate_tensors()  # it runs as before
    interpreter.invoke()


def test_a_predictor_can_be_pickled() -> None:
    assert isinstance(pickle.loads(pickle.dumps(Predictor(MODEL))), Predictor)
