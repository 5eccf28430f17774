"""`oplet rewrite` on recorded models: what is written runs as before, with less or with another batch size."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds import part
from tests.recorded_cases import ALL_GROUPS, chosen, here

from oplet import Interpreter, Model
from oplet.errors import OpletError
from oplet_testing import litert_interpreter
from oplet_tools.rewriting.rewrite import rewrite

pytestmark = [here, pytest.mark.sweep(cases=True)]

#: No two runs give the same; too large; not runnable as recorded.
LEFT_OUT = ("multinomial", "random_", "litert_testdata/conv_huge_im2col", "keras_tf_misc/mirror_pad_dyn", "unrunnable", "flex")

_litert = litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")


def assert_same(before, after):
    for was, now in zip(before, after, strict=True):
        for a, b in zip(was, now, strict=True):
            np.testing.assert_array_equal(a, b)


def runnable():
    return [case for case in chosen(*ALL_GROUPS) if case.runs and not case.id.startswith(LEFT_OUT)]


def replay(make, content, case, arrays):
    """The outputs of a case's steps."""
    interpreter = make(model_content=content)
    interpreter.allocate_tensors()
    outputs = []
    for step in case["steps"]:
        values = [arrays[item["key"]] for item in step["inputs"]]
        values = [v.astype(object) if item.get("string") and v.ndim else v for item, v in zip(step["inputs"], values)]
        if step["signature"] is not None:
            named = {item["name"]: value for item, value in zip(step["inputs"], values)}
            answer = interpreter.get_signature_runner(step["signature"])(**named)
            outputs += [answer[name] for name in sorted(answer)]
            continue
        indices = [details["index"] for details in interpreter.get_input_details()]
        if any(item.get("resize") for item in step["inputs"]):
            for item, index, value in zip(step["inputs"], indices, values):
                if item.get("resize"):
                    interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
        for index, value in zip(indices, values):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        outputs += [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]
    return outputs


def check_stripped(recorded):
    case, content, arrays = recorded.described, recorded.model(), recorded.arrays()
    changed, report = rewrite(Model.from_bytes(content), strip_unused=True)
    stripped = changed.to_bytes()
    if report.noted_runtime["before"]:  # and so gets no entry that it had not
        assert len(stripped) <= len(content) + 16, recorded.id  # tables may lie a little wider
    for make in (Interpreter, _litert):
        try:
            before = replay(make, content, case, arrays)
        except (RuntimeError, ValueError):
            continue  # an op that this one does not have
        assert_same([before], [replay(make, stripped, case, arrays)])


def check_batch(recorded, batch):
    """Either it runs in LiteRT, or it is refused in words that name the model."""
    content = recorded.model()
    refusal = ""
    try:
        changed, _ = rewrite(Model.from_bytes(content), batch=batch)
    except OpletError as error:
        refusal = str(error)
    if refusal:
        assert refusal.startswith("The batch size of <bytes> cannot "), recorded.id
        return 0
    interpreter = _litert(model_content=changed.to_bytes())
    try:
        interpreter.allocate_tensors()
    except RuntimeError:
        with pytest.raises(RuntimeError):
            _litert(model_content=content).allocate_tensors()
    return 1


def test_all_recorded_models_run_the_same_when_stripped():
    for case in runnable():
        check_stripped(case)


@pytest.mark.sweep(cases=True, turns=2)
@pytest.mark.parametrize("batch", [3, -1])
def test_all_recorded_models_get_another_batch_size_or_a_reason(batch):
    assert sum(check_batch(case, batch) for case in runnable()) > part().least(600)
