"""The seed models: those that `seeds` makes, and those of a folder."""

from __future__ import annotations

import zipfile
from pathlib import Path

__all__ = ["Seeds", "load_seeds"]

#: Larger models say nothing that smaller ones do not, and take longer.
_LARGEST = 24 << 10

Seeds = list[tuple[str, bytes]]


def load_seeds(folder: Path | None = None, largest: int = _LARGEST) -> Seeds:
    """Names and bytes of the seed models, in the order of their names.

    Args:
        folder: take the .tflite files in it, also those inside .zip files, after our own.
        largest: leave out files that are larger.
    """
    from fuzz.seeds import make_seeds

    found = sorted(make_seeds().items())
    if folder is not None:
        found += sorted((name, data) for name, data in _models(folder) if len(data) <= largest)
    return found


def _models(folder: Path) -> list[tuple[str, bytes]]:
    models = [(path.stem, path.read_bytes()) for path in folder.rglob("*.tflite")]
    for path in sorted(folder.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".tflite"):
                    name = info.filename.removesuffix("/model.tflite").removesuffix(".tflite")
                    models.append((f"{path.stem}/{name}", archive.read(info)))
    return models
