"""Contents of a program built by `oplet build --with-core`: its models, their positions in the archive, and its requirements."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from oplet.errors import ModelError
from oplet.toolkit import map_file

__all__ = ["AppContents", "AppModel"]

_LOCAL_HEADER = b"PK\x03\x04"
_LOCAL_HEADER_SIZE = 30
_ALIGNMENT = 16


@dataclass(frozen=True)
class AppModel:
    """A model of the program."""

    name: str  #: The model's name for users.
    file: str  #: Its path from the program's root, with "/".
    size: int  #: Its size in bytes.
    #: Offset of its local zip header in the archive, counted after the interpreter line (#!); -1 if there is no archive.
    header: int = -1


@dataclass(frozen=True)
class AppContents:
    """Description of a built program: its models and requirements."""

    name: str  #: The program's name.
    version: str = ""  #: The program's version.
    models: tuple[AppModel, ...] = ()  #: Its models; empty if it takes model files.
    #: Pairs of a module that must be importable and the pip requirement of its package.
    requires: tuple[tuple[str, str], ...] = ()
    root: str = ""  #: The archive, or the folder of the models' files.
    #: The loader that reads files of the archive (a zipimporter); None if the root is a folder.
    loader: Any = field(default=None, compare=False)

    def missing(self) -> list[str]:
        """Return the pip requirements of packages that are not installed."""
        if not self.requires:
            return []
        import importlib.util

        return [package for module, package in self.requires if importlib.util.find_spec(module) is None]

    def model(self, name: str) -> AppModel | None:
        """Return the model of this name; None if there is none."""
        return next((model for model in self.models if model.name == name), None)

    def read(self, model: AppModel) -> memoryview:
        """Return a model's bytes: mapped from the archive or folder, or read if they cannot be mapped.

        Raises:
            ModelError: the archive does not have the model any more.
        """
        path = model.file.replace("/", os.sep)
        if self.loader is None:
            return map_file(os.path.join(self.root, path)).view
        view = self._mapped(model)
        if view is not None:
            return view
        try:
            return memoryview(
                self.loader.get_data(path)
            )  # relative to the archive's root: sys.path may have another name for the archive
        except OSError as error:
            raise ModelError(f"The model '{model.name}' is not in '{self.root}' any more; build the program again.") from error

    def _mapped(self, model: AppModel) -> memoryview | None:
        """Map the model's part of the archive into memory; None if the model has another place, as the archive was rewritten."""
        archive = map_file(self.root).view
        start = 0
        if bytes(archive[:2]) == b"#!":
            start = bytes(archive[:4096]).find(b"\n") + 1
        header = bytes(archive[start + model.header :][:_LOCAL_HEADER_SIZE])
        stored = header[8:10] == b"\0\0"
        if model.header < 0 or not header.startswith(_LOCAL_HEADER) or len(header) < _LOCAL_HEADER_SIZE or not stored:
            return None
        name_size, extra_size = (int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        name_at = start + model.header + _LOCAL_HEADER_SIZE
        begin = name_at + name_size + extra_size
        same = bytes(archive[name_at : name_at + name_size]) == model.file.encode()
        if not same or begin % _ALIGNMENT or begin + model.size > len(archive):
            return None
        return archive[begin : begin + model.size]
