"""External buffers: constants in files of their own, beside the model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import LimitError, ModelError
from oplet.model.files.atomic_write import write_atomically
from oplet.model.files.external_paths import check_name
from oplet.model.source import ModelSource
from oplet.schema import tables

__all__ = ["ExternalFiles", "write_file"]

#: Alignment of buffers in bytes, with which vector instructions can read any type from a mapped file.
_ALIGNMENT = 64


class ExternalFiles:
    """The external buffers of a model that is being built, and the contents of their files."""

    def __init__(self, root: tables.Model) -> None:
        self._root = root
        self._contents: dict[str, bytearray] = {}
        self._groups: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        self._highest = 0

    def keep(self, model: ModelSource) -> None:
        """Add the external files of a model that was read from a file, so that saving writes them again."""
        names = [group.name or "" for group in self._root.external_buffer_groups or []]
        self._groups = {name: index for index, name in enumerate(names)}
        for buffer in self._root.external_buffers or []:
            raw = model.external_piece(buffer)
            try:
                content = self._contents.setdefault(names[buffer.group], bytearray())
                content.extend(bytes(max(buffer.offset + buffer.length - len(content), 0)))
                content[buffer.offset : buffer.offset + buffer.length] = raw.tobytes()
            except MemoryError as error:
                raise LimitError(
                    f"There is not enough memory for external buffer {buffer.id} of {model.name}: {buffer.length} bytes at {buffer.offset}."
                ) from error
            self._sizes.setdefault(buffer.id, buffer.length)
            self._highest = max(self._highest, buffer.id)

    def add(self, group: str, data: bytes | NDArray[Any], packing: str) -> int:
        """Append a buffer to the external file named `group`; return the buffer's id."""
        check_name(group, "The model", writing=True)
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        groups = self._root.external_buffer_groups = self._root.external_buffer_groups or []
        buffers = self._root.external_buffers = self._root.external_buffers or []
        if group not in self._groups:
            self._groups[group] = len(groups)
            groups.append(tables.ExternalBufferGroup(name=group))
        content = self._contents.setdefault(group, bytearray())
        content.extend(bytes(-len(content) % _ALIGNMENT))
        # Ids begin at 1, as 0 stands for no external buffer.
        id = self._highest = self._highest + 1
        buffers.append(
            tables.ExternalBuffer(id=id, group=self._groups[group], offset=len(content), length=len(raw), packing=packing or None)
        )
        content.extend(raw)
        self._sizes[id] = len(raw)
        return id

    def size(self, id: int, what: str) -> int:
        """Return the number of bytes of the buffer with this id; `what` is the tensor that uses it, for the error."""
        if id not in self._sizes:
            raise ModelError(f"{what} refers to the external buffer {id}, which was not added.")
        return self._sizes[id]

    @property
    def contents(self) -> dict[str, bytearray]:
        """The contents of the external files, by name, which `add` may still extend."""
        return self._contents

    def files(self) -> dict[str, bytes]:
        """Return copies of the contents of the files, by name."""
        return {name: bytes(content) for name, content in self._contents.items()}


def write_file(path: str, content: bytes | bytearray | memoryview) -> None:
    """Replace a file atomically; mappings of the old file keep it.

    Raises:
        ModelError: the file cannot be written.
    """
    try:
        write_atomically(path, content)
    except OSError as error:
        raise ModelError(f"Could not write '{path}': {error.strerror or error}.") from error
