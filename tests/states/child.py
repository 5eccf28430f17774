"""A process that runs recorded cases in the state that it finds: python child.py THREADS < JSON of [archive, case]; prints their verdicts."""

from __future__ import annotations

import json
import sys
from functools import partial

import oplet
from oplet.errors import OpletError


def main() -> None:
    """Print, as JSON, a verdict for each case: that of the grader, or "error" and what it says."""
    from tests.recorded_cases import grader  # in the parent's path

    # The grader asks for a class by its name.
    oplet.OfStates = partial(oplet.Interpreter, num_threads=int(sys.argv[1]))  # type: ignore[attr-defined]
    found = []
    for path, name in json.load(sys.stdin):
        try:
            verdict, detail, _ = grader().run_case("oplet:OfStates", path, name)
        except OpletError as error:
            verdict, detail = "error", str(error)
        found.append([f"{path} {name}", verdict, detail])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
