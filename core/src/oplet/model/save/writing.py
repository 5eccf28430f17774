"""Writer of model files: the FlatBuffer, data after it, and external files.

Layout of the file, as LiteRT's converter writes it: the FlatBuffer; constants outside of it, large custom options and compiled code of
accelerators, each aligned to 16 bytes and found by its offset from the start of the file; at the end trailing data of other tools.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from oplet.errors import ModelError
from oplet.model.dispatch import DISPATCH_OP, bytecode, with_bytecode_at
from oplet.model.files.atomic_write import atomic_write
from oplet.model.files.external import write_file
from oplet.model.files.external_paths import check_name, missing_files
from oplet.model.trailing_data import is_archive, relocated, trailing_bytes
from oplet.schema import tables
from oplet.schema.decode import extent
from oplet.schema.encode import PADDING, encode_pieces
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.model.source import Bytes, ModelSource

__all__ = ["Constants", "Unreferenced", "pieces", "save", "unreferenced_bytes"]

Constants = Literal["inside", "outside"]
Unreferenced = Literal["keep", "drop"]

#: The largest FlatBuffer in bytes that every reader accepts, as many use signed offsets.
LIMIT = 2**31 - 2**16

#: Size in bytes from which custom options are stored outside of the FlatBuffer if constants are.
_LARGE_OPTIONS = 2**20

_ALIGNMENT = 16

#: The metadata entry that tells readers of the FlatBuffer alone that it is not the whole model.
_LOCATION = "buffer_location"

Piece = bytes | memoryview


def pieces(model: ModelSource, constants: Constants | None = None, unreferenced: Unreferenced = "keep") -> list[Piece]:
    """Encode the model's file in pieces, whose concatenation is the file; constants are not copied.

    Args:
        model: the model.
        constants: "inside" the FlatBuffer or "outside", after it; None to leave each where it is, unless the FlatBuffer would be too
            large.
        unreferenced: whether to "keep" bytes at the end of the file that no table refers to, with a UserWarning unless they are the
            zip archive of TFLite's metadata tools, or to "drop" them.

    Raises:
        ModelError: the model cannot be written without a loss of data, or not with constants "inside".
    """
    if unreferenced not in ("keep", "drop"):
        raise ModelError(f"Bytes that nothing refers to are kept ('keep') or left out ('drop'), not {unreferenced!r}.")
    if constants not in (None, "inside", "outside"):
        raise ModelError(f"Constants go 'inside' or 'outside' the FlatBuffer, or where they must (None), not {constants!r}.")
    model.check_files()
    if model.unknown:
        raise ModelError(
            f"{model.name} holds what this version of oplet cannot keep when it writes the model ({'; '.join(model.unknown)}); "
            "upgrade oplet to change or write it."
        )
    if constants is None and sum(b.data.nbytes for b in model.root.buffers or [] if b.data is not None) > LIMIT:
        constants = "outside"
    written = _Layout(model, constants).encode()
    if constants is None and _size(written.tables) > LIMIT:
        written = _Layout(model, "outside").encode()
    if _size(written.tables) > LIMIT:
        raise ModelError(
            f"The FlatBuffer of {model.name} would take {_size(written.tables)} bytes, past the {LIMIT} that readers take; "
            + ("write its constants 'outside'." if constants == "inside" else "its tables alone are too large.")
        )
    result = [*written.tables, *written.appended]
    rest, start = (b"", 0) if unreferenced == "drop" else _attached(model)
    if not rest:
        return result
    if is_archive(rest):
        return [*result, relocated(rest, start, _size(result), model.name)]
    if hidden := _compiled_elsewhere(model):
        raise ModelError(
            f"{model.name} has {len(rest)} bytes behind its tables and constants, at byte {start}, and {hidden} tells in a way that oplet "
            f'cannot read where its compiled code lies; compile the model again, or leave the bytes out with unreferenced="drop".'
        )
    warnings.warn(
        f"{model.name} has {len(rest)} bytes behind its tables and constants, at byte {start}, that nothing refers to; they are written "
        'as they are. unreferenced="drop" leaves them out.',
        stacklevel=3,
    )
    return [*result, rest]


def unreferenced_bytes(model: ModelSource) -> int:
    """Count the bytes at the end of the model's file that no table refers to and that are not a zip archive."""
    rest, _ = _attached(model)
    return 0 if is_archive(rest) else len(rest)


def _attached(model: ModelSource) -> tuple[bytes, int]:
    return trailing_bytes(model.data, _used(model)) if len(model.data) else (b"", 0)


def _compiled_elsewhere(model: ModelSource) -> str:
    """Describe a node whose compiled accelerator code cannot be located in the file; "" if there is none."""
    for number, subgraph in enumerate(model.root.subgraphs or []):
        for index, operator in enumerate(subgraph.operators or []):
            if _is_dispatch(model, operator) and bytecode(model.custom_options(operator)) is None:
                return f"node {index} ({DISPATCH_OP}) of subgraph {number}"
    return ""


def save(
    model: ModelSource,
    path: str | os.PathLike[str],
    constants: Constants | None = None,
    files: Mapping[str, bytes | bytearray | memoryview] | None = None,
    unreferenced: Unreferenced = "keep",
) -> None:
    """Write a model, and the files of its external buffers that do not exist yet.

    Names, links and existing files are checked before anything is written. An existing external file with other contents is never
    replaced. Each file is written atomically.

    Args:
        model: the model.
        path: the model's file.
        constants: "inside" the FlatBuffer or "outside", after it in the file; None to leave each where it is.
        files: the contents of the external files, by name; None for those of the model that was read.
        unreferenced: whether to "keep" or "drop" bytes at the end of the file that no table refers to.

    Raises:
        ModelError: data would be lost, an external file's name is refused or taken, or a file cannot be written.
    """
    content = pieces(model, constants, unreferenced)
    groups = [group.name or "" for group in model.root.external_buffer_groups or []]
    for name in groups:
        check_name(name, model.name, writing=model.path is not None)
    if files is None:
        files = {} if model.path is None else {name: _beside(model, name, path) for name in dict.fromkeys(groups)}
    try:
        missing = missing_files(files, os.fsdecode(path))
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"Could not write '{shown(os.fsdecode(path))}': {error}.") from error
    for target, raw in missing.items():
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        except OSError as error:
            raise ModelError(f"Could not make the folder of '{shown(target)}': {error.strerror or error}.") from error
        write_file(target, raw)
    # The constants may be views of the existing file, so it is replaced and not overwritten.
    try:
        with atomic_write(path) as file:
            for piece in content:
                file.write(piece)
    except OSError as error:
        raise ModelError(f"Could not write '{shown(os.fsdecode(path))}': {error.strerror or error}.") from error


def _beside(model: ModelSource, name: str, path: str | os.PathLike[str]) -> memoryview:
    """Return the contents of the model's external file `name`, to be copied beside the model's new file `path`."""
    try:
        return model.external_file(name).view
    except ModelError as error:
        raise ModelError(
            f"Could not copy '{shown(name)}', which the model refers to, for '{shown(str(path))}': {error}"
        ) from error


def _used(model: ModelSource) -> int:
    """Return the end of the part of the model's file that its tables, as read, occupy or refer to."""
    root, end = extent(tables.Model, model.data)
    original = type(model)(root, model.data)
    for buffer in root.buffers or []:
        if buffer.data is None and buffer.offset > 1:
            end = max(end, buffer.offset + buffer.size)
    for subgraph in root.subgraphs or []:
        for operator in subgraph.operators or []:
            if operator.custom_options is None and operator.large_custom_options_offset > 1:
                end = max(end, operator.large_custom_options_offset + operator.large_custom_options_size)
            end = max(end, sum(_bytecode(original, operator) or ()))
    return end


def _bytecode(model: ModelSource, operator: tables.Operator) -> tuple[int, int] | None:
    """Return the position and size of a node's compiled code in the model's file; None if it has none."""
    if not _is_dispatch(model, operator):
        return None
    found = bytecode(model.custom_options(operator))
    return found if found is not None and sum(found) <= len(model.data) else None


def _is_dispatch(model: ModelSource, operator: tables.Operator) -> bool:
    codes = model.root.operator_codes or []
    return operator.opcode_index < len(codes) and codes[operator.opcode_index].custom_code == DISPATCH_OP


def _size(parts: list[Piece]) -> int:
    return sum(len(part) for part in parts)


class _Written(NamedTuple):
    tables: list[Piece]
    appended: list[Piece]


class _Layout:
    """Layout of a file: which constants and custom options go after the FlatBuffer, and where."""

    def __init__(self, model: ModelSource, constants: Constants | None) -> None:
        self.model = model
        self.root = tables.Model(**model.root.__dict__)
        self.keep = constants is None  # whether constants stay where they are
        self.outside = constants == "outside"
        self.appended: list[Bytes] = []
        self.fixups: list[list[Callable[[int], None]]] = []  # for each of them, functions that store its position in tables
        self.shared: dict[tuple[int, int], int] = {}
        self._place_buffers()
        constants_moved = len(self.appended)
        self._place_options()
        self._mark(bool(constants_moved))

    def encode(self) -> _Written:
        """Encode the FlatBuffer, twice if data follows it, as positions of data depend on its size (and not the size on them)."""
        content: list[Piece] = list(encode_pieces(self.root))
        if not self.appended:
            return _Written(content, [])
        position = _size(content)
        parts: list[Piece] = []
        for data, fixups in zip(self.appended, self.fixups):
            gap = -position % _ALIGNMENT
            parts += [bytes(gap), np.ascontiguousarray(data).data]
            for fixup in fixups:
                fixup(position + gap)
            position += gap + data.size
        return _Written(list(encode_pieces(self.root)), [*parts, bytes(-position % _ALIGNMENT), PADDING])

    def _put(self, data: Bytes, fixup: Callable[[int], None], source: tuple[int, int] | None) -> None:
        """Append data after the FlatBuffer; data at the same place of the source file is stored once.

        Args:
            data: the data.
            fixup: a function that is called with the data's position.
            source: position and size in the source file; None if it was not there.
        """
        index = self.shared.get(source) if source is not None else None
        if index is None:
            index = len(self.appended)
            self.appended.append(data)
            self.fixups.append([])
            if source is not None:
                self.shared[source] = index
        self.fixups[index].append(fixup)

    def _place_buffers(self) -> None:
        # Readers expect metadata inside the FlatBuffer.
        metadata = {entry.buffer for entry in self.root.metadata or []}
        metadata |= set() if self.root.metadata_buffer is None else set(self.root.metadata_buffer.tolist())
        buffers = list(self.root.buffers or [])
        for index, buffer in enumerate(buffers):
            came_outside = buffer.data is None and buffer.offset > 1
            goes_outside = (self.keep and came_outside) or (self.outside and index not in metadata)
            if not came_outside and not goes_outside and buffer.offset <= 1:
                continue
            data = self.model.buffer(index)
            if data is None:
                buffers[index] = tables.Buffer() if came_outside else buffer
            elif goes_outside:
                buffers[index] = outside = tables.Buffer(offset=2, size=data.size)
                self._put(data, partial(setattr, outside, "offset"), (buffer.offset, buffer.size) if came_outside else None)
            else:
                buffers[index] = tables.Buffer(data=data)
        if self.root.buffers is not None:
            self.root.buffers = buffers

    def _place_options(self) -> None:
        subgraphs = list(self.root.subgraphs or [])
        for number, subgraph in enumerate(subgraphs):
            operators = [self._placed(operator) for operator in subgraph.operators or []]
            if any(a is not b for a, b in zip(operators, subgraph.operators or [])):
                subgraphs[number] = tables.SubGraph(**subgraph.__dict__)
                subgraphs[number].operators = operators
        if self.root.subgraphs is not None:
            self.root.subgraphs = subgraphs

    def _placed(self, operator: tables.Operator) -> tables.Operator:
        """Return the operator, or a copy whose custom options and compiled code are moved to their new places."""
        inside, place = operator.custom_options, operator.large_custom_options_offset
        if inside is None and place <= 1:
            return operator
        came_outside = inside is None
        large = inside is not None and inside.size >= _LARGE_OPTIONS
        goes_outside = (self.keep and came_outside) or (self.outside and (came_outside or large))
        code = _bytecode(self.model, operator)
        if not came_outside and not goes_outside and code is None and place <= 1:
            return operator
        data = self.model.custom_options(operator)
        result = tables.Operator(**{k: v for k, v in operator.__dict__.items() if k not in _OPTIONS})
        if code is not None:  # inside the FlatBuffer, so that a fixup can set the position
            result.custom_options = np.frombuffer(data, np.uint8)
            start, size = code

            def fixup(position: int) -> None:
                result.custom_options = np.frombuffer(with_bytecode_at(data, position), np.uint8)

            self._put(np.frombuffer(self.model.data[start : start + size], np.uint8), fixup, code)
        elif goes_outside and data:
            result.large_custom_options_offset, result.large_custom_options_size = 2, len(data)
            source = (place, operator.large_custom_options_size) if came_outside else None
            self._put(np.frombuffer(data, np.uint8), partial(setattr, result, "large_custom_options_offset"), source)
        elif data:
            result.custom_options = np.frombuffer(data, np.uint8)
        return result

    def _mark(self, constants_moved: bool) -> None:
        """Add or remove the metadata entry that says that constants lie outside of the FlatBuffer, as LiteRT's converter does."""
        entries = list(self.root.metadata or [])
        marked = any(entry.name == _LOCATION for entry in entries)
        if constants_moved and not marked:
            buffers = [*(self.root.buffers or []), tables.Buffer(data=np.frombuffer(b"outside flatbuffers", np.uint8))]
            self.root.buffers = buffers
            self.root.metadata = [*entries, tables.Metadata(name=_LOCATION, buffer=len(buffers) - 1)]
        elif marked and not constants_moved and not self.keep:
            self.root.metadata = [entry for entry in entries if entry.name != _LOCATION] or None


_OPTIONS = {"custom_options", "large_custom_options_offset", "large_custom_options_size"}
