"""How a case is run, on LiteRT's interpreter and on oplet's alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .cases import Array, Case, Step

__all__ = ["Answers", "plain_run", "run"]

#: The outputs of each step, by name.
Answers = list[dict[str, Array]]


def run(make: Callable[..., Any], model: bytes, steps: Sequence[Step]) -> Answers:
    """Run the steps in one interpreter, through their signatures, or as the graph where there is none.

    Args:
        make: gives an interpreter, from `model_content`.
    """
    interpreter = make(model_content=model)
    if any(step.signature is None for step in steps):
        interpreter.allocate_tensors()
    answers: Answers = []
    runners: dict[str, Any] = {}
    for step in steps:
        if step.signature is None:
            answers.append(_by_index(interpreter, list(step.inputs.values())))
            continue
        if step.signature not in runners:
            runners[step.signature] = interpreter.get_signature_runner(step.signature)
        found = runners[step.signature](**step.inputs)
        answers.append({name: np.array(value) for name, value in found.items()})
    return answers


def plain_run(make: Callable[..., Any], model: bytes, steps: Sequence[Step]) -> Answers:
    """Run the only signature's steps as the graph: tensors allocated twice, set, read by the signature's names.

    An answer of several signatures is none: LiteRT has one subgraph that is not a signature's.
    """
    interpreter = make(model_content=model)
    interpreter.allocate_tensors()
    interpreter.allocate_tensors()
    [signature] = {step.signature for step in steps}
    if signature is None:
        return [_by_index(interpreter, list(step.inputs.values())) for step in steps]
    runner = interpreter.get_signature_runner(signature)
    places = {name: detail["index"] for name, detail in runner.get_input_details().items()}
    outputs = {name: detail["index"] for name, detail in runner.get_output_details().items()}
    shapes = {detail["index"]: tuple(detail["shape"]) for detail in interpreter.get_input_details()}
    answers: Answers = []
    for step in steps:
        wanted = {places[name]: value for name, value in step.inputs.items()}
        changed = {index: value for index, value in wanted.items() if value.shape != shapes[index]}
        for index, value in changed.items():
            interpreter.resize_tensor_input(index, value.shape)
            shapes[index] = value.shape
        if changed:
            interpreter.allocate_tensors()
        for index, value in wanted.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        answers.append({name: np.array(interpreter.get_tensor(index)) for name, index in outputs.items()})
    return answers


def plain(case: Case) -> bool:
    """Whether a case can also be run as the graph: all its steps have one signature."""
    return len({step.signature for step in case.steps}) == 1


def _by_index(interpreter: Any, values: Sequence[Array]) -> dict[str, Array]:
    details = interpreter.get_input_details()
    changed = [(d, v) for d, v in zip(details, values) if tuple(d["shape"]) != v.shape]
    for detail, value in changed:
        interpreter.resize_tensor_input(detail["index"], value.shape)
    if changed:
        interpreter.allocate_tensors()
    for detail, value in zip(details, values):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return {str(n): np.array(interpreter.get_tensor(d["index"])) for n, d in enumerate(interpreter.get_output_details())}
