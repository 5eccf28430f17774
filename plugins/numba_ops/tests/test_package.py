"""Installing the package is all: what it overrides, what falls back, and where machine code is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from oplet import Interpreter, Registration, TensorType
from oplet.schema.enums import BuiltinOperator, Padding
from oplet.schema.options import Conv2DOptions
from oplet.testing import Spec, one_op_model
from oplet_numba_ops import VERSIONS
from oplet_numba_ops.kernels import Kernel
from oplet_numba_ops.overriding import override

OPTIONS = Conv2DOptions(padding=Padding.VALID, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1)


def served(model: bytes) -> bool:
    """Whether the compiled kernel runs the first node."""
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return type(interpreter._subgraphs[0].nodes[0].prepared).__module__ == "oplet_numba_ops.overriding"


def test_versions_are_those_of_the_numpy_kernels() -> None:
    import oplet_builtin_ops

    for name, versions in VERSIONS.items():
        assert oplet_builtin_ops.VERSIONS[name] == versions, name


def test_every_operator_has_a_module() -> None:
    import importlib

    for name in VERSIONS:
        found = importlib.import_module(f"oplet_numba_ops.ops.{name.lower()}").REGISTRATION
        assert isinstance(found, Registration)
        assert name in BuiltinOperator.__members__


def test_a_constant_layer_is_served_and_one_with_weights_from_the_model_falls_back() -> None:
    x, y = Spec("float32", (1, 4, 4, 3)), Spec("float32", (1, 4, 4, 2))
    weights = np.ones((2, 1, 1, 3), "float32")
    assert served(one_op_model("CONV_2D", [x, weights, None], [y], OPTIONS))
    assert not served(one_op_model("CONV_2D", [x, Spec("float32", weights.shape), None], [y], OPTIONS))
    assert not served(one_op_model("CONV_2D", [Spec("float32", (1, 4, 4, 6)), weights, None], [y], OPTIONS))  # two groups


def test_a_node_that_is_not_served_keeps_the_memory_that_the_numpy_kernel_asked_for() -> None:
    asked = []

    def prepare(context: object, node: object) -> None:
        node.prepared = "builtin"  # type: ignore[attr-defined]
        context.add_temporary(node, (3,), TensorType.FLOAT32)  # type: ignore[attr-defined]
        context.resize_tensor(node.outputs[0], (3,))  # type: ignore[attr-defined]

    def bind(context: object, node: object) -> object:
        asked.append((node.prepared, len(node.temporaries)))  # type: ignore[attr-defined]
        return lambda: None

    from oplet import MutableOpResolver

    for plan, wanted in ((lambda context, node: None, True), (lambda context, node: lambda: lambda: None, False)):
        asked.clear()
        resolver = MutableOpResolver()
        resolver.add_custom("Own", override(Registration(prepare=prepare, bind=bind), plan))  # type: ignore[arg-type]
        model = one_op_model("Own", [Spec("float32", (3,))], [Spec("float32", (3,))])
        Interpreter(model_content=model, op_resolver=resolver).allocate_tensors()
        assert set(asked) == ({("builtin", 1)} if wanted else set())


def _twice(values, results):  # type: ignore[no-untyped-def]
    for i in range(len(values)):
        results[i] = 2 * values[i]


def test_a_kernel_refuses_other_types_in_place_of_compiling_for_them() -> None:
    kernel = Kernel(_twice, "void(f4[::1], f4[::1])").compiled()
    values, results = np.arange(3, dtype="float32"), np.zeros(3, "float32")
    kernel(values, results)
    assert results.tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        kernel(values.astype("float64"), results.astype("float64"))


CODE = """
import pathlib, sys
from oplet import Interpreter
interpreter = Interpreter(model_content=pathlib.Path(sys.argv[1]).read_bytes())
interpreter.allocate_tensors()
interpreter.invoke()
"""


def test_machine_code_is_kept_where_numba_cache_dir_says_and_found_again(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    inputs = [Spec("float32", (1, 4, 4, 3)), np.ones((2, 1, 1, 3), "float32"), None]
    model.write_bytes(one_op_model("CONV_2D", inputs, [Spec("float32", (1, 4, 4, 2))], OPTIONS))
    cache = tmp_path / "cache"

    def run() -> dict[str, int]:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
        subprocess.run([sys.executable, "-c", CODE, str(model)], check=True, env=environment, capture_output=True)
        return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.nbc")}

    first = run()
    assert first
    assert run() == first
