"""The program that answers recorded cases: this machine's Python runs it, and an emulated one, which has numpy and oplet alone.

Reads from standard input a JSON object: `grader`, the path of the grader, and `cases`, pairs of an archive's path and a case's name. Prints a
JSON object a line for each, when it is answered: what the grader says, how long it took, and what the outputs were, in short; of models of one
operator also what becomes of numbers that processors turn into integers in different ways.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import time
from typing import Any

import numpy as np

from oplet import Interpreter
from oplet.errors import OpletError

#: What C++ leaves undefined where it becomes an integer, and what lies on this side of that.
SPECIAL = np.array(
    [
        np.nan,
        np.inf,
        -np.inf,
        3e38,
        -3e38,
        2.0**63,
        -(2.0**63),
        2.0**32,
        2.0**31,
        -(2.0**31),
        2.0**31 - 128,
        65536.5,
        -32769,
        300.5,
        -1.5,
        1e-45,
    ]
    + [-0.0, 0.5, 127.5, -128.5],
    np.float32,
)
#: numpy's letters of types whose bits may differ: floats, complex numbers, and what ml_dtypes adds.
_FLOATS = "fcV"
#: So many times a model gets the next ones of them.
ROUNDS = 5


def short(answer: Any) -> str:
    """The type, shape and bytes of an output in a few letters; those of floats are marked, since a processor may round them otherwise."""
    array = np.asarray(answer)
    values = repr(array.tolist()).encode() if array.dtype.kind in "OSU" else array.tobytes()
    digest = hashlib.sha256(values).hexdigest()[:16]
    return f"{'float' if array.dtype.kind in _FLOATS else 'other'} {array.dtype}{list(array.shape)} {digest}"


def _kind(detail: dict[str, Any]) -> str:
    return np.dtype(detail["dtype"]).kind


def special(model: bytes) -> list[str]:
    """What a model of one operator makes of special numbers: its outputs that are no floats, or which error it raises."""
    told = []
    with np.errstate(all="ignore"):
        for start in range(ROUNDS):
            try:
                interpreter = Interpreter(model_content=model)
                interpreter.allocate_tensors()
                details, outputs = interpreter.get_input_details(), interpreter.get_output_details()
                if not any(_kind(detail) == "f" for detail in details) or all(_kind(detail) in _FLOATS for detail in outputs):
                    return []
                for number, detail in enumerate(details):
                    if _kind(detail) not in _FLOATS + "biu":
                        return []
                    size = int(np.prod(detail["shape"]))
                    values = np.roll(SPECIAL, -start * max(1, size) - number) if _kind(detail) == "f" else np.zeros(1)
                    interpreter.set_tensor(detail["index"], np.resize(values, detail["shape"]).astype(detail["dtype"]))
                interpreter.invoke()
                answers = [interpreter.get_tensor(detail["index"]) for detail in outputs]
                told += [said for said in map(short, answers) if said.startswith("other")]
            except OpletError as error:
                told.append(type(error).__name__)
    return told


def main() -> None:
    """Answer all cases."""
    asked = json.load(sys.stdin)
    spec = importlib.util.spec_from_file_location("grader", asked["grader"])
    if spec is None or spec.loader is None:
        sys.exit("There is no grader.")
    grader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(grader)
    grade = grader.grade
    outputs: dict[int, Any] = {}

    def grade_and_keep(got: Any, want: Any, loose: bool) -> Any:
        outputs[id(got)] = got  # kept alive, so that no other gets its id
        return grade(got, want, loose)

    grader.grade = grade_and_keep
    for path, name in asked["cases"]:
        start = time.perf_counter()
        outputs.clear()
        try:
            verdict, detail, _ = grader.run_case("oplet:Interpreter", path, name)
        except Exception as error:
            verdict, detail = "error", f"{type(error).__name__}: {error}"
        told = {"verdict": verdict, "detail": detail, "answers": [short(answer) for answer in outputs.values()]}
        meta, model, _ = grader.load_case(path, name)
        told["special"] = special(model) if len(meta["ops"]) == 1 else []
        print(json.dumps({**told, "seconds": round(time.perf_counter() - start, 3)}), flush=True)


if __name__ == "__main__":
    main()
