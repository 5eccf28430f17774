"""The form in which a made model is kept: the model, what it is fed and what was answered, in a folder of a zip."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Case", "Step", "read", "read_all", "write_all"]

Array = np.ndarray[Any, Any]


@dataclass
class Step:
    """One run of a signature.

    Attributes:
        inputs: the arrays by the names of the signature's inputs, or by "0", "1", … where there is no signature.
        answers: for each of LiteRT's ways ("ref", "opt", "xnn"), and "own" for the framework that the model comes from, the
            outputs by name. A way that refused or died is not there.
        signature: its key; None for models without signatures.
    """

    inputs: dict[str, Array]
    answers: dict[str, dict[str, Array]] = field(default_factory=dict)
    signature: str | None = None


@dataclass
class Case:
    """A model, its runs, and how it came to be.

    Attributes:
        name: unique among all cases.
        source: the maker and what it made.
        model: the bytes of the file.
        steps: the runs, in order, in one interpreter.
        refusals: what each of LiteRT's ways said that did not run it.
    """

    name: str
    source: str
    model: bytes
    steps: list[Step]
    refusals: dict[str, str] = field(default_factory=dict)


class _Arrays:
    """Arrays by short names; those that are equal have one."""

    def __init__(self) -> None:
        self.named: dict[str, Array] = {}
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def keep(self, value: Array) -> str:
        """The name of an array."""
        key = (str(value.dtype), value.shape, value.tobytes())
        if key not in self._known:
            self._known[key] = f"a{len(self.named)}"
            self.named[self._known[key]] = value
        return self._known[key]

    def table(self, values: dict[str, Array]) -> dict[str, str]:
        """The names of several."""
        return {name: self.keep(np.asarray(value)) for name, value in values.items()}


def write_all(path: Path, cases: Sequence[Case]) -> None:
    """Write cases into one zip, each in a folder of its name; the same cases give the same file."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for case in cases:
            arrays = _Arrays()
            steps = [
                {
                    "signature": step.signature,
                    "inputs": arrays.table(step.inputs),
                    "answers": {way: arrays.table(answer) for way, answer in step.answers.items()},
                }
                for step in case.steps
            ]
            meta = {"source": case.source, "refusals": case.refusals, "steps": steps}
            stored = io.BytesIO()
            np.savez(stored, allow_pickle=False, **arrays.named)  # type: ignore[arg-type]
            for name, body in (
                ("model.tflite", case.model),
                ("io.npz", stored.getvalue()),
                ("case.json", json.dumps(meta, indent=1).encode()),
            ):
                entry = zipfile.ZipInfo(f"{case.name}/{name}")  # with a fixed date
                entry.compress_type = zipfile.ZIP_LZMA
                archive.writestr(entry, body)


def read(archive: zipfile.ZipFile, name: str) -> Case:
    """The case of that name."""
    meta = json.loads(archive.read(f"{name}/case.json"))
    with np.load(io.BytesIO(archive.read(f"{name}/io.npz"))) as stored:
        arrays = {key: stored[key] for key in stored.files}
    steps = [
        Step(
            {key: arrays[at] for key, at in step["inputs"].items()},
            {way: {key: arrays[at] for key, at in answer.items()} for way, answer in step["answers"].items()},
            step["signature"],
        )
        for step in meta["steps"]
    ]
    return Case(name, meta["source"], archive.read(f"{name}/model.tflite"), steps, meta["refusals"])


def read_all(path: Path) -> Iterator[Case]:
    """The cases of a zip, in its order."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if entry.endswith("/case.json"):
                yield read(archive, entry.rsplit("/", 1)[0])
