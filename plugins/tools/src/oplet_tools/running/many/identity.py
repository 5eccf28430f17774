"""Identity of a run (model, rows, and options that results depend on), by which an interrupted run is recognized."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oplet.errors import StateError
from oplet.texts import shown
from oplet.toolkit import open_file

__all__ = ["check_same", "file_identity", "model_identity"]

_CHUNK = 1 << 20


def file_identity(path: Path) -> dict[str, Any]:
    """Identify a file by its path, size and the time when it was changed."""
    status = os.stat(path)
    return {"what": f"the file '{path}'", "size": status.st_size, "changed": status.st_mtime_ns}


def model_identity(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Identify a model by the size and hash of its file."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
        size = file.tell()
    return {"what": "the model", "size": size, "sha256": digest.hexdigest()}


def check_same(before: Mapping[str, Any], now: Mapping[str, Any], output: str) -> None:
    """Check that an interrupted run has the same model, rows and options as this one.

    Args:
        before: the interrupted run's identity: the entries "oplet" (version), "model", "inputs" and "options".
        now: the identity of this run.
        output: the results' file, for messages.

    Raises:
        StateError: the identities differ; the message says in what.
    """
    difference = _difference(before, now)
    if difference:
        raise StateError(
            f"'{output}' cannot be continued: {difference}; give what the interrupted run was given, or --no-resume to begin anew."
        )


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    if before.get("oplet") != now["oplet"]:
        return f"it was begun by oplet {shown(str(before.get('oplet')))}, and this is {now['oplet']}"
    if before.get("model") != now["model"]:
        return "the model is another one than before"
    inputs, options = before.get("inputs"), before.get("options")
    if not isinstance(inputs, dict) or list(inputs) != list(now["inputs"]):
        return "other inputs are given than before"
    for key, value in now["inputs"].items():
        if inputs[key] != value:
            rows = inputs[key].get("rows") if isinstance(inputs[key], dict) else None
            more = f" ({rows} rows then, {value['rows']} now)" if "rows" in value and rows != value["rows"] else ""
            return f"{value['what']} was changed since{more}"
    for key, value in now["options"].items():
        was = options.get(key) if isinstance(options, dict) else None
        if was != value:
            return f"{key} was {_told(was)} and is {_told(value)}"
    return ""


def _told(value: Any) -> str:
    return "not given" if value is None or value is False or value == [] else shown(str(value))
