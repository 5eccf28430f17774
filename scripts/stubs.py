"""Generator of the stubs with the public names of `oplet`, `oplet.toolkit` and `oplet_testing`, from the tables by which these load names lazily.

usage: python -m scripts.stubs    writes a stub beside each file that has such a table, `__init__.pyi` beside `__init__.py`
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from scripts.requirements import ROOT

__all__ = ["PACKAGES", "homes", "stub"]

PACKAGES = (
    ROOT / "core/src/oplet/__init__.py",
    ROOT / "plugins/testing/src/oplet_testing/__init__.py",
    ROOT / "core/src/oplet/toolkit.py",
)

#: Names of oplet that other packages bring; where they are not installed, a type checker takes them for anything.
COMPANIONS = {
    "Predictor": "oplet_predictor",
    "AsyncSignatureRunner": "oplet_predictor.asynchronous.async_runner",
    "NO_SYNC_OBJECT": "oplet_predictor.asynchronous.attributes",
    "BufferAttribute": "oplet_predictor.asynchronous.attributes",
    "Reconciliation": "oplet_predictor.asynchronous.attributes",
    "SynchronizationAttribute": "oplet_predictor.asynchronous.attributes",
    "reconcile_attributes": "oplet_predictor.asynchronous.attributes",
    "uncovered_attributes": "oplet_predictor.asynchronous.attributes",
    "AsyncKernel": "oplet_predictor.asynchronous.kernel",
    "BackendBuffer": "oplet_predictor.asynchronous.kernel",
    "ExecutionTask": "oplet_predictor.asynchronous.task",
    "IoType": "oplet_predictor.asynchronous.task",
    "Synchronization": "oplet_predictor.asynchronous.task",
    "TaskStatus": "oplet_predictor.asynchronous.task",
    "NUMPY_BUFFER": "oplet_predictor.asynchronous.threaded_kernel",
    "THREADING_EVENT": "oplet_predictor.asynchronous.threaded_kernel",
    "ThreadedAsyncKernel": "oplet_predictor.asynchronous.threaded_kernel",
    "python_process": "oplet_tools.processes",
}


def homes(source: Path) -> dict[str, str]:
    """The defining module of each public name, from the file's table `_HOMES`."""
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOMES":
            table: dict[str, str] = ast.literal_eval(node.value)
            return table
    raise ValueError(f"{source} has no table _HOMES.")


def stub(source: Path) -> str:
    """The text of a stub, sorted as ruff sorts imports."""
    modules = defaultdict(list)
    for name, home in homes(source).items():
        modules[home].append(name)
    lines = [
        f"from {home} import {name} as {name}" for home, names in sorted(modules.items()) for name in sorted(names, key=_rank)
    ]
    if source == PACKAGES[0]:
        lines += [f"from {home} import {name} as {name}" for name, home in COMPANIONS.items()]
    if "__version__ = " in source.read_text("utf-8"):
        lines += ["", "__version__: str"]
    return "\n".join([f"# Made by `python -m scripts.stubs` of the table in {source.name}.", *lines, ""])


def _rank(name: str) -> tuple[int, str]:
    """Sort key: constants before classes before functions."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


if __name__ == "__main__":
    for package in PACKAGES:
        package.with_suffix(".pyi").write_text(stub(package), encoding="utf-8")
