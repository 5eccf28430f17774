"""LiteRT's three ways, each in a forked child of a process of its own, as LiteRT dies of some models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.differential.worker import forked, receive, send, serve

from .cases import Case, Step
from .running import Answers, run

__all__ = ["WAYS", "Oracle", "record"]

#: The short names of LiteRT's ways, and its own names of the resolvers.
WAYS = {"ref": "BUILTIN_REF", "opt": "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "xnn": "AUTO"}


class Oracle:
    """A process that answers as LiteRT does; it starts with the first question."""

    def __init__(self, seconds: float = 120) -> None:
        self.seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, model: bytes, steps: list[Step], way: str) -> Answers | str:
        """The answers of one of LiteRT's ways, or why there are none."""
        if self._process is None:
            command = [sys.executable, "-m", "tests.converters.oracle"]
            root = Path(__file__).parents[2]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root)
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the process that asks LiteRT has no pipes")
        asked = [(step.inputs, step.signature) for step in steps]
        send(stdin, (model, asked, way, self.seconds))
        answer: Answers | str = receive(stdout)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait(600)
        self._process = None


def record(case: Case, oracle: Oracle) -> Case:
    """Write into a case what LiteRT's ways answer to it, or why they do not."""
    for way in WAYS:
        answer = oracle.ask(case.model, case.steps, way)
        if isinstance(answer, str):
            case.refusals[way] = answer
        else:
            for step, outputs in zip(case.steps, answer):
                step.answers[way] = outputs
    return case


def _answer(request: Any) -> Answers | str:
    model, asked, way, seconds = request
    steps = [Step(inputs, {}, signature) for inputs, signature in asked]

    def work() -> Answers | str:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        resolver = OpResolverType[WAYS[way]]
        try:
            return run(lambda **arguments: Interpreter(experimental_op_resolver_type=resolver, **arguments), model, steps)
        except Exception as error:
            return " ".join(f"{type(error).__name__}: {error}".split())[:300]

    kind, result = forked(work, seconds)
    return result if kind == "ran" else f"{kind}: {result}"


if __name__ == "__main__":
    serve(_answer)
