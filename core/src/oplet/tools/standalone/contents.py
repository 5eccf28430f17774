"""What a program of `oplet build --with-model` holds: its models, where they lie, and what it needs of its environment."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from oplet.errors import ModelError
from oplet.model.files.mapping import map_file

__all__ = ["AppContents", "AppModel"]

_LOCAL_HEADER = b"PK\x03\x04"
_LOCAL_HEADER_SIZE = 30
_ALIGNMENT = 16


@dataclass(frozen=True)
class AppModel:
    """A model of the program.

    Attributes:
        name: what the user calls it.
        file: where it lies from the program's root, with "/".
        size: its bytes.
        header: where its entry's header begins in the archive, behind the interpreter line; -1 where there is no archive.
    """

    name: str
    file: str
    size: int
    header: int = -1


@dataclass(frozen=True)
class AppContents:
    """The program's own description.

    Attributes:
        name: the program.
        version: its version.
        models: its models; none where it takes files.
        requires: what to install for it: the module that is tried, and pip's words for its package.
        root: the archive, or the folder in which the models' files lie.
        loader: what reads files of the archive; None where the root is a folder.
    """

    name: str
    version: str = ""
    models: tuple[AppModel, ...] = ()
    requires: tuple[tuple[str, str], ...] = ()
    root: str = ""
    loader: Any = field(default=None, compare=False)

    def missing(self) -> list[str]:
        """pip's words for the packages that are not installed."""
        if not self.requires:
            return []
        import importlib.util

        return [package for module, package in self.requires if importlib.util.find_spec(module) is None]

    def model(self, name: str) -> AppModel | None:
        """The model of this name, None if there is none."""
        return next((model for model in self.models if model.name == name), None)

    def read(self, model: AppModel) -> memoryview:
        """A model's bytes: mapped where they lie in the archive or folder, or read once.

        Raises:
            ModelError: the program has lost them.
        """
        path = model.file.replace("/", os.sep)
        if self.loader is None:
            return map_file(os.path.join(self.root, path)).view
        view = self._mapped(model)
        if view is not None:
            return view
        try:
            return memoryview(self.loader.get_data(path))  # from the archive's root, as sys.path may name it otherwise
        except OSError as error:
            raise ModelError(f"The model '{model.name}' is not in '{self.root}' any more; build the program again.") from error

    def _mapped(self, model: AppModel) -> memoryview | None:
        """The model's part of the mapped archive; None where somebody has written the archive anew."""
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
