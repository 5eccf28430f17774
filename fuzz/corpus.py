"""The seed models: those that `seeds` makes, and those of folders and archives."""

from __future__ import annotations

import importlib
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Seeds", "everywhere", "load_seeds"]

#: Larger models say nothing that smaller ones do not, and take longer.
_LARGEST = 60 << 10

#: One of so many of the models that `tests/everywhere` makes.
_ONE_OF = 8

Seeds = list[tuple[str, bytes]]


def load_seeds(places: Sequence[str | Path] = (), largest: int = _LARGEST) -> Seeds:
    """Names and bytes of the seed models, in the order of their names.

    Args:
        places: take the .tflite files in these folders or archives, also those inside .zip files, after our own.
        largest: leave out files that are larger.
    """
    from fuzz.seeds import make_seeds

    found = sorted(make_seeds().items())
    for place in places:
        found += sorted((name, data) for name, data in _models(Path(place)) if len(data) <= largest)
    return found


def _models(place: Path) -> Seeds:
    models = [(path.stem, path.read_bytes()) for path in place.rglob("*.tflite")]
    for path in [place] if place.suffix == ".zip" else sorted(place.rglob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".tflite"):
                    name = info.filename.removesuffix("/model.tflite").removesuffix(".tflite")
                    models.append((f"{path.stem}/{name}", archive.read(info)))
    return models


def everywhere() -> Seeds:
    """Some of the models that the tests make of every operator with every type, rank and emptiness; the same each time."""
    recipes = importlib.import_module("tests.everywhere.recipes")
    made = [single for op in recipes.RECIPES for single in recipes.singles(op)]
    return [(single.name, single.model) for single in made if zlib.crc32(single.name.encode()) % _ONE_OF == 0]
