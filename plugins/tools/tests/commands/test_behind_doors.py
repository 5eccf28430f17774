"""`oplet behind` answers the other modules of LiteRT's packages, refuses them in a sentence, or tells that LiteRT's own ran."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import io
import mmap
import sys
import zipfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import pytest
from tests.places import SHARED

from oplet import ModelBuilder
from oplet.errors import OpletError
from oplet_tools.behind import doors
from oplet_tools.behind.import_hooks import intercept_imports
from oplet_tools.behind.litert_names import UsageReport
from oplet_tools.behind.stand_ins import analyzer, metrics
from oplet_tools.behind.stand_ins.tools import benchmark_litert_model, flatbuffer_utils, mmap_utils

LITERT = find_spec("ai_edge_litert") is not None
PACKAGES = ("ai_edge_litert", "tflite_runtime", "pycoral")


def unload() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in PACKAGES}


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = unload()
    yield
    unload()
    sys.modules.update(before)


@pytest.fixture
def without_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packages are not installed."""

    class Without:
        """A finder without those packages."""

        def __init__(self, finder: Any) -> None:
            self._finder = finder
            if hasattr(finder, "find_distributions"):
                self.find_distributions = self._find_distributions

        def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            if fullname.partition(".")[0] in PACKAGES:
                return None
            found: ModuleSpec | None = self._finder.find_spec(fullname, path, target)
            return found

        def _find_distributions(self, context: Any = None) -> Any:
            asked = str(getattr(context, "name", "")).replace("-", "_")
            return iter(()) if asked in PACKAGES else self._finder.find_distributions(context)

    monkeypatch.setattr(sys, "meta_path", [Without(finder) for finder in sys.meta_path])


def hooks() -> Any:
    return intercept_imports({"Interpreter": 1, "load_delegate": 2, "OpResolverType": 3, "Analyzer": 4}, ())


@pytest.mark.usefixtures("without_litert")
def test_small_modules_versions_and_distributions_are_answered_where_litert_is_missing() -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("ai-edge-litert")
    with hooks() as imports:
        for package in ("ai_edge_litert", "tflite_runtime"):
            assert importlib.import_module(package).__version__ == doors.VERSIONS[package]
            assert importlib.metadata.version(package.replace("_", "-")) == doors.VERSIONS[package]
            assert importlib.metadata.version(package) == doors.VERSIONS[package]
            assert importlib.import_module(f"{package}.metrics_portable").TFLiteMetrics("x").set_converter_param("a", 1) is None
        assert importlib.import_module("ai_edge_litert.tools.mmap_utils").get_file_contents is mmap_utils.get_file_contents
        assert find_spec("ai_edge_litert") is not None
        listed = {str(each.metadata["Name"]).lower() for each in importlib.metadata.distributions()}
        assert "numpy" in listed
        with pytest.raises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("pycoral")
        schema = importlib.import_module("ai_edge_litert.schema_py_generated")
        assert importlib.import_module("ai_edge_litert.tools.flatbuffer_utils").ModelT is schema.ModelT
    assert {"ai_edge_litert.tools.mmap_utils", "ai_edge_litert.schema_py_generated"} <= set(imports.answered)
    assert not any(name.startswith("ai_edge_litert") for name in sys.modules)


@pytest.mark.usefixtures("without_litert")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ai_edge_litert.aot", "ai-edge-litert is not installed: pip install ai-edge-litert brings it"),
        ("ai_edge_litert.tools.model_utils", "ai-edge-litert is not installed"),
        ("ai_edge_litert.pywrap_genai_ops", "it registers C\\+\\+ kernels with LiteRT's C\\+\\+ interpreter"),
        ("pycoral.utils", "make the interpreter with tflite_runtime.interpreter, which oplet answers"),
    ],
)
def test_what_cannot_be_answered_is_one_sentence_in_the_error_and_in_the_last_line(name: str, words: str) -> None:
    with hooks() as imports, pytest.raises(ModuleNotFoundError, match=words) as refused:
        importlib.import_module(name)
    assert str(refused.value).count(". ") == 0
    report = UsageReport()
    report.refused = dict(imports.refused)
    assert str(refused.value).rstrip(".") in str(report)
    with hooks():
        assert find_spec("pycoral") is None  # who only asks hears that it is missing


@pytest.mark.parametrize("name", ["InvokeWithCalibration", "get_memory_usage"])
def test_the_calibration_of_c_plus_plus_is_refused_where_it_is_used_as_quantizers_import_it_anyway(name: str) -> None:
    with hooks():
        calibration = importlib.import_module("ai_edge_litert._pywrap_tfl_calibration")
        with pytest.raises(OpletError, match="through the address of LiteRT's C\\+\\+ interpreter; read them with"):
            getattr(calibration, name)(*([0, 0] if name == "InvokeWithCalibration" else []))


@pytest.mark.skipif(not LITERT, reason="needs ai-edge-litert")
def test_with_litert_installed_its_own_modules_are_told_and_those_that_run_models_are_refused() -> None:
    with hooks() as imports:
        assert importlib.import_module("ai_edge_litert.schema_py_generated").ModelT is not None
        importlib.import_module("ai_edge_litert.tools.flatbuffer_utils")
        for name in ("_pywrap_tensorflow_lite_calibration_wrapper", "pywrap_genai_ops"):
            with pytest.raises(ImportError, match="is not answered by oplet"):
                importlib.import_module(f"ai_edge_litert.{name}")
        assert importlib.import_module("ai_edge_litert.metrics_portable").TFLiteMetrics is metrics.TFLiteMetrics
    assert list(imports.passed) == ["ai_edge_litert.schema_py_generated", "ai_edge_litert.tools.flatbuffer_utils"]
    report = UsageReport()
    report.passed = list(imports.passed)
    assert "; of LiteRT itself: ai_edge_litert.schema_py_generated, ai_edge_litert.tools.flatbuffer_utils" in str(report)


@pytest.mark.skipif(not LITERT, reason="needs ai-edge-litert")
def test_a_module_that_an_installed_litert_lacks_is_missing_as_without_oplet_and_nothing_is_said_of_it() -> None:
    with hooks() as imports:
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'ai_edge_litert\.litert_wrapper'"):
            importlib.import_module("ai_edge_litert.litert_wrapper.compiled_model_wrapper")
        assert not imports.refused


def test_the_newer_api_is_answered_by_its_package_or_refused_with_the_command_that_installs_it() -> None:
    if find_spec("oplet_compiled_model") is None:
        with hooks(), pytest.raises(ImportError, match=r"is answered where oplet-compiled-model is installed: pip install"):
            importlib.import_module("ai_edge_litert.compiled_model")
        return
    with hooks():
        for name in doors.COMPANIONS:
            module = importlib.import_module(name)
            assert module.__spec__ is not None
            assert module.__spec__.origin == "oplet", name
        from ai_edge_litert.compiled_model import CompiledModel
        from ai_edge_litert.options import CpuOptions

        assert CompiledModel.__module__.startswith("oplet_compiled_model")
        assert CpuOptions().num_threads == 0


def test_an_answer_of_the_newer_api_has_what_its_package_has(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = ModuleType("oplet.tensor_buffer")
    stand_in.TensorBuffer = object()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "oplet.tensor_buffer", stand_in)
    with hooks() as imports:
        module = importlib.import_module("ai_edge_litert.tensor_buffer")
        assert module.TensorBuffer is stand_in.TensorBuffer
    assert "ai_edge_litert.tensor_buffer" in imports.answered


@pytest.mark.skipif(not LITERT, reason="needs ai-edge-litert")
@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("metrics_interface", metrics),
        ("metrics_portable", metrics),
        ("tools.benchmark_litert_model", benchmark_litert_model),
        ("tools.flatbuffer_utils", flatbuffer_utils),
        ("tools.mmap_utils", mmap_utils),
    ],
)
def test_stand_ins_have_the_names_and_arguments_of_what_they_stand_in_for(name: str, ours: ModuleType) -> None:
    theirs = importlib.import_module(f"ai_edge_litert.{name}")
    for public, value in vars(theirs).items():
        if public.startswith("_") or inspect.ismodule(value) or getattr(value, "__module__", theirs.__name__) != theirs.__name__:
            continue
        if isinstance(value, TypeVar) or getattr(value, "_is_protocol", False):  # of type checkers
            continue
        mine = getattr(ours, public)
        if inspect.isfunction(value):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(value).parameters)
        for method in [each for each in vars(value) if not each.startswith("_")] if inspect.isclass(value) else []:
            assert list(inspect.signature(getattr(mine, method)).parameters) == list(
                inspect.signature(getattr(value, method)).parameters
            )


@pytest.mark.parametrize("offset", [0, 5, mmap.ALLOCATIONGRANULARITY + 3])
def test_files_are_memory(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * (2 * mmap.ALLOCATIONGRANULARITY // 256)
    path.write_bytes(content)
    found = mmap_utils.get_file_contents(path, offset=offset)
    assert bytes(found) == content[offset:]
    assert bytes(mmap_utils.get_file_contents(path, offset=offset, size=9)) == content[offset : offset + 9]
    mmap_utils.advise_sequential(found)
    found[0] = 77  # the file stays as it is
    mmap_utils.advise_sequential(bytearray(5))
    mmap_utils.advise_dont_need(b"x")
    assert path.read_bytes() == content
    mmap_utils.set_file_contents(path, b"new", offset=offset)
    assert path.read_bytes() == content[:offset] + b"new"
    mapped = mmap_utils.get_mapped_buffer(path, 8)
    mapped[:3] = b"abc"
    mapped.close()
    assert path.read_bytes()[:3] == b"abc"
    assert path.stat().st_size == 8
    assert mmap_utils.get_mapped_buffer_or_none(tmp_path, 8) is None
    (tmp_path / "empty").write_bytes(b"")
    assert bytes(mmap_utils.get_file_contents(tmp_path / "empty")) == b""
    with pytest.raises(OSError, match="No such file"):
        mmap_utils.get_file_contents(tmp_path / "none")


def small() -> bytes:
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    x = main.add_tensor("x", "float32", [2], shape_signature=[-1])
    axes = main.add_tensor("Größe", "int32", [1], data=np.array([0], np.int32))
    many = main.add_tensor("many", "float32", [7], data=np.array([0.5, -0.0, 1e-9, np.nan, np.inf, 1, 2], np.float32))
    y = main.add_tensor("y", "float32", [])
    main.add_operator("SUM", [x, axes], [y])
    main.set_inputs(x)
    main.set_outputs(y)
    del many
    builder.add_signature("run", {"a": x}, {"b": y})
    return builder.to_bytes()


def test_the_analyzer_prints_the_text_that_litert_has(tmp_path: Path) -> None:
    data = small()
    text = io.StringIO()
    with redirect_stdout(text):
        assert analyzer.Analyzer.analyze(model_content=data) is None
    printed = text.getvalue()
    assert printed.startswith(
        "=== TFLite ModelAnalyzer ===\n\nYour TFLite model has '1' subgraph(s). In the subgraph description below,\n"
    )
    for line in (
        "tensor #0 and tensor #1 as input and produces tensor #3 as output.",
        "Subgraph#0 main(T#0) -> [T#3]",
        "  Op#0 SUM(T#0, T#1[0]) -> [T#3]",
        "  T#0(x) shape_signature:[-1], type:FLOAT32",
        "  T#2(many) shape:[7], type:FLOAT32 RO 28 bytes, buffer: 2, data:[0.5, -0, 1e-09, nan, inf, ...]",
        "Signature#0 key: 'run'",
        "    'a' : T#0",
        f"              Model size: {len(data):>10} bytes",
    ):
        assert line in printed.split("\n"), line
    assert "T#1(Gr....e) shape:[1], type:INT32 RO 4 bytes" in printed
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    text = io.StringIO()
    with redirect_stdout(text):
        analyzer.Analyzer.analyze(model_path=str(path), gpu_compatibility=True)
    assert text.getvalue().startswith(f"=== {path} ===\n\n")
    assert "GPU COMPATIBILITY: not checked" in text.getvalue()
    with pytest.raises(ValueError, match="neither `model_path` nor `model_content` is provided"):
        analyzer.Analyzer.analyze()
    with pytest.raises(ValueError, match="oplet has no MLIR"):
        analyzer.Analyzer.analyze(model_content=data, experimental_use_mlir=True)
    assert analyzer.ModelAnalyzer("/none", True, False).endswith("Failed to mmap model /none")
    assert analyzer.ModelAnalyzer(b"none", False, False).endswith("Failed to mmap the given model buffer.")


@pytest.mark.skipif(not LITERT, reason="needs ai-edge-litert")
def test_the_analyzer_s_text_of_a_small_model_is_litert_s() -> None:
    native = importlib.import_module("ai_edge_litert._pywrap_analyzer_wrapper")
    assert analyzer.ModelAnalyzer(small(), False, False) == native.ModelAnalyzer(small(), False, False)


@pytest.mark.sweep(cases=True)
@pytest.mark.skipif(
    not LITERT or not (SHARED / "conformance").exists(), reason="needs ai-edge-litert and models outside the project"
)
def test_the_analyzer_s_text_of_all_models_is_litert_s() -> None:
    from tests.kinds import part

    native = importlib.import_module("ai_edge_litert._pywrap_analyzer_wrapper")
    archives = sorted((SHARED / "conformance").glob("*/*.zip"))
    names = [(path, name) for path in archives for name in zipfile.ZipFile(path).namelist() if name.endswith(".tflite")]
    names = [each for each in names if each[0].parent.name != "bad"]
    compared = 0
    for path, name in part().among(names, lambda each: f"{each[0].name}:{each[1]}"):
        data = zipfile.ZipFile(path).read(name)
        theirs = native.ModelAnalyzer(data, False, False)
        if not theirs.startswith("The model is not a valid"):  # of those, oplet tells more
            assert analyzer.ModelAnalyzer(data, False, False) == theirs, f"{path.name}: {name}"
            compared += 1
    assert compared > part().least(2600)
