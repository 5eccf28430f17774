"""Models: files that are memory-mapped and decoded, with constants as views of the mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from mmap import mmap
from typing import TYPE_CHECKING, Literal

import numpy as np

from oplet.errors import LimitError, ModelError
from oplet.model.reading import SCHEMA_VERSION, MappedFile, decoded, ensure_not_truncated, map_file
from oplet.ops.shared_values import SharedValues, values_of_bytes
from oplet.schema import tables
from oplet.schema.columns import LazyTables
from oplet.schema.enums import BuiltinOperator
from oplet.texts import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

__all__ = ["SCHEMA_VERSION", "Model"]


class Model:
    """A decoded model with its constants.

    Attributes:
        lazy_root: the model's tables, whose tensors and operators may be `oplet.schema.columns.LazyTables` in place of lists. Reading a
            few fields of them is faster than creating all tables, as `root` does.
        name: its name in messages: the file's path, or "<bytes>".
        path: the file's path; None if the model was read from bytes.
        data: the file's bytes; empty if the model was made from tables.
        unknown: descriptions of the first few fields and union members that this schema does not have, with their positions. Such a
            model can be read and run, but not written.
        is_verified: whether the tables are verified and shared with other models of the same bytes; `root` makes tables of its own then.
        shared_values: constants and packed weights that all interpreters of these bytes share; None if the bytes may change, or
            the model was made from tables.

    Examples:
        >>> from oplet import Model
        >>> model = Model.open("examples/digits/digits_int8.tflite")  # doctest: +SKIP
        >>> [code.builtin_code.name for code in model.root.operator_codes]  # doctest: +SKIP
    """

    def __init__(
        self,
        root: tables.Model,
        data: memoryview | None = None,
        path: str | None = None,
        unknown: Sequence[str] = (),
        *,
        made_of: Model | None = None,
    ) -> None:
        """
        Args:
            root: the model's tables.
            data: the file's bytes, of which constants are views.
            path: the file's path.
            unknown: descriptions of fields and union members of the file that this schema does not have.
            made_of: a model whose files contain constants of this one; `check_files` checks them, too.
        """
        self.lazy_root = root
        self.path = path
        self.name = path if path is not None else "<bytes>"
        self.data = memoryview(b"") if data is None else data
        self.unknown = tuple(unknown)
        self._mapped: MappedFile | None = None
        self._pages = _pages_behind(self.data)
        self._use_mmap = True
        self._made_of = made_of
        self.shared_values: SharedValues | None = None
        self.is_verified = False
        self._external: dict[str, MappedFile] = {}
        self._external_by_id: dict[int, tables.ExternalBuffer] = {}
        self._external_count = -1

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, use_mmap: bool = True, verified: bool = False) -> Model:
        """Map a file and decode its tables; constants are read from the mapping when they are used.

        Args:
            path: the file.
            use_mmap: False to read the file, and those of its external buffers, into memory, so that later changes of the files have
                no effect.
            verified: whether the tables may be those that another model of the same, unchanged file has verified; see `is_verified`.

        Raises:
            ModelError: the file cannot be opened or is not a .tflite model.
            LimitError: there is not enough memory to read the file.
        """
        mapped = map_file(path, use_mmap=use_mmap)
        model = cls._of(mapped.view, f"'{os.fsdecode(path)}'", os.fsdecode(path), mapped.shared_values, verified)
        model._mapped, model._use_mmap = mapped, use_mmap
        return model

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        *,
        verified: bool = False,
        external: Mapping[str, bytes | memoryview] | None = None,
    ) -> Model:
        """Decode a model that is already in memory; constants are views of `data`.

        Args:
            data: the model's bytes.
            verified: whether the tables may be those that another model of the same `bytes` object has verified.
            external: the contents of files of external buffers, by name, where these are in memory as well.

        Raises:
            ModelError: the bytes are not a .tflite model.
        """
        view = memoryview(data).cast("B")
        shared = None
        if type(view.obj) is bytes and len(view) == len(view.obj):  # others may change, or are a part of which there are several
            shared = values_of_bytes(view.obj)
        model = cls._of(view, "the model's bytes", None, shared, verified)
        model._external = {name: MappedFile(name, content) for name, content in (external or {}).items()}
        return model

    @classmethod
    def _of(cls, view: memoryview, where: str, path: str | None, shared: SharedValues | None, verified: bool) -> Model:
        """Create the model of some bytes, named `where` in messages, with tables verified before if `verified` allows it."""
        known = shared.tables if verified and shared is not None else None
        unknown: list[str] = []
        root, unknown = known if known is not None else (decoded(view, where, unknown), unknown)
        model = cls(root, view, path, unknown)
        model.shared_values, model.is_verified = shared, known is not None
        return model

    def set_verified(self) -> None:
        """Mark the tables as verified, and share them with other models of the same bytes.

        Tables that refer to external files of constants are verified by each model, as these files may change.
        """
        shared = self.shared_values
        if shared is not None and not self.lazy_root.external_buffers:
            shared.tables = self.lazy_root, self.unknown
            self.is_verified = True

    @property
    def root(self) -> tables.Model:
        """The model's tables, with lists of tensors and operators."""
        if self.is_verified:  # they are others', too
            self.check_files()
            self.lazy_root, self.is_verified = decoded(self.data, f"'{self.name}'", []), False
        root = self.lazy_root
        if self._mapped is not None and any(isinstance(subgraph.tensors, LazyTables) for subgraph in root.subgraphs or []):
            self.check_files()
        for subgraph in root.subgraphs or []:
            if isinstance(subgraph.tensors, LazyTables):
                subgraph.tensors = subgraph.tensors.tables()
            if isinstance(subgraph.operators, LazyTables):
                subgraph.operators = subgraph.operators.tables()
        return root

    @root.setter
    def root(self, root: tables.Model) -> None:
        self.lazy_root = root

    @property
    def is_mapped(self) -> bool:
        """Whether its bytes are those of a memory-mapped file, whose pages the operating system can drop and load again."""
        return self._mapped is not None and self._use_mmap

    def check_files(self) -> None:
        """Check that no mapped file was truncated; see `MappedFile.check`.

        Raises:
            ModelError: a file was truncated.
        """
        if self._mapped is not None:
            self._mapped.check()
        elif self._pages is not None:
            ensure_not_truncated(self._pages, self.name)
        if self._made_of is not None:
            self._made_of.check_files()
        if self._external:
            for mapped in self._external.values():
                mapped.check()

    def release_pages(self) -> None:
        """Release the pages of the file that were read so far; see `MappedFile.release_pages`."""
        if self._mapped is not None:
            self._mapped.release_pages()

    def to_bytes(
        self, constants: Literal["inside", "outside"] | None = None, unreferenced: Literal["keep", "drop"] = "keep"
    ) -> bytes:
        """Encode the model as the bytes of a file; equal tables give equal bytes.

        Files of external buffers are not included; `save` copies them.

        Args:
            constants: "inside" the FlatBuffer or "outside", after it in the file; None to leave each constant where it is, unless the
                FlatBuffer would be larger than 2 GB.
            unreferenced: whether to "keep" bytes at the end of the file that no table refers to, with a UserWarning, or to "drop" them.
                The zip archive of TFLite's metadata tools is kept without a warning.

        Raises:
            ModelError: encoding would lose data (see `unknown`), or a value does not fit into its field.
            LimitError: there is not enough memory.
        """
        from oplet.model.save.writing import pieces  # imported late: running models does not need it

        try:
            return b"".join(pieces(self, constants, unreferenced))
        except MemoryError as error:
            raise LimitError(
                f"There is not enough memory for the bytes of {self.name}; write it to a file with `save`."
            ) from error

    def save(
        self,
        path: str | os.PathLike[str],
        constants: Literal["inside", "outside"] | None = None,
        unreferenced: Literal["keep", "drop"] = "keep",
    ) -> None:
        """Write the model to a file atomically; files of external buffers are copied to its folder.

        Args:
            path: the file.
            constants: "inside" the FlatBuffer or "outside", after it in the file; None to leave each where it is.
            unreferenced: whether to "keep" or "drop" bytes at the end of the file that no table refers to.

        Raises:
            ModelError: encoding would lose data, a value does not fit into its field, or the file cannot be written.
        """
        from oplet.model.save.writing import save

        save(self, path, constants, unreferenced=unreferenced)

    def unreferenced_bytes(self) -> int:
        """Return the number of bytes at the end of the file that no table refers to and that are not a zip archive."""
        from oplet.model.save.writing import unreferenced_bytes

        return unreferenced_bytes(self)

    def buffer(self, index: int) -> Bytes | None:
        """Return the bytes of a buffer, as a read-only view of dtype uint8; None if it is empty.

        Raises:
            ModelError: there is no such buffer, it lies outside the file, or the file was truncated.
        """
        self.check_files()
        return self._stored(index)

    def _stored(self, index: int) -> Bytes | None:
        buffers = self.lazy_root.buffers or []
        if not 0 <= index < len(buffers):
            raise ModelError(f"{self.name} has no buffer {index} (only {len(buffers)} buffers).")
        buffer = buffers[index]
        data = buffer.data
        if data is None and buffer.offset > 1:  # 0 and 1 mean "inside the FlatBuffer"; the converter writes 1 as a placeholder
            if buffer.offset + buffer.size > len(self.data):
                raise ModelError(
                    f"Constant buffer {index} specified an out of range offset. It takes {buffer.size} bytes at {buffer.offset}, "
                    f"{self.name} has {len(self.data)}; the file is truncated."
                )
            return _view(self.data, buffer.offset, buffer.size) if buffer.size else None
        return data if data is not None and len(data) else None

    def external_buffer(self, id: int) -> Bytes:
        """Return the bytes of an external buffer, as a read-only view of its group's file in the model's folder.

        Raises:
            ModelError: the buffer or group does not exist, or its file does not contain it.
        """
        declared = self.lazy_root.external_buffers or ()
        if self._external_count != len(declared):
            self._external_count = len(declared)
            self._external_by_id = {b.id: b for b in reversed(declared)}  # of several with the same id the first is used
        found = self._external_by_id.get(id)
        if found is None:
            raise ModelError(f"{self.name} refers to the external buffer {id}, which it does not declare.")
        return self.external_piece(found)

    def external_piece(self, buffer: tables.ExternalBuffer) -> Bytes:
        """Return the bytes of an external buffer, given its table; unlike an id, this is unique.

        Raises:
            ModelError: its group does not exist, or the group's file does not contain it.
        """
        groups = self.lazy_root.external_buffer_groups or []
        if buffer.group >= len(groups):
            raise ModelError(
                f"{self.name} refers to the external buffer {buffer.id}, whose group {buffer.group} it does not declare."
            )
        mapped = self.external_file(groups[buffer.group].name or "")
        if buffer.offset + buffer.length > len(mapped.view):
            raise ModelError(
                f"External buffer {buffer.id} takes {buffer.length} bytes at {buffer.offset} of '{shown(mapped.path)}', "
                f"which has {len(mapped.view)}; the file is truncated or belongs to another model."
            )
        return _view(mapped.view, buffer.offset, buffer.length)

    def external_file(self, name: str) -> MappedFile:
        """Open a file of external buffers in the model's folder; each is opened once.

        Raises:
            ModelError: the name is refused, or the file cannot be read, is not a regular file, or was truncated since it was opened.
        """
        mapped = self._external.get(name)
        if mapped is None:
            from oplet.model.files.external_paths import open_external  # imported late, as below: few models have such files

            self.external_path(name)
            mapped = open_external(self._folder(), name, self.name, use_mmap=self._use_mmap)
            self._external[name] = mapped
        mapped.check()
        return mapped

    def external_path(self, name: str) -> str:
        """Return the path of an external file, which must lie in the model's folder.

        Raises:
            ModelError: the name or a symbolic link leads out of the folder, or the name has a special meaning to an operating system.
        """
        if self.path is None:
            raise ModelError(f"The model keeps constants in the file '{shown(name)}'; open it by path, not as bytes.")
        from oplet.model.files.external_paths import locate

        return locate(self._folder(), name, self.name)

    def _folder(self) -> str:
        return os.path.dirname(os.path.realpath(self.path or ""))

    def tensor_bytes(self, tensor: tables.Tensor) -> Bytes | None:
        """Return the constant data of a tensor, as a read-only view of dtype uint8; None if it has none.

        Raises:
            ModelError: the tensor's buffer does not exist or lies outside its file, or the file was truncated.
        """
        self.check_files()
        return self.constant(tensor.buffer, tensor.external_buffer)

    def constant(self, buffer: int, external_buffer: int) -> Bytes | None:
        """Return constant data as `tensor_bytes` does, for a tensor's two fields of these names; the caller calls `check_files`,
        once for many tensors, as this does not.
        """
        if external_buffer:
            return self.external_buffer(external_buffer)
        return self._stored(buffer) if buffer else None

    def custom_options(self, operator: tables.Operator) -> bytes:
        """Return the custom options of a node, stored inside or after the FlatBuffer; empty if it has none.

        Raises:
            ModelError: the options lie outside the file.
        """
        offset, size = operator.large_custom_options_offset, operator.large_custom_options_size
        if operator.custom_options is None and offset > 1:
            if offset + size > len(self.data):
                raise ModelError(
                    f"Custom Option Offset for opcode_index {operator.opcode_index} is out of bound: {size} bytes at {offset}, "
                    f"{self.name} has {len(self.data)}."
                )
            self.check_files()
            return bytes(self.data[offset : offset + size])
        return operator.custom_options.tobytes() if operator.custom_options is not None else b""

    def op_of(self, operator: tables.Operator) -> tuple[BuiltinOperator, str, int]:
        """Return the built-in operator of a node (CUSTOM for custom ops), the op's name and its version."""
        return self.op_at(operator.opcode_index)

    def op_at(self, opcode_index: int) -> tuple[BuiltinOperator, str, int]:
        """Return the built-in operator (CUSTOM for custom ops), the op's name and its version, by operator code index."""
        code = (self.lazy_root.operator_codes or [])[opcode_index]
        op = BuiltinOperator(tables.operator_code(code))
        return op, (code.custom_code or "") if op is BuiltinOperator.CUSTOM else op.name, code.version

    def metadata(self, name: str) -> Bytes | None:
        """Return the bytes of a metadata entry; None if there is no entry of that name."""
        for entry in self.lazy_root.metadata or []:
            if entry.name == name:
                return self.buffer(entry.buffer)
        return None


def _pages_behind(view: memoryview) -> mmap | None:
    """Return the memory mapping of which a view is a part; None if there is none."""
    owner: object = view.obj
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner if isinstance(owner, mmap) else None


def _view(data: memoryview, offset: int, size: int) -> Bytes:
    array = np.frombuffer(data, np.uint8, size, offset)
    array.flags.writeable = False
    return array
