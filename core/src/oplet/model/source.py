"""Protocol of models for the writer: the tables, and access to the bytes that they refer to."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from oplet.model.reading import MappedFile
from oplet.schema import tables

__all__ = ["Bytes", "ModelSource"]

Bytes = NDArray[np.uint8]


class ModelSource(Protocol):
    """The members of `Model` that the writer uses, described there; a protocol, to avoid a circular import."""

    name: str
    path: str | None
    data: memoryview
    unknown: tuple[str, ...]

    def __init__(self, root: tables.Model, data: memoryview | None = None) -> None: ...

    @property
    def root(self) -> tables.Model: ...

    def check_files(self) -> None: ...

    def buffer(self, index: int) -> Bytes | None: ...

    def custom_options(self, operator: tables.Operator) -> bytes: ...

    def external_file(self, name: str) -> MappedFile: ...

    def external_piece(self, buffer: tables.ExternalBuffer) -> Bytes: ...
