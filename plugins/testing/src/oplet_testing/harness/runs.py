"""Runs of an interpreter in a contract's check: allocate, set the inputs, invoke, copy the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from oplet import Interpreter
from oplet_testing.harness.assertions import check
from oplet_testing.harness.memory_poisoning import POISON_BYTES, poison_memory

__all__ = ["Values", "allocate", "answers", "feed", "run"]

#: One array per input or output of a model.
Values = Sequence[NDArray[Any]]


def allocate(interpreter: Interpreter, values: Values) -> None:
    """Give the inputs the shapes of these values, and allocate the tensors."""
    for detail, value in zip(interpreter.get_input_details(), values):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()


def feed(interpreter: Interpreter, values: Values) -> None:
    """Set the interpreter's inputs to these values, in order.

    Raises:
        AssertionError: the number of values is not that of the inputs.
    """
    details = interpreter.get_input_details()
    check(len(details) == len(values), f"the model has {len(details)} inputs, the contract names {len(values)}")
    for detail, value in zip(details, values):
        interpreter.set_tensor(detail["index"], value)


def run(interpreter: Interpreter, values: Values) -> list[NDArray[Any]]:
    """Resize the inputs where needed, fill memory with poison values, set the inputs, invoke, return copies of the outputs."""
    allocate(interpreter, values)
    poison_memory(interpreter, POISON_BYTES[0])
    feed(interpreter, values)
    interpreter.invoke()
    return answers(interpreter)


def answers(interpreter: Interpreter) -> list[NDArray[Any]]:
    """Return copies of the interpreter's outputs, in the model's order."""
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
