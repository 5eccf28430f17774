"""Run LiteRT's own Python tests from a folder, on LiteRT or on oplet.

usage: python -m tests.upstream.litert_tests FOLDER {litert,oplet} [ARGUMENTS OF PYTEST]

The folder holds the tests where the public repository google-ai-edge/LiteRT has them (`git archive HEAD tflite/python tflite/testdata
litert/python | tar x`); nothing of it is in this project. The tests are not changed: what they import of `litert.python` and `tflite.python` is
answered by the submodules of `ai_edge_litert`, or of `oplet` under the same names, and the models that LiteRT's build makes are made here.
Needs TensorFlow (requirements-tensorflow.txt), which has the converter and what the tests are made with.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tests.places import ROOT
from tests.upstream.stand_in_parts import add_and_multiply

from oplet import ModelBuilder
from oplet.schema import options as o

#: The tests that ask for the interfaces that oplet answers; those of converters, compilers and Bazel's libraries do not.
FILES = (
    "litert/python/litert_wrapper/litert_wrapper_test.py",
    "litert/python/litert_wrapper/tensor_buffer_wrapper/tensor_buffer_test.py",
    "litert/python/tools/benchmark_litert_model_test.py",
    "litert/python/tools/flatbuffer_utils_overflow_test.py",
    "litert/python/tools/flatbuffer_utils_test.py",
    "litert/python/tools/mmap_utils_test.py",
    "tflite/python/analyzer_test.py",
    "tflite/python/interpreter_test.py",
    "tflite/python/metrics/metrics_portable_test.py",
)
#: Modules of the repository that tests import: by what they are answered, of the package under test where that begins with a dot; "" for one
#: that only LiteRT's build makes. `litert.python.tools.X` is the package's `tools.X`, modules in folders of wrappers are its own of their last name.
_ANSWERS = {
    "google3.third_party.tensorflow.python.platform.resource_loader": "tensorflow.python.platform.resource_loader",
    "litert.python.schema_py_generated": ".schema_py_generated",
    "tflite.python.analyzer": "tensorflow.lite.python.analyzer",
    "tflite.python.interpreter": ".interpreter",
    "tflite.python.lite": "tensorflow.lite.python.lite",
    "tflite.python.metrics.metrics": ".metrics_portable",
    "tflite.python.testdata._pywrap_test_registerer": "",
    **{f"litert.python.tools.{name}": f".tools.{name}" for name in ("benchmark_litert_model", "flatbuffer_utils", "mmap_utils")},
    "litert.python.litert_wrapper.tensor_buffer_wrapper.tensor_buffer": ".tensor_buffer",
    **{
        f"litert.python.litert_wrapper.compiled_model_wrapper.{name}": f".{name}"
        for name in ("compiled_model", "cpu_options", "gpu_options", "intel_openvino_options", "options", "qualcomm_options")
    },
}


class Answers(MetaPathFinder, Loader):
    """Answers the repository's modules with those of a package.

    Args:
        package: the package's name.
    """

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of one of the repository's modules, or of a package around them."""
        around = any(name.startswith(f"{fullname}.") for name in _ANSWERS)
        return ModuleSpec(fullname, self, is_package=around) if around or fullname in _ANSWERS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        target = _ANSWERS.get(spec.name)
        if not target:
            return None
        is_oplet_s = self._package == "oplet" and target.endswith(".analyzer")
        target = "oplet_tools.behind.stand_ins.analyzer" if is_oplet_s else target
        found = importlib.import_module(f"{self._package}{target}" if target.startswith(".") else target)
        made = ModuleType(spec.name)
        made.__dict__.update({name: getattr(found, name) for name in dir(found) if not name.startswith("__")})
        if is_oplet_s:
            made.__dict__["ModelAnalyzer"] = found.Analyzer
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: all is there."""


def net(op: str, dtype: str, shapes: Sequence[list[int]], options: Any, constant: Any = None, **units: float) -> bytes:
    """A model of one node, as the repository's build makes it of a graph of TensorFlow's."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("input", dtype, shapes[0], **units)
    second = (
        graph.add_tensor("indices", "int64", shapes[1])
        if constant is None
        else graph.add_tensor("weights", dtype, constant.shape, data=constant, **units)
    )
    y = graph.add_tensor("output", dtype, shapes[-1], **units)
    graph.add_operator(op, [x, second, *([None] if op == "FULLY_CONNECTED" else [])], [y], options)
    graph.set_inputs(*([x] if constant is not None else [x, second]))
    graph.set_outputs(y)
    return builder.to_bytes()


def scalar_beside() -> bytes:
    """A model that gathers strings of a constant; a scalar string is an input that nothing reads."""
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("input", "bytes", [])
    texts = graph.add_tensor("input_const", "bytes", [1], data=np.array([b"abcd"], object))
    indices = graph.add_tensor("indices", "int64", [3])
    y = graph.add_tensor("output", "bytes", [3])
    graph.add_operator("GATHER", [texts, indices], [y], o.GatherOptions())
    graph.set_inputs(x, indices)
    graph.set_outputs(y)
    return builder.to_bytes()


def sums() -> dict[str, bytes]:
    """The models of litert_wrapper_test, which the repository has as MLIR."""
    made = {}
    for name, dtype, second in (("float", "float32", None), ("int", "int32", np.ones(4, np.int32))):
        builder = ModelBuilder()
        graph = builder.add_subgraph("main")
        inputs = [graph.add_tensor("arg0", dtype, [4]), graph.add_tensor("arg1", dtype, [4], data=second)]
        y = graph.add_tensor("tfl.add", dtype, [4])
        graph.add_operator("ADD", inputs, [y], o.AddOptions())
        graph.set_inputs(*inputs[: 2 if second is None else 1])
        graph.set_outputs(y)
        made[f"simple_model_{name}"] = builder.to_bytes()
    return made


def make_data(folder: Path) -> None:
    """Write what the repository's build makes into its folders: models, and a delegate if there is a compiler."""
    turned, row = o.FullyConnectedOptions(), [[1, 4], [1, 4]]
    models = {
        "permute_float": net("FULLY_CONNECTED", "float32", row, turned, np.eye(4, dtype=np.float32)[::-1]),
        "permute_uint8": net("FULLY_CONNECTED", "uint8", row, turned, np.eye(4, dtype=np.uint8)[::-1], scale=1.0, zero_point=0),
        "gather_string": net("GATHER", "bytes", [[10], [3], [3]], o.GatherOptions()),
        "two_signatures": add_and_multiply().to_bytes(),
        "gather_string_0d": scalar_beside(),
    }
    for place, made in (("tflite/python/testdata", models), ("litert/python/litert_wrapper/testdata", sums())):
        (folder / place).mkdir(parents=True, exist_ok=True)
        for name, data in made.items():
            (folder / place / f"{name}.tflite").write_bytes(data)
    source = folder / "tflite/python/testdata/test_delegate.cc"
    if source.exists():
        include = ROOT / "plugins/native_ops/src/oplet_native_ops/include"
        command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{include}", str(source), "-o", str(source.with_suffix(".so"))]
        subprocess.run(command, check=True, timeout=300)


def main(folder: Path, engine: str, file: str, arguments: Sequence[str]) -> int:
    """Run the tests of a file in this process; the exit code of pytest."""
    importlib.import_module("absl.flags").FLAGS(["tests"])  # which give the tests their folders
    importlib.import_module("tensorflow.lite")  # whose native parts import modules of the same names, which are its own
    sys.meta_path.insert(0, Answers({"litert": "ai_edge_litert", "oplet": "oplet"}[engine]))
    own = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(folder), "--import-mode=importlib"]
    return int(pytest.main([*own, str(folder / file), *arguments]))


def main_of_all(folder: Path, engine: str, arguments: Sequence[str]) -> int:
    """Run each file in a process of its own, as LiteRT does: some leave hooks behind. How many had failures."""
    make_data(folder)
    code = "import sys; from pathlib import Path; from tests.upstream.litert_tests import main"
    code += "; raise SystemExit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))"
    files = [file for file in FILES if (folder / file).exists()]
    runs = [subprocess.run([sys.executable, "-c", code, folder, engine, file, *arguments], check=False) for file in files]
    return sum(run.returncode != 0 for run in runs)


if __name__ == "__main__":
    raise SystemExit(main_of_all(Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]))
