"""Images: a kernel's machine code, linked except for its own address and a few C library functions.

An object file of LLVM (ELF, x86-64) becomes an image when the kernel is compiled. To load an image, it is copied, and its address
and those of the C functions are added to a few of its words. Sources: System V ABI, AMD64 supplement (relocation types); the
ELF-64 object file format.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from oplet_compiled_ops.compiling.machine_code.memory import ImageError

__all__ = ["Image", "ImageError", "linked"]

_FILE_HEADER, _SECTION, _SYMBOL, _RELOCATION = (
    struct.Struct(text) for text in ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QQq")
)
_X86_64, _RELOCATABLE = 62, 1
_WRITE, _IN_MEMORY = 1, 2
_NO_BITS, _RELA, _SYMBOLS = 8, 4, 2
#: The type of tables for unwinding, which images have not, as kernels raise nothing.
_UNWIND = 0x70000001
_COMMON = 0xFFF2
#: Relocation types: the address of a symbol as 64 bits, and its distance as 32 or 64 bits.
_ADDRESS, _NEAR, _NEAR_CALL, _FAR = 1, 2, 4, 24
_ALIGNMENT = 64
#: Sections that are written when they are loaded, and never again.
_WRITTEN_ONCE = ".data.rel.ro"
#: What machine code may call.
LIBRARY = frozenset(
    [
        "memset",
        "memcpy",
        "memmove",
        "expf",
        "exp",
        "logf",
        "log",
        "powf",
        "pow",
        "sinf",
        "sin",
        "sincosf",
        "sincos",
        "cosf",
        "cos",
        "tanf",
        "tan",
        "atan2f",
        "atan2",
        "tanhf",
        "tanh",
        "roundf",
        "round",
        "floorf",
        "floor",
        "ceilf",
        "ceil",
        "truncf",
        "trunc",
        "rintf",
        "rint",
        "nearbyintf",
        "nearbyint",
        "fmaf",
        "fma",
        "fmodf",
        "fmod",
        "sqrtf",
        "sqrt",
        "log10",
        "log2",
        "exp2",
        "exp2f",
    ]
)


@dataclass(frozen=True)
class Image:
    """A kernel's linked machine code plus the relocations that loading has to do.

    Attributes:
        code: the machine code.
        entries: the offset in `code` of each function that may be called, by name.
        own: the offsets in `code` of 64-bit words to which the address where the image is loaded is added.
        library: for each C library function by name, the offsets in `code` of 64-bit words to which the function's address is
            added.
    """

    code: bytes
    entries: Mapping[str, int]
    own: list[int] = field(default_factory=list)
    library: Mapping[str, list[int]] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        head = json.dumps({"entries": dict(self.entries), "own": self.own, "library": dict(self.library)}).encode()
        return struct.pack("<I", len(head)) + head + self.code

    @classmethod
    def from_bytes(cls, data: bytes) -> Image:
        """Parse the bytes that `to_bytes` made.

        Raises:
            ImageError: the bytes are damaged, or not those of an image.
        """
        try:
            [length] = struct.unpack_from("<I", data)
            head = json.loads(data[4 : 4 + length])
            image = cls(data[4 + length :], head["entries"], head["own"], head["library"])
            offsets = [
                *image.entries.values(),
                *(at + 7 for at in image.own),
                *(at + 7 for of in image.library.values() for at in of),
            ]
        except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ImageError(f"it is damaged: {error}") from error
        if any(not isinstance(at, int) or not 0 <= at < len(image.code) for at in offsets):
            raise ImageError("it is damaged: an offset is outside")
        return image


def linked(data: bytes, entries: tuple[str, ...]) -> Image:
    """Link an ELF object file into an image; raise if it needs more than an image can express.

    Args:
        data: the object file.
        entries: the functions that are to be called; names that the file does not define are left out.

    Raises:
        ImageError: the file is not for x86-64, writes into its own data, or needs other symbols or relocations than those an
            image has.
    """
    sections = _sections(data)
    places, size = _laid_out(sections)
    table = next((section for section in sections if section.kind == _SYMBOLS), None)
    if table is None:
        raise ImageError("it has no symbols")
    names = sections[table.link]
    symbols, size = _located(data, table, names, places, size)
    code = bytearray(size)
    for number, place in places.items():
        section = sections[number]
        if section.kind != _NO_BITS:
            code[place : place + section.size] = data[section.offset : section.offset + section.size]
    own: list[int] = []
    library: dict[str, list[int]] = {}
    for section in sections:
        if section.kind != _RELA or section.info not in places:
            continue
        for start in range(section.offset, section.offset + section.size, _RELOCATION.size):
            where, info, addend = _RELOCATION.unpack_from(data, start)
            kind, (name, target) = info & 0xFFFFFFFF, symbols[info >> 32]
            at = places[section.info] + where
            if target is None:
                if kind != _ADDRESS or name not in LIBRARY:
                    raise ImageError(f"it needs {name or 'a symbol without name'} (relocation {kind})")
                struct.pack_into("<q", code, at, addend)
                library.setdefault(name, []).append(at)
            elif kind == _ADDRESS:
                struct.pack_into("<q", code, at, target + addend)
                own.append(at)
            elif kind in (_NEAR, _NEAR_CALL):
                struct.pack_into("<i", code, at, target + addend - at)
            elif kind == _FAR:
                struct.pack_into("<q", code, at, target + addend - at)
            else:
                raise ImageError(f"it has a relocation of type {kind}")
    offsets = {name: target for name, target in symbols if name in entries and target is not None}
    return Image(bytes(code), offsets, own, library)


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int


def _sections(data: bytes) -> list[_Section]:
    try:
        ident, kind, machine, _, _, _, start, _, _, _, _, each, count, names = _FILE_HEADER.unpack_from(data)
        if ident[:6] != b"\x7fELF\x02\x01" or kind != _RELOCATABLE or machine != _X86_64:
            raise ImageError("it is no ELF object of x86-64")
        found = []
        for number in range(count):
            name, kind, flags, _, offset, size, link, info, alignment, _ = _SECTION.unpack_from(data, start + number * each)
            found.append(_Section(name, kind, flags, offset, size, link, info, alignment))
    except struct.error as error:
        raise ImageError("it is no ELF object") from error
    table = found[names]
    for section in found:
        label = _text(data, table, section.name)
        if section.flags & _IN_MEMORY and section.flags & _WRITE and section.size and not label.startswith(_WRITTEN_ONCE):
            raise ImageError(f"it writes into its section {label}")
    return found


def _text(data: bytes, table: _Section, start: int) -> str:
    begin = table.offset + start
    return data[begin : data.index(b"\0", begin)].decode("utf-8", "replace")


def _laid_out(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Assign offsets in the image to the sections that are loaded; return them by section number, and the total size in bytes."""
    places, size = {}, 0
    for number, section in enumerate(sections):
        if section.flags & _IN_MEMORY and section.size and section.kind != _UNWIND:
            step = max(section.alignment, 1)
            size = -(-size // step) * step
            places[number] = size
            size += section.size
    return places, size


def _located(
    data: bytes, table: _Section, names: _Section, places: dict[int, int], size: int
) -> tuple[list[tuple[str, Any]], int]:
    """Return name and offset in the image of each symbol (offset None if external), and the image's size with common symbols.

    `data` is the object file, `table` its section of symbols and `names` that of their names; `places` has the offsets of the
    loaded sections by number. Common (zero-initialized) symbols are placed after all sections, which have `size` bytes.
    """
    symbols: list[tuple[str, Any]] = []
    for start in range(table.offset, table.offset + table.size, _SYMBOL.size):
        name, _, _, section, value, length = _SYMBOL.unpack_from(data, start)
        text = _text(data, names, name)
        if section == _COMMON:  # zeros, `value` is their alignment
            size = -(-size // max(value, 1)) * max(value, 1)
            symbols.append((text, size))
            size += length
        elif section in places:
            symbols.append((text, places[section] + value))
        else:
            symbols.append((text, None))
    return symbols, -(-size // _ALIGNMENT) * _ALIGNMENT
