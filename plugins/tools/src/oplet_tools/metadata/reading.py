"""Reads everything that a model's file says of the model beside its graph.

said = read_metadata("model.tflite")
said.tables.name, said.inputs()[0].process_units, said.files, said.text("labels.txt"), said.ultralytics.names

Tables of the metadata schema as dictionaries and back, in the form of JSON that flatc and TFLite's MetadataDisplayer write.

Enumerations are names, vectors lists, absent fields are left out, and of a union the field NAME_type has the name of its class.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from oplet import Model
from oplet.errors import ModelError
from oplet.schema.table import Field, Table
from oplet.texts import shown
from oplet_tools.metadata.attached_files import AttachedFile, attached_file, attached_files
from oplet_tools.metadata.tables import AssociatedFile, ModelMetadata, SubGraphMetadata, TensorMetadata, model_metadata
from oplet_tools.metadata.ultralytics import Ultralytics, ultralytics_of

__all__ = ["Metadata", "associated_files", "read_metadata"]


@dataclass(frozen=True)
class Metadata:
    """The metadata in a model's file."""

    model: Model  #: The open model.
    #: Its TFLITE_METADATA; None if it has none. Tables may be changed, and written with `write_metadata`.
    tables: ModelMetadata | None
    files: tuple[AttachedFile, ...]  #: The files that are attached (in a zip archive at the end of the model's file).

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


T = TypeVar("T", bound=Table)


def to_dict(table: Table) -> dict[str, Any]:
    """Convert a table to a dictionary for JSON, without fields that are not set."""
    told: dict[str, Any] = {}
    for field in table.fields:
        value = getattr(table, field.name)
        if value is None or (field.kind == "scalar" and value == field.default):
            continue
        if field.kind == "union":
            told[f"{field.name}_type"] = type(value).__name__
        told[field.name] = _plain(value)
    return told


def from_dict(cls: type[T], values: Mapping[str, Any], where: str = "") -> T:
    """Convert a dictionary, as `to_dict` returns it, to a table.

    Args:
        cls: the table's class.
        values: the values by the names of the fields.
        where: the table's name in error messages; "" for the name of its class.

    Raises:
        ModelError: a field does not exist or has a value of another kind.
    """
    where = where or cls.__name__
    if not isinstance(values, Mapping):
        raise ModelError(f"{where} of the metadata is {shown(repr(values))}; give an object with the fields of {cls.__name__}.")
    fields = {field.name: field for field in cls.fields}
    types = {f"{field.name}_type" for field in cls.fields if field.kind == "union"}
    if unknown := values.keys() - fields.keys() - types:
        known = ", ".join([*fields, *sorted(types)]) or "none"
        raise ModelError(f"{where} of the metadata has no field '{shown(str(min(map(str, unknown))))}'; its fields are {known}.")
    made = {}
    for name, value in values.items():
        if name in fields and value is not None:
            made[name] = _value(fields[name], value, f"{where}.{name}", values.get(f"{name}_type"))
    return cls(**made)


def _plain(value: Any) -> Any:
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, Table):
        return to_dict(value)
    if isinstance(value, np.ndarray):  # the shortest text that leads back to the same float32
        return [float(str(number)) for number in value] if value.dtype.kind == "f" else value.tolist()
    if isinstance(value, float | np.floating):
        return float(str(np.float32(value)))
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _value(field: Field, value: Any, where: str, member: Any) -> Any:
    if field.kind == "scalar" and field.enum is not None:
        return _member(field.enum, value, where)
    if field.kind == "table":
        return from_dict(field.table or Table, value, where)
    if field.kind == "union":
        classes = {each.__name__: each for each in (field.members or {}).values()}
        if member not in classes:
            raise ModelError(f"{where}_type of the metadata is {shown(repr(member))}; give one of {', '.join(classes)}.")
        return from_dict(classes[member], value, where)
    wanted: Any = {"string": str, "scalar": int | float}.get(field.kind, list)
    if not isinstance(value, wanted) or isinstance(value, bool):
        what = {"string": "a text", "scalar": "a number"}.get(field.kind, "a list")
        raise ModelError(f"{where} of the metadata is {shown(repr(value))}; give {what}.")
    if field.kind == "tables":
        return [from_dict(field.table or Table, item, f"{where}[{place}]") for place, item in enumerate(value)]
    element: Any = str if field.kind == "strings" else int | float
    if isinstance(value, list) and not all(isinstance(item, element) and not isinstance(item, bool) for item in value):
        raise ModelError(
            f"{where} of the metadata is {shown(repr(value))}; give a list of {'texts' if element is str else 'numbers'}."
        )
    return value


def _member(enum: type[IntEnum], value: Any, where: str) -> IntEnum:
    names = {member.name: member for member in enum} | {int(member): member for member in enum}
    if isinstance(value, bool) or not isinstance(value, str | int) or value not in names:
        raise ModelError(f"{where} of the metadata is {shown(repr(value))}; give one of {', '.join(enum.__members__)}.")
    return names[value]
