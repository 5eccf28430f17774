"""Runs models in LiteRT's three ways and says what became of each step; test_late_values.py starts it.

A process of its own, and a child of it for each step, since LiteRT dies of some models. Reads pickled models from its standard input
and writes the answers to the file that it is given: for each model a list with one dict for each way, by step.
"""

from __future__ import annotations

import os
import pickle
import sys
from functools import partial
from typing import Any

from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.litert.late_cases import LateModel, one_answer

WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


def in_child(way: str, case: LateModel, step: str) -> Any:
    """What LiteRT makes of a step, in a forked process; a string where it refuses or dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            made: Any = one_answer(partial(Interpreter, experimental_op_resolver_type=OpResolverType[way]), case, step)
        except Exception as error:
            made = f"{type(error).__name__}: {error}"
        with os.fdopen(writer, "wb") as file:
            pickle.dump(made, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        content = file.read()
    status = os.waitpid(child, 0)[1]
    return pickle.loads(content) if not status and content else f"it died: {status}"


def main() -> None:
    """Answer."""
    cases: list[LateModel] = pickle.load(sys.stdin.buffer)
    found = []
    for case in cases:
        steps = ("allocated", "ran", "resized") if case.grown is not None else ("allocated", "ran")
        found.append([{step: in_child(way, case, step) for step in steps} for way in WAYS])
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)


if __name__ == "__main__":
    main()
