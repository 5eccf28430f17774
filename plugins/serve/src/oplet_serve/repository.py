"""Finds the models in folders and files, with their names, versions and signatures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from oplet import Interpreter
from oplet.errors import ModelError

__all__ = ["FoundModel", "find_models"]

#: The most signatures of a model that are served: each has its own interpreters, threads and metrics.
_MOST_SIGNATURES = 64


@dataclass(frozen=True)
class FoundModel:
    """A model file to serve: name, version, path, signature."""

    name: str  #: Its name in requests.
    path: Path  #: The file.
    version: str | None = None  #: Its version, None if it has none.
    signature: str | None = None  #: The key of the signature that this name serves; None for the default one.


def find_models(paths: Sequence[Path], signature: str | None = None) -> list[FoundModel]:
    """Find the models in files and folders.

    `x.tflite` is the model x, alone or in a folder. In a folder, `x/1/any.tflite` and `x/2/any.tflite` are versions of x. A model
    with several signatures is also there once for each, as `x@signature`; with more than 64 it is refused.

    Args:
        paths: .tflite files, and folders.
        signature: the signature of all of them; then no `x@signature` is added.

    Raises:
        SignatureError: a model has no such signature.
        ModelError: no model is found, a file cannot be opened, a name has letters that cannot be printed, or two models have the same
            name and version.
    """
    found: list[FoundModel] = []
    for path in paths:
        if path.is_dir():
            models = list(_in_folder(path))
            if not models:
                raise ModelError(f"The folder '{path}' has no .tflite file, and no folder NAME/VERSION with one.")
            found += models
        elif path.is_file():
            found.append(FoundModel(path.stem, path))
        else:
            raise ModelError(f"There is no file or folder '{path}'.")
    served = [each for model in found for each in _by_signature(model, signature)]
    seen: dict[tuple[str, str | None], Path] = {}
    for model in served:
        if not model.name.isprintable():
            raise ModelError(f"{str(model.path)!a} would be the model {model.name!a:.200}, which cannot be printed; rename it.")
        other = seen.setdefault((model.name, model.version), model.path)
        if other != model.path:
            raise ModelError(f"Both '{other}' and '{model.path}' would be the model '{model.name}'; rename one.")
        unversioned = {each.version is None for each in served if each.name == model.name}
        if len(unversioned) > 1:
            raise ModelError(f"The model '{model.name}' is there with versions and without; keep one of the two.")
    return list(dict.fromkeys(served))


def _in_folder(folder: Path) -> Iterator[FoundModel]:
    for entry in sorted(folder.iterdir()):
        if entry.is_file() and entry.suffix == ".tflite":
            yield FoundModel(entry.stem, entry)
        elif entry.is_dir() and not entry.name.startswith("."):
            for version in sorted(entry.iterdir(), key=_number):
                if version.is_dir() and version.name.isascii() and version.name.isdigit():
                    models = sorted(version.glob("*.tflite"))
                    if len(models) != 1:
                        raise ModelError(f"The folder '{version}' of a version has {len(models)} .tflite files; it takes one.")
                    yield FoundModel(entry.name, models[0], version.name)


def _number(path: Path) -> float:
    return int(path.name) if path.name.isascii() and path.name.isdigit() and len(path.name) < 16 else math.inf


def _by_signature(model: FoundModel, signature: str | None) -> Iterator[FoundModel]:
    interpreter = Interpreter(str(model.path))
    if signature is not None:
        interpreter.get_signature_runner(signature)  # refuses a key that the model has not
    yield model if signature is None else FoundModel(model.name, model.path, model.version, signature)
    keys = list(interpreter.get_signature_list()) if signature is None else []
    if len(keys) > _MOST_SIGNATURES:
        raise ModelError(
            f"'{model.path}' has {len(keys)} signatures, of which {_MOST_SIGNATURES} can be served; take one with --signature."
        )
    for key in keys if len(keys) > 1 else ():
        yield FoundModel(f"{model.name}@{key}", model.path, model.version, key)
