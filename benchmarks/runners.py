"""Runners of the runtimes that are measured, each with a model loaded and its inputs set."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.common import random_value

__all__ = ["OPLET", "RUNNERS", "SLOW", "installed", "is_installed", "make", "prepared"]

#: Kinds of runners, and the distributions that they need.
RUNNERS = {
    "oplet-numpy": "oplet-builtin-ops",
    "oplet-compiled": "oplet-compiled-ops",
    "litert-xnnpack": "ai-edge-litert",
    "litert": "ai-edge-litert",
    "litert-reference": "ai-edge-litert",
    "tflite-micro": "tflite-micro",
    "onnx.reference": "onnx",
}
OPLET = ("oplet-numpy", "oplet-compiled")
#: Slow runners, which do not take part in every round.
SLOW = ("litert-reference", "tflite-micro", "onnx.reference")

_RESOLVERS = {"litert-xnnpack": "AUTO", "litert": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "litert-reference": "BUILTIN_REF"}
#: Size of tflite-micro's arena in bytes; unused memory costs nothing.
_MICRO_ARENA = 256 << 20


def installed(kind: str) -> bool:
    """Whether the package that a runner needs is installed."""
    return is_installed(RUNNERS[kind])


def is_installed(package: str) -> bool:
    """Whether a distribution is installed."""
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


@cache
def _plugins(kind: str) -> Any:
    """The plugins of a runner; they are discovered once, as in a program that runs several models."""
    from oplet.plugins.manager import PluginManager

    return PluginManager(block=["oplet-compiled-ops"] if kind == "oplet-numpy" else [])


def make(kind: str, content: bytes, num_threads: int = 1) -> Any:
    """An interpreter of oplet's or LiteRT's API, not yet allocated."""
    if kind in OPLET:
        from oplet import Interpreter

        return Interpreter(model_content=content, num_threads=num_threads, plugins=_plugins(kind))
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    resolver = OpResolverType[_RESOLVERS[kind]]
    return LiteRT(model_content=content, num_threads=num_threads, experimental_op_resolver_type=resolver)


def feed(interpreter: Any) -> None:
    """Set every input."""
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], random_value(detail))


def prepared(kind: str, name: str, content: bytes, onnx_folder: Path | None = None) -> Callable[[], object]:
    """A callable that runs the model once, on the same values in each runtime.

    Raises:
        Exception: the runtime cannot run the model; each runtime has its own exception classes.
    """
    if kind == "tflite-micro":
        return _micro(content)
    if kind == "onnx.reference":
        return _onnx(name, onnx_folder)
    interpreter = make(kind, content)
    interpreter.allocate_tensors()
    feed(interpreter)
    return interpreter.invoke  # type: ignore[no-any-return]


def _micro(content: bytes) -> Callable[[], object]:
    from tflite_micro import runtime

    from oplet import Interpreter

    interpreter = runtime.Interpreter.from_bytes(content, arena_size=_MICRO_ARENA)
    for place, detail in enumerate(Interpreter(model_content=content).get_input_details()):
        interpreter.set_input(random_value(detail), place)
    return interpreter.invoke  # type: ignore[no-any-return]


def _onnx(name: str, folder: Path | None) -> Callable[[], object]:
    """A callable that runs the ONNX version, NAME.onnx, made by `python -m tf2onnx.convert --tflite NAME.tflite`."""
    if folder is None:
        raise ValueError("no --onnx FOLDER was given")
    path = folder / f"{name}.onnx"
    if not path.exists():
        raise ValueError(f"{path} is missing: nothing converted the model")
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    evaluator = ReferenceEvaluator(model)
    values = {}
    for entry in model.graph.input:
        kind = entry.type.tensor_type
        shape = [dim.dim_value or 1 for dim in kind.shape.dim]
        values[entry.name] = random_value({"dtype": onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), "shape": shape})
    return lambda: evaluator.run(None, values)
