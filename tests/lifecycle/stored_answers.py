"""Answers of many models: of those that are prepared, in this process, and of those that have plans on disk, in a child that reads a list of models."""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from typing import Any

import numpy as np

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.runtime.memory import plan_files

__all__ = ["answers", "keep", "without_bounds"]

Model = tuple[str, str]


def without_bounds() -> None:
    """Keep the plans of all models, however many they are."""
    plan_files._ALL_FILES, plan_files._ALL_BYTES = 1 << 30, 1 << 50


def _content(model: Model) -> bytes:
    archive, name = model
    with zipfile.ZipFile(archive) as file:
        return file.read(name)


def _inputs(interpreter: Interpreter, seed: int) -> None:
    random = np.random.default_rng(seed)
    for details in interpreter.get_input_details():
        shape, dtype = details["shape"], np.dtype(details["dtype"])
        if dtype.kind == "b":
            value: Any = random.random(shape) < 0.5
        elif dtype.kind in "iu":
            value = random.integers(0, 3 if dtype.itemsize > 2 else 100, shape)
        elif dtype.kind in "fc":
            value = random.standard_normal(shape)
        else:
            continue
        interpreter.set_tensor(details["index"], np.asarray(value, dtype))


def answers(interpreter: Interpreter) -> list[str]:
    """What two runs give: a checksum of each output, or the error's text."""
    found = []
    for seed in range(2):
        _inputs(interpreter, seed)
        try:
            interpreter.invoke()
        except OpletError as error:
            found.append(str(error))
            continue
        for details in interpreter.get_output_details():
            value = np.ascontiguousarray(interpreter.get_tensor(details["index"]))
            found.append(f"{value.shape} {zlib.crc32(value.tobytes())}")
    return found


def keep(model: Model) -> list[str] | None:
    """The answers of a model whose plan is stored then; None of one that cannot be opened, or has no plan."""
    try:
        interpreter = Interpreter(model_content=_content(model))
        interpreter.allocate_tensors()
        plans = interpreter._runtime.loaded.stored_plans
        if plans is None or plans._name is None:
            return None
        plan_files.note_opened(plans._name)  # as if it had been opened before
        interpreter.invoke()
    except OpletError:  # not all models run on any inputs
        return None
    return answers(interpreter)


def _child() -> None:
    without_bounds()
    found = []
    for model in json.load(sys.stdin):
        interpreter = Interpreter(model_content=_content(model))
        interpreter.allocate_tensors()
        restored = interpreter._subgraphs[0].stored is not None
        found.append(answers(interpreter) if restored else None)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    _child()
