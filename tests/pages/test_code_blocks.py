"""Every block of Python in README and docs runs in a test, or says here why it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.pages.python_blocks import python_blocks, run_blocks
from tests.places import ROOT

from oplet import DelegateKernel, Interpreter, MutableOpResolver
from oplet_testing import Spec, call_op, first_failure, one_op_model

PAGES = sorted(
    path
    for pattern in ("README.md", "core/README.md", "metapackage/README.md", "docs/*.md", "plugins/*/README.md")
    for path in ROOT.glob(pattern)
)

#: The test that runs the blocks of a page, where it is not this module.
RUN_BY = {
    "docs/beam.md": "tests/pages/test_clusters.py",
    "docs/gpus.md": "plugins/xla_delegate/tests/test_page.py",
    "docs/fusing-a-function.md": "plugins/tools/tests/scaffolding/test_fusing_a_function.py",
    "docs/kernels-by-example.md": "tests/pages/test_kernels_by_example.py",
    "docs/model-explorer.md": "plugins/model_explorer/tests/test_page.py",
    "docs/native-delegates.md": "tests/pages/test_native_delegates.py",
    "docs/predictor.md": "tests/pages/test_predictor.py",
    "docs/ray.md": "plugins/ray_batch/tests/test_page.py",
    "docs/select-tf-ops.md": "tests/pages/test_select_tf_ops.py",
    "docs/serving.md": "plugins/serve/tests/test_page.py",
    "docs/spark-and-dask.md": "tests/pages/test_clusters.py",
    "docs/text-classifier.md": "tests/pages/test_text_classifier.py",
    "docs/tutorial.md": "plugins/tools/tests/scaffolding/test_tutorial.py",
    "docs/writing-a-delegate.md": "tests/pages/test_writing_a_delegate.py",
    "docs/writing-an-op.md": "tests/pages/test_writing_an_op.py",
    "docs/writing-models.md": "tests/pages/test_writing_models.py",
}
#: Pages whose blocks this module runs.
HERE = {
    "README.md",
    "core/README.md",
    "docs/async.md",
    "docs/choosing-an-engine.md",
    "docs/compiled-model.md",
    "docs/cookbook.md",
    "docs/migrating.md",
    "docs/plugins.md",
    "docs/quantization.md",
    "docs/reliability.md",
    "metapackage/README.md",
    "plugins/builtin_ops/README.md",
    "plugins/compiled_model/README.md",
    "plugins/compiled_ops/README.md",
    "plugins/predictor/README.md",
    "plugins/testing/README.md",
}
#: Why blocks are not run, by page.
NOT_RUN = {
    "docs/language-models.md": "a bundle that a reader has; plugins/lm/tests make some, and call what it shows",
    "docs/metadata.md": "metadata of models that a reader has; plugins/tools/tests/metadata reads and writes such",
    "docs/native-ops.md": "it names libraries that a reader has; plugins/native_ops/tests load some in each of the ways it shows",
    "docs/selective-builds.md": "what `oplet select` writes, for models that a reader has; plugins/build/tests run what it writes",
}


def name_of_page(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_every_page_with_blocks_of_python_is_run_or_says_why_not() -> None:
    having = {name_of_page(page) for page in PAGES if list(python_blocks(page))}
    told = [*RUN_BY, *HERE, *NOT_RUN]
    assert len(told) == len(set(told))
    assert having == set(told)


@pytest.mark.parametrize("page", RUN_BY)
def test_the_test_of_a_page_reads_the_page(page: str) -> None:
    assert Path(page).name in (ROOT / RUN_BY[page]).read_text("utf-8")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the `model.tflite` of pages."""
    row = Spec("float32", [2])
    (tmp_path / "model.tflite").write_bytes(one_op_model("RELU", [row], [row]))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme_s_model_runs_and_its_op_computes(model: Path) -> None:
    found = run_blocks(ROOT / "README.md", {"x": np.array([-1, 2], np.float32)})
    assert found["y"].tolist() == [0, 2]
    resolver = MutableOpResolver()
    found["register_ops"](resolver)
    (angle,) = call_op("Atan", [np.array([0, 1], np.float32)], [Spec("float32", [2])], op_resolver=resolver)
    np.testing.assert_allclose(angle, [0, np.pi / 4], rtol=1e-6)


def test_async_runs_with_the_delegate_to_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_example_delegate")
    monkeypatch.chdir(tmp_path)
    image, means = Spec("float32", [1, 8, 8, 1]), Spec("float32", [1, 4])
    from oplet.schema.options import Conv2DOptions, Padding, ReducerOptions
    from oplet_testing import Graph, Op, graph_model

    convolve = Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1)
    tensors = {
        "x": image,
        "w": np.ones((4, 1, 1, 1), np.float32),
        "b": np.zeros(4, np.float32),
        "z": Spec("float32", [1, 8, 8, 4]),
        "axes": np.array([1, 2], np.int32),
        "y": means,
    }
    ops = [Op("CONV_2D", "x w b", "z", convolve), Op("MEAN", "z axes", "y", ReducerOptions())]
    (tmp_path / "model.tflite").write_bytes(graph_model(Graph(tensors, "x", "y", ops), signatures={"serve": 0}))
    found = run_blocks(ROOT / "docs" / "async.md")
    assert found["y"].tolist() == [[0, 0, 0, 0]]
    assert issubclass(found["MyKernel"], DelegateKernel)


def test_an_engine_is_chosen_and_a_stranger_s_model_opened(model: Path) -> None:
    for page in ("choosing-an-engine.md", "reliability.md"):
        found = run_blocks(ROOT / "docs" / page)
        found["interpreter"].allocate_tensors()
        found["interpreter"].invoke()


def test_the_command_of_a_plugin_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    from oplet import CommandRegistry

    registry = CommandRegistry()
    run_blocks(ROOT / "docs" / "plugins.md")["register_commands"](registry)
    assert [entry.name for entry in registry.entries()] == ["wave"]


def test_the_pages_of_the_packages_run_in_a_clone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    for folder in ("core", "metapackage"):
        run_blocks(ROOT / folder / "README.md")
        assert capsys.readouterr().out == "(1, 10)\n"
    run_blocks(ROOT / "plugins" / "builtin_ops" / "README.md")
    assert capsys.readouterr().out == "int8\n"
    run_blocks(ROOT / "plugins" / "predictor" / "README.md")
    assert capsys.readouterr().out == "{'probabilities': (100, 10)}\n"
    found = run_blocks(ROOT / "plugins" / "testing" / "README.md")
    assert first_failure(found["TestContract"]()) == ""


def test_the_page_of_the_compiled_kernels_runs_in_a_clone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("oplet_compiled_ops", reason="oplet-compiled-ops is not installed")
    monkeypatch.chdir(ROOT)
    run_blocks(ROOT / "plugins" / "compiled_ops" / "README.md")
    assert capsys.readouterr().out == "oplet-compiled-ops\n"


@pytest.mark.parametrize("page", ["cookbook.md", "migrating.md"])
def test_recipes_run_in_a_clone(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = run_blocks(ROOT / "docs" / page)
    assert isinstance(found["interpreter"], Interpreter)


def test_a_model_runs_on_buffers_in_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for page in (ROOT / "docs" / "compiled-model.md", ROOT / "plugins" / "compiled_model" / "README.md"):
        found = run_blocks(page)
        assert found["outputs"][0].read(10, found["np"].int8).any()


def test_the_quantized_layer_of_the_page_equals_the_built_in_one_and_keeps_the_contract() -> None:
    found = run_blocks(ROOT / "docs" / "quantization.md")
    assert first_failure(found["TestProject"]()) == ""


def test_the_page_s_rounding_is_what_makes_the_layer_equal() -> None:
    page = ROOT / "docs" / "quantization.md"
    changed = [code.replace("rounding=Rounding.FLOAT", "rounding=Rounding.DOUBLE") for _, code in python_blocks(page)]
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        exec("\n".join(changed), {"__name__": "page"})
