"""Files that have models and other parts, which plugins open."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from oplet.toolkit import open_file
from oplet_tools.describing.inspect import inspect_model

if TYPE_CHECKING:
    from oplet import Model, PluginManager
    from oplet_tools.cli.console import Printer

__all__ = ["FileParts", "open_bundle"]

_IDENTIFIER = b"TFL3"


class FileParts(NamedTuple):
    """The contents of a file that bundles models with other parts, such as those of LiteRT-LM."""

    file: str  #: Its path.
    kind: str  #: The format of the file, in words.
    about: dict[str, Any]  #: Further facts on the file, by name.
    parts: list[tuple[str, str, int]]  #: For each part its name, kind and number of bytes.
    models: dict[str, Model]  #: The models by name.

    def described(self, plugins: PluginManager) -> dict[str, Any]:
        """Return the contents in plain dictionaries and lists, for JSON, with a description of each model (`inspect_model`)."""
        parts = [{"name": name, "kind": kind, "bytes": size} for name, kind, size in self.parts]
        models = {name: inspect_model(model, plugins) for name, model in self.models.items()}
        return {"file": self.file, "kind": self.kind, "about": self.about, "parts": parts, "models": models}

    def print(self, printer: Printer) -> None:
        """Print the kind, parts and facts of the file, without the models."""
        printer.line(self.file, "bold")
        printer.line(f"{self.kind}, with {', '.join(self.models) or 'no model'}")
        printer.table("parts", ["name", "kind", "bytes#"], self.parts)
        if self.about:
            printer.table("about", ["what", "value~"], [(what, str(value)) for what, value in self.about.items()])


def open_bundle(path: str | os.PathLike[str], plugins: PluginManager) -> FileParts | None:
    """Open a file that bundles models with other parts; return None for a plain .tflite model, or if no plugin knows the format.

    Raises:
        OpletError: the file is damaged.
    """
    try:
        with open_file(path) as file:
            head = file.read(8)
    except OSError:
        return None
    found = None if head[4:8] == _IDENTIFIER or len(head) < 8 else plugins.open_bundle(path)
    if found is None:
        return None
    return FileParts(os.fspath(path), found["kind"], dict(found["about"]), list(found["parts"]), dict(found["models"]))
