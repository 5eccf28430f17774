"""The corpus of seed models: those of `fuzz.seeds`, and those of folders and archives."""

from __future__ import annotations

import importlib
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Seeds", "everywhere", "load_seeds"]

#: Largest seed model in bytes: larger ones find nothing more, and take longer.
_LARGEST = 60 << 10

#: Every `_ONE_OF`-th of the models of `tests/everywhere` is taken.
_ONE_OF = 8

Seeds = list[tuple[str, bytes]]


def load_seeds(places: Sequence[str | Path] = (), largest: int = _LARGEST) -> Seeds:
    """Names and bytes of the seed models, sorted by name.

    Args:
        places: folders or archives of further .tflite files, also inside .zip files; they come after our own.
        largest: largest file that is taken, in bytes.
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
    """A fixed sample of the models of tests/everywhere: every operator with every type, rank and empty shapes."""
    recipes = importlib.import_module("tests.everywhere.recipes")
    made = [single for op in recipes.RECIPES for single in recipes.singles(op)]
    return [(single.name, single.model) for single in made if zlib.crc32(single.name.encode()) % _ONE_OF == 0]
