"""Reader of .npy and .npz files that checks an array's header before it reads the elements."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from oplet.errors import OpletError, TensorError, text_of
from oplet.toolkit import open_file

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

__all__ = ["Header", "HeaderCheck", "npy_rows", "npz_names", "npz_rows", "read_npy", "read_npz"]

#: Longest header that is read, in bytes; numpy's have 118, except for shapes of dozens of dimensions.
_LONGEST_HEADER = 4096
_MOST_DIMENSIONS = 32
#: Largest table of contents of an .npz that is read, in bytes: about 20,000 arrays.
_LARGEST_TABLE = 1 << 20
_CHUNK = 1 << 18
#: Largest compression ratio of deflate.
_DEFLATED = 1032

_T = TypeVar("_T")

_ENTRY = re.compile(
    r"\s*(?P<q>['\"])(?P<key>descr|fortran_order|shape)(?P=q)\s*:\s*"
    r"(?P<value>'[^']*'|\"[^\"]*\"|True|False|\((?:\s*\d{1,18}L?\s*,)*\s*(?:\d{1,18}L?\s*)?\))\s*(?:,|$)"
)
_DTYPE = re.compile(r"[<>=|]?[?biufcSUO]\d{0,9}")
_STORED, _DEFLATE, _ENCRYPTED = 0, 8, 0x1 | 0x40


@dataclass(frozen=True)
class Header:
    """The header of an array in an .npy or .npz file."""

    dtype: np.dtype[Any]  #: The dtype of the elements; never objects.
    shape: tuple[int, ...]
    fortran_order: bool  #: Whether the first index varies fastest.

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def row(self) -> Header:
        """The header of one row along the first axis as an array of its own."""
        return Header(self.dtype, self.shape[1:], False)


#: A check that raises if an array with this header, which takes that many bytes in the file, is not acceptable.
HeaderCheck = Callable[[Header, int], None]


def read_npy(path: Path, check: HeaderCheck) -> NDArray[Any]:
    """Read the array of an .npy file.

    Args:
        path: the file.
        check: called with the header and the file's size in bytes before the elements are read; raises an error to refuse them.

    Raises:
        TensorError: the file is damaged or holds objects.
        OSError: the file cannot be opened.
    """
    with _checked(path, check) as (file, header):
        return _elements(file, header)


def npy_rows(path: Path, check: HeaderCheck, start: int = 0) -> Iterator[NDArray[Any]]:
    """Yield the rows of an .npy file along its first axis, read lazily.

    Args:
        path: the file.
        check: called with the header and the file's size in bytes; it must refuse arrays without a first axis.
        start: the first row.

    Raises:
        TensorError: the file is damaged or holds objects.
        OSError: the file cannot be opened.
    """
    with _checked(path, check) as (file, header):
        if header.fortran_order and len(header.shape) > 1:
            yield from _elements(file, header)[start:]
        else:
            row = header.row
            file.seek(start * row.nbytes, 1)
            for _ in range(start, header.shape[0]):
                yield _elements(file, row)


@contextmanager
def _checked(path: Path, check: HeaderCheck) -> Iterator[tuple[IO[bytes], Header]]:
    """Open an .npy file and check its header; yield the file at its first element, and the header. Errors in the block name the
    file.
    """
    with open_file(path) as file:
        try:
            size = file.seek(0, 2)
            file.seek(0)
            header = _header(file)
            if header.nbytes > size - file.tell():
                raise ValueError(f"its header promises {header.nbytes} bytes of elements and {size - file.tell()} are there")
            check(header, size)
            yield file, header
        except OpletError:
            raise
        except Exception as error:  # whatever a damaged file leads to
            raise TensorError(f"'{path}' is no .npy file, or a damaged one: {_why(error)}; write it again.") from error


def npz_names(path: Path) -> list[str]:
    """Return the names of the arrays in an .npz file.

    Raises:
        TensorError: the file is damaged, or holds no array.
        OSError: the file cannot be opened.
    """
    return _with_archive(path, lambda archive: list(_members(path, archive)))


def read_npz(path: Path, name: str, check: HeaderCheck) -> NDArray[Any]:
    """Read one array of an .npz file.

    Args:
        path: the file.
        name: the array's name, one of `npz_names`.
        check: called with the header and the array's compressed size in bytes before the elements are read; raises to refuse them.

    Raises:
        TensorError: the file is damaged, encrypted, compressed in a way that numpy does not use, or holds objects.
        OSError: the file cannot be opened.
    """

    def read(archive: ZipFile) -> NDArray[Any]:
        member = _readable(_members(path, archive)[name])
        with archive.open(member) as file:
            header = _member_header(file, member, check)
            array = _elements(file, header)
            if file.read(1):  # reading past the end verifies the check sum
                raise ValueError("it is longer than its header says")
            return array

    return _with_archive(path, read, f"array {name!r} of ")


def npz_rows(path: Path, name: str, check: HeaderCheck, start: int = 0) -> Iterator[NDArray[Any]]:
    """Yield the rows of an array of an .npz file along its first axis, unpacked lazily.

    Args:
        path: the file.
        name: the array's name, one of `npz_names`.
        check: called with the header and the array's compressed size in bytes; it must refuse arrays without a first axis.
        start: the first row; those before it are unpacked too.

    Raises:
        TensorError: the file is damaged, encrypted, compressed in a way that numpy does not use, or holds objects.
        OSError: the file cannot be opened.
    """
    from zipfile import ZipFile

    with open_file(path) as opened:
        try:
            with ZipFile(_Guarded(opened)) as archive:
                member = _readable(_members(path, archive)[name])
                with archive.open(member) as file:
                    header = _member_header(file, member, check)
                    if header.fortran_order and len(header.shape) > 1:
                        yield from _elements(file, header)[start:]
                        return
                    skipped = start * header.row.nbytes
                    while skipped:
                        skipped -= len(_exactly(file, min(_CHUNK, skipped)))
                    for _ in range(start, header.shape[0]):
                        yield _elements(file, header.row)
                    if file.read(1):  # reading past the end verifies the check sum
                        raise ValueError("it is longer than its header says")
        except OpletError:
            raise
        except Exception as error:  # zipfile raises many kinds of errors on damaged files
            raise _unreadable(path, f"array {name!r} of ", error) from error


def _readable(member: ZipInfo) -> ZipInfo:
    if member.flag_bits & _ENCRYPTED:
        raise ValueError("it is encrypted")
    if member.compress_type not in (_STORED, _DEFLATE):
        raise ValueError(f"it is compressed by method {member.compress_type}, which .npz files do not use")
    return member


def _member_header(file: IO[bytes], member: ZipInfo, check: HeaderCheck) -> Header:
    header = _header(file)
    held = min(member.file_size, member.compress_size * (_DEFLATED if member.compress_type == _DEFLATE else 1))
    if header.nbytes > held:
        raise ValueError(f"its header promises {header.nbytes} bytes of elements and at most {held} are there")
    check(header, member.compress_size)
    return header


def _with_archive(path: Path, use: Callable[[ZipFile], _T], what: str = "") -> _T:
    from zipfile import ZipFile  # imported late: programs that read other files start faster

    with open_file(path) as file:
        try:
            with ZipFile(_Guarded(file)) as archive:
                return use(archive)
        except OpletError:
            raise
        except Exception as error:  # zipfile raises many kinds of errors on damaged files
            raise _unreadable(path, what, error) from error


def _unreadable(path: Path, what: str, error: Exception) -> TensorError:
    return TensorError(
        f"{what[:1].upper()}{what[1:]}'{path}' cannot be read, it is no .npz file or a damaged one: {_why(error)}; "
        "write it again with numpy.savez."
    )


class _Guarded:
    """A file for zipfile that refuses single reads that are too large for a zip's directory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int | None = -1) -> bytes:
        content = self._file.read(_LARGEST_TABLE + 1 if size is None or size < 0 or size > _LARGEST_TABLE else size)
        if len(content) > _LARGEST_TABLE:
            raise ValueError(f"its table of contents has more than {_LARGEST_TABLE} bytes")
        return content

    def close(self) -> None:
        """Do nothing: whoever opened the file closes it."""


def _members(path: Path, archive: ZipFile) -> Mapping[str, ZipInfo]:
    found: dict[str, ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise ValueError(f"two of its arrays are called {name[:100]!r}")
        found[name] = member
    if not found:
        raise TensorError(f"'{path}' holds no arrays; write it again, or leave it out for random values.")
    return found


def _header(file: IO[bytes]) -> Header:
    start = _exactly(file, 8)
    if start[:6] != b"\x93NUMPY" or start[6] not in (1, 2, 3):
        raise ValueError("it does not begin as an .npy file does")
    length = int.from_bytes(_exactly(file, 2 if start[6] == 1 else 4), "little")
    if length > _LONGEST_HEADER:
        raise ValueError(f"its header has {length} bytes, more than the {_LONGEST_HEADER} that are read")
    text = _exactly(file, length).decode("utf-8" if start[6] == 3 else "latin-1").strip()
    fields = _fields(text)
    descr = fields["descr"][1:-1]
    if "O" in descr:
        raise ValueError("it holds Python objects, which are never read")
    if not _DTYPE.fullmatch(descr):
        raise ValueError(f"its type {descr[:40]!r} is none of numbers or text")
    shape = tuple(int(number) for number in re.findall(r"\d+", fields["shape"]))
    if len(shape) > _MOST_DIMENSIONS or any(dim >= 1 << 31 for dim in shape):
        raise ValueError(f"it has {len(shape)} dimensions of up to {max(shape)}")
    dtype = np.dtype(descr)
    if dtype.hasobject or (not dtype.itemsize and math.prod(shape) > _CHUNK):
        raise ValueError(f"its type {descr!r} cannot be read")
    return Header(dtype, shape, fields["fortran_order"] == "True")


def _fields(text: str) -> dict[str, str]:
    """Parse a header: a Python literal, of which only the form that numpy writes is accepted. Return its entries."""
    fields: dict[str, str] = {}
    if text.startswith("{") and text.endswith("}"):
        inner, position = text[1:-1].rstrip(), 0
        while (found := _ENTRY.match(inner, position)) is not None:
            fields[found["key"]] = found["value"]
            position = found.end()
        quoted = fields.get("descr", "").startswith(("'", '"'))
        boolean = fields.get("fortran_order") in ("True", "False")
        if position == len(inner) and quoted and boolean and fields.get("shape", "").startswith("("):
            return fields
    raise ValueError("its header is not one of an array of numbers or text")


def _elements(file: IO[bytes], header: Header) -> NDArray[Any]:
    flat = np.empty(math.prod(header.shape), header.dtype)
    if flat.nbytes:
        room, position = flat.view(np.uint8), 0
        while position < len(room):
            chunk = file.read(min(_CHUNK, len(room) - position))
            if not chunk:
                raise ValueError(f"it ends after {position} of its {len(room)} bytes of elements")
            room[position : position + len(chunk)] = np.frombuffer(chunk, np.uint8)
            position += len(chunk)
    return flat.reshape(header.shape, order="F" if header.fortran_order else "C")


def _exactly(file: IO[bytes], size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = file.read(size - len(content))
        if not chunk:
            raise ValueError("it ends within its header")
        content += chunk
    return content


def _why(error: Exception) -> str:
    return "there is not enough memory" if isinstance(error, MemoryError) else text_of(error).rstrip(".")[:300]
