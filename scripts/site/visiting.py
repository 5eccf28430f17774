"""What the site's page *Try a model in the browser* runs in Pyodide: the graph of a model that a visitor opens, and its answer.

Functions return JSON, and say in one sentence what is wrong with a model. `scripts/site/tryout.py` brings this file to the page.
"""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.texts import counted, plain
from oplet_tools.describing.exploring.explore import explore_model
from oplet_tools.describing.exploring.page import explore_page
from oplet_tools.describing.printable import one_line_of, plain_values
from oplet_tools.tuning.random_inputs import random_input

__all__ = ["answer_of", "graph_of"]

#: Elements of a tensor that are shown.
_SHOWN = 8


def graph_of(path: str, name: str) -> str:
    """Return the page of a model's graph as JSON: `page`, `facts`, and `error`, "" for none.

    Args:
        path: the file.
        name: what the visitor calls it.
    """
    try:
        explored = explore_model(path)
    except Exception as error:
        return json.dumps({"page": "", "facts": "", "error": _sentence(error, name, path)})
    explored = replace(explored, file=name)
    nodes = sum(len(subgraph.nodes) for subgraph in explored.subgraphs)
    facts = f"{plain(name)}: {counted(nodes, 'node')}, {Path(path).stat().st_size:,} bytes."
    return json.dumps({"page": explore_page(explored), "facts": facts, "error": explored.error.replace(path, name)})


def answer_of(path: str, seed: int) -> str:
    """Run a model on random inputs; return JSON: `seconds`, `tensors`, a row for each input and output, and `error`, "" for none."""
    random = np.random.default_rng(int(seed))
    rows = []
    try:
        with closing(Interpreter(path)) as interpreter:
            interpreter.allocate_tensors()
            for details in interpreter.get_input_details():
                interpreter.set_tensor(details["index"], random_input(details, random))
                rows.append(_row("input", details, interpreter.get_tensor(details["index"])))
            start = time.perf_counter()
            interpreter.invoke()
            seconds = time.perf_counter() - start
            rows += [_row("output", each, interpreter.get_tensor(each["index"])) for each in interpreter.get_output_details()]
    except Exception as error:
        return json.dumps({"seconds": 0.0, "tensors": [], "error": _sentence(error, "the model", path)})
    return json.dumps({"seconds": seconds, "tensors": rows, "error": ""})


def _row(kind: str, details: dict[str, Any], value: Any) -> list[str]:
    value = np.asarray(value)
    numbers = value.size > 0 and value.dtype.kind in "biuf"
    least, largest = (f"{value.min():.6g}", f"{value.max():.6g}") if numbers else ("", "")
    first = one_line_of(plain_values(value.ravel()[:_SHOWN])) + (" ..." if value.size > _SHOWN else "")
    return [kind, plain(details["name"]), np.dtype(details["dtype"]).name, str([*map(int, value.shape)]), least, largest, first]


def _sentence(error: Exception, name: str, path: str) -> str:
    """Return an error as one sentence, with the visitor's name of the file."""
    if isinstance(error, MemoryError):
        return f"{name} needs more memory than a page of a browser has; run it with oplet in Python."
    said = " ".join(str(error).replace(path, name).split())
    return said if isinstance(error, OpletError) and said else f"{name} cannot be run here: {type(error).__name__}: {said}"
