"""Runner of ai-edge-litert's interpreter on the same model and inputs, for comparing times."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from oplet.errors import OpletError, text_of

__all__ = ["LITERT_RESOLVERS", "LiteRTError", "LiteRTRunner"]

#: The values of `--compare`, each with the name of an op resolver of ai_edge_litert.
LITERT_RESOLVERS = {
    "litert": "AUTO",
    "litert-no-xnnpack": "BUILTIN_WITHOUT_DEFAULT_DELEGATES",
    "litert-reference": "BUILTIN_REF",
}


class LiteRTError(OpletError, RuntimeError):
    """LiteRT is not installed, has no such kernel set, or cannot run the model."""


class LiteRTRunner:
    """LiteRT's interpreter with one of its kernel sets, allocated and with its inputs set.

    Attributes:
        name: the key in `LITERT_RESOLVERS`.
        version: ai-edge-litert's version.
        load: seconds that the constructor took.
        allocate: seconds that `allocate_tensors` took.
        invoke: runs the model.

    Args:
        name: the key in `LITERT_RESOLVERS`.
        model: the .tflite file.
        values: a value for each input of the first subgraph, by tensor index; their shapes resize the inputs.
        num_threads: threads that it may use.

    Raises:
        LiteRTError: ai-edge-litert is not installed, there is no such kernel set, or it refuses the model.
    """

    def __init__(self, name: str, model: str | os.PathLike[str], values: Mapping[int, NDArray[Any]], num_threads: int) -> None:
        module = import_litert()
        if name not in LITERT_RESOLVERS:
            raise LiteRTError(f"There is no '{name}' to compare with; there are {', '.join(LITERT_RESOLVERS)}.")
        self.name = name
        self.version = _version()
        resolver = module.OpResolverType[LITERT_RESOLVERS[name]]
        try:
            start = time.perf_counter()
            interpreter = module.Interpreter(
                model_path=os.fspath(model), num_threads=num_threads, experimental_op_resolver_type=resolver
            )
            self.load = time.perf_counter() - start
            shapes = {details["index"]: tuple(details["shape"]) for details in interpreter.get_input_details()}
            for index, value in values.items():
                if shapes.get(index) != value.shape:
                    interpreter.resize_tensor_input(index, value.shape)
            start = time.perf_counter()
            interpreter.allocate_tensors()
            self.allocate = time.perf_counter() - start
            for index, value in values.items():
                interpreter.set_tensor(index, value)
            interpreter.invoke()
        except (ValueError, RuntimeError) as error:
            raise LiteRTError(f"{name} cannot run the model: {text_of(error)}") from error
        self.invoke = interpreter.invoke


def import_litert() -> Any:
    """Import `ai_edge_litert.interpreter`.

    Raises:
        LiteRTError: ai-edge-litert is not installed.
    """
    try:
        from ai_edge_litert import interpreter

        _ = interpreter.Interpreter  # where oplet answers the module for programs, LiteRT may be missing
    except ImportError as error:
        raise LiteRTError(f"Comparing with LiteRT takes its package: pip install ai-edge-litert ({text_of(error)}).") from error
    return interpreter


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ai-edge-litert")
    except PackageNotFoundError:
        return ""
