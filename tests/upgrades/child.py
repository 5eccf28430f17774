"""A process that runs models with the packages that it finds: python child.py TUNED MODEL ... prints their answers and what it took from caches."""

from __future__ import annotations

import hashlib
import json
import logging
import sys
from typing import Any

import numpy as np

import oplet

#: Said of a choice that was read from its file.
_REMEMBERED = "remembered in"


def inputs(interpreter: Any) -> None:
    """Set all inputs to values that only hang on their positions, shapes and types."""
    for number, told in enumerate(interpreter.get_input_details()):
        random = np.random.default_rng(number)
        if np.issubdtype(told["dtype"], np.floating):
            value = random.standard_normal(told["shape"]).astype(told["dtype"])
        else:
            value = random.integers(0, 100, told["shape"]).astype(told["dtype"])
        interpreter.set_tensor(told["index"], value)


def answer(interpreter: Any) -> str:
    """The hash of all outputs' bytes, of two runs."""
    digest = hashlib.sha256()
    for _ in range(2):
        inputs(interpreter)
        interpreter.invoke()
        for told in interpreter.get_output_details():
            digest.update(np.ascontiguousarray(interpreter.get_tensor(told["index"])).tobytes())
    return digest.hexdigest()


def opened(path: str, **settings: Any) -> Any:
    interpreter = oplet.Interpreter(path, **settings)
    interpreter.allocate_tensors()
    return interpreter


class Told(logging.Handler):
    """Keeps what is logged of choices."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def main(tuned: str, models: list[str]) -> dict[str, Any]:
    """Run each model, twice opened, so that its plan is stored; and one by the choice of "auto"."""
    answers, restored = {}, 0
    for path in models:
        first = opened(path)  # which has to be there still, lest the next one takes what it leaves in memory
        restored += getattr(first._subgraphs[0], "stored", None) is not None
        answers[path] = answer(first)
        second = opened(path)
        if answer(second) != answers[path]:
            answers[path] += " and another one"
    told = Told()
    logger = logging.getLogger("oplet.tuning")
    logger.addHandler(told)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    answers["auto"] = answer(opened(tuned, experimental_delegates="auto:max_seconds=0.2"))
    return {
        "version": oplet.__version__,
        "answers": answers,
        "restored": restored,
        "remembered": any(_REMEMBERED in said for said in told.said),
        "damaged": any("damaged" in said for said in told.said),
    }


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:])))
