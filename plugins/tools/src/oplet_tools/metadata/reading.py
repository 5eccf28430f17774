"""Reads everything that a model's file says of the model beside its graph.

said = read_metadata("model.tflite")
said.tables.name, said.inputs()[0].process_units, said.files, said.text("labels.txt"), said.ultralytics.names
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from oplet import Model
from oplet.errors import ModelError
from oplet.schema.table import Table
from oplet.texts import shown
from oplet_tools.metadata.attached_files import AttachedFile, attached_file, attached_files
from oplet_tools.metadata.json_form import to_dict
from oplet_tools.metadata.tables import AssociatedFile, ModelMetadata, SubGraphMetadata, TensorMetadata, model_metadata
from oplet_tools.metadata.ultralytics import Ultralytics, ultralytics_of

__all__ = ["Metadata", "associated_files", "read_metadata"]


@dataclass(frozen=True)
class Metadata:
    """The metadata in a model's file.

    Attributes:
        model: the open model.
        tables: its TFLITE_METADATA; None if it has none. Tables may be changed, and written with `write_metadata`.
        files: the files that are attached (in a zip archive at the end of the model's file).
    """

    model: Model
    tables: ModelMetadata | None
    files: tuple[AttachedFile, ...]

    @cached_property
    def ultralytics(self) -> Ultralytics | None:
        """The metadata that ultralytics attached; None if there are none.

        Raises:
            ModelError: the metadata are damaged.
        """
        return ultralytics_of(self.model)

    def subgraph(self, index: int = 0) -> SubGraphMetadata:
        """Return the metadata of a subgraph; empty ones if there are none."""
        graphs = (self.tables.subgraph_metadata or ()) if self.tables is not None else []
        return graphs[index] if index < len(graphs) else SubGraphMetadata()

    def inputs(self, subgraph: int = 0) -> list[TensorMetadata]:
        """Return the metadata of a subgraph's inputs, in the model's order; an empty list if there are none."""
        return list(self.subgraph(subgraph).input_tensor_metadata or ())

    def outputs(self, subgraph: int = 0) -> list[TensorMetadata]:
        """Return the metadata of a subgraph's outputs, in the model's order; an empty list if there are none."""
        return list(self.subgraph(subgraph).output_tensor_metadata or ())

    def content(self, name: str) -> bytes:
        """Return the bytes of an attached file.

        Raises:
            ModelError: there is no such file, or it cannot be read.
        """
        found = attached_file(self.model, name)
        if found is None:
            there = ", ".join(f"'{shown(each.name)}'" for each in self.files) or "none"
            raise ModelError(f"{self.model.name} has no attached file '{shown(name)}'; it has {there}.")
        return found

    def text(self, name: str) -> str:
        """Return an attached file as text, such as labels or a vocabulary, one entry a line.

        Raises:
            ModelError: there is no such file, it cannot be read, or it is not UTF-8.
        """
        try:
            return self.content(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ModelError(
                f"The file '{shown(name)}' attached to {self.model.name} is not text in UTF-8; read its bytes with `content`."
            ) from error

    def as_dict(self) -> dict[str, Any]:
        """Return all metadata in plain dictionaries and lists, ready for JSON; `tflite_metadata` has the form that flatc writes.

        Raises:
            ModelError: ultralytics' metadata are damaged.
        """
        return {
            "tflite_metadata": None if self.tables is None else to_dict(self.tables),
            "ultralytics": None if self.ultralytics is None else dict(self.ultralytics.content),
            "files": [file._asdict() for file in self.files],
        }


def read_metadata(model: str | os.PathLike[str] | Model) -> Metadata:
    """Read the metadata of a model and the list of the files that are attached to it.

    Args:
        model: the .tflite file, or an open model.

    Raises:
        ModelError: the file cannot be read, or the metadata or the archive of files is damaged.
    """
    opened = model if isinstance(model, Model) else Model.open(model)
    return Metadata(opened, model_metadata(opened), tuple(attached_files(opened)))


def associated_files(table: Table) -> Iterator[AssociatedFile]:
    """Yield all files that metadata name, in whatever table."""
    for field in table.fields:
        value = getattr(table, field.name)
        for each in value if field.kind == "tables" and value is not None else [value] if isinstance(value, Table) else []:
            if isinstance(each, AssociatedFile):
                yield each
            else:
                yield from associated_files(each)
