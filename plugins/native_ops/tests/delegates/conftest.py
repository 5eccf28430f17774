"""The libraries of `sources/delegates`, what they count, and models for them."""

from __future__ import annotations

import ctypes
import gc
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.places import REAL

from oplet import Interpreter, ModelBuilder
from oplet.schema.enums import Padding
from oplet.schema.options import Conv2DOptions, ReducerOptions
from oplet_native_ops.shim.opening import open_library

F32 = np.float32


def convolutions(count: int = 2, *, free: bool = False) -> bytes:
    """So many times CONV_2D and RELU, then MEAN: 4 x 4 pixels of 2 channels become two numbers."""
    random = np.random.default_rng(1)
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    at = graph.add_tensor("x", F32, (1, 4, 4, 2), shape_signature=(1, -1, -1, 2) if free else None)
    graph.set_inputs(at)
    for i in range(count):
        weights = graph.add_tensor(f"weights {i}", F32, (2, 3, 3, 2), data=random.standard_normal((2, 3, 3, 2)).astype(F32))
        bias = graph.add_tensor(f"bias {i}", F32, (2,), data=random.standard_normal(2).astype(F32))
        made, active = (graph.add_tensor(f"{name} {i}", F32, (1, 4, 4, 2)) for name in ("made", "active"))
        graph.add_operator("CONV_2D", [at, weights, bias], [made], Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1))
        graph.add_operator("RELU", [made], [active])
        at = active
    axes = graph.add_tensor("axes", np.int32, (2,), data=np.array([1, 2], np.int32))
    y = graph.add_tensor("y", F32, (1, 2))
    graph.add_operator("MEAN", [at, axes], [y], ReducerOptions(keep_dims=False))
    graph.set_outputs(y)
    return builder.to_bytes()


def answers(content: bytes, *delegates: Any, cls: Any = Interpreter, seed: int = 0) -> list[Any]:
    """The outputs for random inputs."""
    interpreter = cls(model_content=content, experimental_delegates=list(delegates) or None)
    interpreter.allocate_tensors()
    return run(interpreter, seed)


def run(interpreter: Any, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], detail["dtype"]
        values = random.random(shape) if np.dtype(dtype).kind == "f" else random.integers(0, 100, shape)
        interpreter.set_tensor(detail["index"], values.astype(dtype))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def partitions(interpreter: Interpreter) -> list[tuple[int, bool, list[list[int]]]]:
    return [(report.subgraph, report.applied, report.partitions) for report in interpreter.delegation_reports()]


def real_models(largest: int) -> Iterator[tuple[str, bytes]]:
    """The recorded models, each once."""
    seen = set()
    for file in sorted(REAL.glob("*.zip")):
        if file.stem == "unrunnable":
            continue
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".tflite") and info.file_size <= largest and info.CRC not in seen:
                    seen.add(info.CRC)
                    yield f"{file.stem}/{info.filename.removesuffix('/model.tflite')}", archive.read(info)


class Counts:
    """What my_delegate.cc and my_opaque_delegate.cc count, since this object was made."""

    NAMES = ("delegates", "kernels", "inits", "frees", "handles_freed", "copies")

    def __init__(self, library: str) -> None:
        gc.collect()  # what earlier tests left behind goes now
        self._numbers = (ctypes.c_int * 6).in_dll(open_library(library).functions, "my_delegate_counts")
        self._first = list(self._numbers)

    def __getattr__(self, name: str) -> int:
        at = self.NAMES.index(name)
        return self._numbers[at] - self._first[at]


#: The first time that ziglang compiles C++ it makes a C++ library, which takes minutes.
_MADE = [
    pytest.param(f"{kind}-{compiler}", marks=[pytest.mark.environment] if compiler == "ziglang" else [])
    for kind in ("my", "my_opaque")
    for compiler in ("gcc", "ziglang")
]


@pytest.fixture(scope="session", params=_MADE)
def my_delegate(request: pytest.FixtureRequest, build_with: Callable[[str], Callable[..., str]]) -> str:
    """The guide's delegate in C++, on structs and on opaque types, from each compiler that is there."""
    kind, compiler = request.param.split("-")
    return build_with(compiler)(f"delegates/{kind}_delegate.cc", library=f"lib{kind}_delegate.so")


@pytest.fixture(scope="session")
def struct_delegate(build_once: Callable[..., str]) -> str:
    """The one on structs, which runs in LiteRT too."""
    return build_once("delegates/my_delegate.cc", library="libmy_delegate.so")


def graph_of(interpreter: Interpreter) -> list[tuple[int, str, list[int], list[int]]]:
    """The nodes as they run."""
    details = interpreter._get_ops_details()
    return [(each["index"], each["op_name"], each["inputs"].tolist(), each["outputs"].tolist()) for each in details]
