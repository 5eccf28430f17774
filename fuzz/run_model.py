"""Run one model under limits and say what came of it.

python -m fuzz.run_model MODEL [NUMBER]
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuzz.choices import Choices, SeededChoices
from oplet import Delegate, Interpreter, Limits, load_delegate
from oplet.errors import OpletError
from oplet.ops.tensor import Tensor

__all__ = ["DELEGATE", "LIMITS", "Outcome", "run_model"]

#: What a careful server would allow a model of a stranger, smaller.
LIMITS = Limits(
    max_arena_bytes=64 << 20,
    max_tensor_bytes=64 << 20,
    max_nodes=2_000,
    max_call_depth=32,
    max_while_iterations=10_000,
    max_seconds=2.0,
)

#: The environment variable with the name of the delegate that the models are run with; it reaches the worker.
DELEGATE = "OPLET_FUZZ_DELEGATE"

_WORDS = (b"", b"a", b"word", b"\xff\x00", b"seven words of text in one string", "\u20ac".encode())


class Outcome(NamedTuple):
    """What came of a model.

    Attributes:
        kind: "ok"; "refused", with an error of oplet.errors as it should be; "accident", the same but because numpy or
            Python stumbled over what a check should have found; "escaped", an exception outside oplet.errors.
        stage: "load", "allocate", "feed", "invoke" or "read".
        error: the class of the error.
        place: where an accident or an escaped exception was raised: module and line.
        message: the first line of the error.
    """

    kind: str
    stage: str
    error: str = ""
    place: str = ""
    message: str = ""


def run_model(data: bytes, choices: Choices, *, resize: bool = True) -> Outcome:
    """Load, allocate, feed at random, invoke once and read what there is to read.

    Args:
        choices: decide about the inputs' values and, for some models, about other shapes for them.
        resize: whether the inputs may get other shapes at all.
    """
    stage = "load"
    runner: Any = None
    try:
        runner = Interpreter(
            model_content=data,
            limits=LIMITS,
            experimental_delegates=_delegates(),
            experimental_preserve_all_tensors=choices.chance(10),
        )
        runner.get_signature_list()
        inputs = runner.get_input_details()
        runner.get_output_details()
        stage = "allocate"
        if choices.chance(8) and resize:
            for detail in inputs:
                shape = [int(dim) if choices.chance(60) else choices.below(5) for dim in detail["shape"]]
                runner.resize_tensor_input(detail["index"], shape)
        runner.allocate_tensors()
        stage = "feed"
        for detail in inputs:
            _feed(runner, detail["index"], choices)
        stage = "invoke"
        runner.invoke()
        stage = "read"
        for detail in runner.get_output_details():
            runner.get_tensor(detail["index"])
    except OpletError as error:
        return _told(error, stage)
    except Exception as error:
        return Outcome("escaped", stage, type(error).__name__, _place(error), _line(error))
    finally:
        if runner is not None:
            runner.close()
    return Outcome("ok", stage)


def _delegates() -> list[Delegate] | None:
    name = os.environ.get(DELEGATE)
    return [load_delegate(name)] if name else None


def _feed(runner: Any, index: int, choices: Choices) -> None:
    tensor: Tensor = runner._tensor(index, 0)
    if tensor.is_constant or not tensor.has_data:
        return
    runner.set_tensor(index, _value(tensor, choices))


def _value(tensor: Tensor, choices: Choices) -> Any:
    dtype, shape, size = tensor.dtype, tensor.shape, tensor.size
    if dtype.hasobject:
        words = np.empty(16, object)
        words[:] = [choices.choice(_WORDS) for _ in range(16)]
        return np.resize(words, size).reshape(shape)
    kind = choices.below(4)
    block: NDArray[Any]
    if dtype.kind == "b":
        block = np.frombuffer(choices.raw(64), np.uint8) & 1
    elif kind == 0:  # any bits: NaN, infinities, the largest integers
        block = np.frombuffer(choices.raw(64 * dtype.itemsize), dtype.newbyteorder("="))
    elif kind == 1:
        block = np.full(64, choices.below(2))
    else:  # numbers that may be sizes, axes and indices
        block = np.frombuffer(choices.raw(64), np.uint8) % (5 if kind == 2 else 40)
        block = block.astype(np.int16) - (choices.below(3) if dtype.kind != "u" else 0)
    return np.resize(block.astype(dtype), size).reshape(shape)


def _told(error: OpletError, stage: str) -> Outcome:
    """An error that is oplet's own; an accident if something else lies behind it that nobody meant to raise."""
    name = type(error).__name__
    if type(error).__module__ != OpletError.__module__:
        return Outcome("escaped", stage, name, _place(error), _line(error))
    cause = error.__cause__
    while isinstance(cause, OpletError):
        cause = cause.__cause__
    if cause is not None and str(error).startswith(f"{type(cause).__name__}: "):
        return Outcome("accident", stage, type(cause).__name__, _place(cause), _line(error))
    return Outcome("refused", stage, name, message=_line(error))


def _place(error: BaseException) -> str:
    """The innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "oplet" in frame.filename and "site-packages" not in frame.filename]
    if not ours:
        return "?"
    path = Path(ours[-1].filename)
    return f"{path.parent.name}/{path.name}:{ours[-1].lineno}"


def _line(error: BaseException) -> str:
    return str(error).split("\n")[0][:300]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    path = Path(sys.argv[1])
    print(run_model(path.read_bytes(), SeededChoices(f"inputs of {path.stem} {sys.argv[2] if len(sys.argv) > 2 else 0}")))
