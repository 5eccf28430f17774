"""Runs models in LiteRT's three ways and says what becomes of each; test_late_values.py starts it.

A process of its own, and a child of it for each run, since LiteRT dies of some models. Reads pickled models from its standard input
and writes the answers to the file that it is given: for each model and way "allocated", "ran" and "resized", a list of arrays each, or
how it was refused, and None for what there is not.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tests.litert.late_cases import LateModel, answers, resized

WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")


def in_child(make: Callable[[], Iterator[Any]]) -> list[Any]:
    """What an iterator yields in a forked process, until it ends or the process dies."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "wb") as file:
            for answer in make():
                pickle.dump(answer, file)
                file.flush()
        os._exit(0)
    os.close(writer)
    found: list[Any] = []
    with os.fdopen(reader, "rb") as file:
        while True:
            try:
                found.append(pickle.load(file))
            except (EOFError, pickle.UnpicklingError):
                break
    status = os.waitpid(child, 0)[1]
    return [*found, f"it died: {status}"] if status else found


def examined(way: str, case: LateModel) -> dict[str, Any]:
    """What LiteRT makes of a model."""
    interpreter = partial(Interpreter, experimental_op_resolver_type=OpResolverType[way])
    found: dict[str, Any] = dict.fromkeys(("allocated", "ran", "resized"))
    found.update(zip(("allocated", "ran"), in_child(lambda: answers(interpreter, case))))
    if case.grown is not None:
        found["resized"] = in_child(lambda: iter([resized(interpreter, case)]))[0]
    return found


def main() -> None:
    """Answer."""
    cases: list[LateModel] = pickle.load(sys.stdin.buffer)
    found = [[examined(way, case) for way in WAYS] for case in cases]
    with open(sys.argv[1], "wb") as file:
        pickle.dump(found, file)


if __name__ == "__main__":
    main()
