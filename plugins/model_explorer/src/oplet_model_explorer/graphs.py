"""Builds Model Explorer graphs of a model by the command `oplet explore`, in a process of its own.

Model Explorer's server lives on whatever a delegate or a damaged model does to that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from oplet.errors import OpletError
from oplet_tools.processes import python_process

__all__ = ["DELEGATES_VARIABLE", "explored_graphs"]

#: The environment variable that names delegates, with ";" between them, as `oplet explore --delegate` takes them.
DELEGATES_VARIABLE = "OPLET_EXPLORER_DELEGATES"


def explored_graphs(
    model: str | os.PathLike[str], delegates: Sequence[str] | None = None, *, times: bool = False
) -> list[dict[str, Any]]:
    """Return a model's graphs, one per subgraph, as dictionaries of Model Explorer's class `Graph`; all texts are printable.

    Args:
        model: the .tflite file.
        delegates: the delegates, as `oplet explore --delegate` takes them; None for those of the environment variable
            `OPLET_EXPLORER_DELEGATES`.
        times: also run the model on random values, and note the time of each node.

    Raises:
        OpletError: the model is invalid, or a delegate cannot be created.
    """
    if delegates is None:
        delegates = [name for part in os.environ.get(DELEGATES_VARIABLE, "").split(";") if (name := part.strip())]
    with tempfile.TemporaryDirectory(prefix="oplet-explorer-") as folder:
        found = Path(folder, "graphs.json")
        command = [
            "-m",
            "oplet",
            "explore",
            os.path.abspath(model),
            "--format",
            "model-explorer",
            "-o",
            str(found),
        ]
        command += [part for name in delegates for part in ("--delegate", name)] + (["--times"] if times else [])
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with python_process(command, **streams, text=True, errors="replace") as process:
            _, said = process.communicate()
        if not found.exists():
            raise OpletError(_reason(said, process.returncode, os.path.basename(model)))
        content = json.loads(found.read_text("ascii"))
    graphs: list[dict[str, Any]] = content["graphs"]
    return graphs


def _reason(said: str, status: int, name: str) -> str:
    """Return why the command made no graph: its error message."""
    lines = [line for line in said.splitlines() if line.strip()]
    start = next((place for place, line in enumerate(lines) if line.startswith("oplet: ")), None)
    if start is not None:
        return " ".join(line.strip() for line in lines[start:]).removeprefix("oplet: ")
    told = f": {lines[-1].rstrip('.')}" if lines else ""
    return f"oplet explore ended with status {status} and no graph of '{name}'{told}."
