"""A minimal ELF reader (exports, undefined symbols), and a writer of empty ELF libraries with dependencies."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["ElfError", "ElfInfo", "bound_names", "empty_library", "read_elf"]

_MACHINES = {3: "x86 (32 bits)", 40: "ARM (32 bits)", 62: "x86-64", 183: "aarch64", 243: "RISC-V"}
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_NEEDED, _HASH, _STRTAB, _SYMTAB, _STRSZ, _SYMENT, _SONAME, _GNU_HASH = 1, 4, 5, 6, 10, 11, 14, 0x6FFFFEF5
_RELA, _RELASZ, _JMPREL, _PLTRELSZ = 7, 8, 23, 2
_VERDEF, _VERDEFNUM, _VERSYM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFF0


class ElfError(ValueError):
    """Raised for a file that is not a library of this machine; the message says what it is."""


class ElfInfo(NamedTuple):
    """The dynamic symbols and dependencies of a shared library."""

    machine: str  #: The architecture: "x86-64" or "aarch64".
    functions: tuple[str, ...]  #: The symbol names of the exported functions.
    undefined: tuple[str, ...]  #: The undefined symbols.
    needed: tuple[str, ...]  #: The libraries that it depends on (DT_NEEDED).


class _File:
    """The segments of an ELF file, by virtual address."""

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\x7fELF":
            raise ElfError("it is no ELF file")
        if data[4:6] != b"\x02\x01":
            raise ElfError("it is not for 64-bit little-endian machines")
        self.data = data
        kind, self.machine = struct.unpack_from("<HH", data, 16)
        if kind != 3:
            raise ElfError("it is no shared library")
        start, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
        self.programs = [struct.unpack_from("<IIQQQQQQ", data, start + i * size) for i in range(count)]

    def offset(self, address: int) -> int:
        for kind, _, offset, virtual, _, size, _, _ in self.programs:
            if kind == _LOAD and virtual <= address < virtual + size:
                return int(offset + address - virtual)
        raise ElfError("it is damaged: an address lies outside of it")

    def dynamic(self) -> Iterator[tuple[int, int]]:
        for kind, _, offset, _, _, size, _, _ in self.programs:
            if kind == _DYNAMIC:
                for at in range(offset, offset + size, 16):
                    tag, value = struct.unpack_from("<QQ", self.data, at)
                    if not tag:
                        return
                    yield tag, value

    def text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode("utf-8", "replace")


def _symbol_count(file: _File, tags: dict[int, int]) -> int:
    """Return the number of dynamic symbols, derived from the hash tables, as ELF stores it nowhere else."""
    if _HASH in tags:
        return int(struct.unpack_from("<I", file.data, file.offset(tags[_HASH]) + 4)[0])
    if _GNU_HASH not in tags:
        return 0
    at = file.offset(tags[_GNU_HASH])
    buckets, first, words, _ = struct.unpack_from("<4I", file.data, at)
    chains = at + 16 + 8 * words + 4 * buckets
    last = max(struct.unpack_from(f"<{buckets}I", file.data, at + 16 + 8 * words), default=0)
    if last < first:
        return int(first)
    while not struct.unpack_from("<I", file.data, chains + 4 * (last - first))[0] & 1:
        last += 1
    return int(last + 1)


@contextmanager
def _opened(path: str) -> Iterator[_File]:
    """Open an ELF file for reading; any parse failure inside becomes an ElfError."""
    with open(path, "rb") as opened:
        data = opened.read()
    try:
        yield _File(data)
    except ElfError:
        raise
    except (struct.error, ValueError, LookupError, MemoryError) as error:
        raise ElfError("it is damaged, or cut off") from error


def read_elf(path: str) -> ElfInfo:
    """Read a shared library's dynamic symbols and dependencies.

    Raises:
        ElfError: the file is no library, or one for another kind of machine.
        OSError: the file cannot be read.
    """
    with _opened(path) as file:
        entries = list(file.dynamic())
        tags = dict(entries)
        if _STRTAB not in tags or _SYMTAB not in tags:
            raise ElfError("it exports nothing")
        strings, symbols = file.offset(tags[_STRTAB]), file.offset(tags[_SYMTAB])
        functions, undefined = [], []
        for i in range(1, _symbol_count(file, tags)):
            name, info, _, section = struct.unpack_from("<IBBH", file.data, symbols + 24 * i)
            if not section:
                undefined.append(file.text(strings + name))
            elif info & 15 in (2, 10):  # a function, or one that is chosen when the library is loaded
                functions.append(file.text(strings + name))
        needed = tuple(file.text(strings + value) for tag, value in entries if tag == _NEEDED)
    return ElfInfo(_MACHINES.get(file.machine, f"machine {file.machine}"), tuple(functions), tuple(undefined), needed)


def bound_names(path: str) -> frozenset[str]:
    """Return the symbols that the loader binds for a library: undefined ones, and its own that other libraries may override.

    Raises:
        ElfError: the file is damaged.
        OSError: the file cannot be read.
    """
    with _opened(path) as file:
        tags = dict(file.dynamic())
        strings, symbols = file.offset(tags[_STRTAB]), file.offset(tags[_SYMTAB])
        indices: set[int] = set()
        for table, size in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
            if table in tags:
                at = file.offset(tags[table])
                indices.update(info >> 32 for _, info, _ in struct.iter_unpack("<QQq", file.data[at : at + tags[size]]))
        return frozenset(file.text(strings + struct.unpack_from("<I", file.data, symbols + 24 * i)[0]) for i in indices if i)


def empty_library(reference: bytes, needed: Sequence[str] = (), soname: str = "", version: str = "") -> bytes:
    """Return an empty ELF shared library with the given dependencies.

    Args:
        reference: the ELF header (first 64 bytes) of a library of this machine, whose architecture is copied.
        needed: paths or names of the libraries that it depends on (DT_NEEDED).
        soname: its DT_SONAME; "" for none.
        version: a symbol version that it declares as defined; "" for none.
    """
    machine, flags = struct.unpack_from("<H", reference, 18)[0], struct.unpack_from("<I", reference, 48)[0]
    strings = bytearray(b"\0")

    def string(text: str) -> int:
        at = len(strings)
        strings.extend(os.fsencode(text) + b"\0")
        return at

    entries = [(_NEEDED, string(path)) for path in needed] + ([(_SONAME, string(soname))] if soname else [])
    versions = b""
    if version:  # two definitions: the file itself, and the version
        for number, name, following in ((1, soname, 28), (2, version, 0)):
            versions += struct.pack("<HHHHIII", 1, number == 1, number, 1, _elf_hash(name), 20, following)
            versions += struct.pack("<II", string(name), 0)
    count = len(entries) + 6 + (3 if version else 0)
    hash_at = 64 + 3 * 56
    symbols_at = hash_at + 24
    dynamic_at = symbols_at + 24
    versions_at = dynamic_at + 16 * count
    symbol_versions_at = versions_at + len(versions)
    strings_at = symbol_versions_at + (8 if version else 0)
    entries += [(_HASH, hash_at), (_STRTAB, strings_at), (_SYMTAB, symbols_at), (_STRSZ, len(strings)), (_SYMENT, 24)]
    if version:
        entries += [(_VERDEF, versions_at), (_VERDEFNUM, 2), (_VERSYM, symbol_versions_at)]
    entries.append((0, 0))
    size = strings_at + len(strings)
    return b"".join(
        [
            b"\x7fELF\x02\x01\x01" + reference[7:8] + bytes(8),
            struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, flags, 64, 56, 3, 64, 0, 0),
            struct.pack("<IIQQQQQQ", _LOAD, 6, 0, 0, 0, size, size, 0x10000),
            struct.pack("<IIQQQQQQ", _DYNAMIC, 6, dynamic_at, dynamic_at, dynamic_at, 16 * count, 16 * count, 8),
            # Without this one the loader makes the program's stacks executable, or refuses the file.
            struct.pack("<IIQQQQQQ", _STACK, 6, 0, 0, 0, 0, 0, 16),
            struct.pack("<IIII", 1, 1, 0, 0) + bytes(8),  # one bucket, one symbol: the first, which is none
            bytes(24),
            b"".join(struct.pack("<QQ", *entry) for entry in entries),
            versions,
            bytes(8) if version else b"",
            bytes(strings),
        ]
    )


def _elf_hash(name: str) -> int:
    value = 0
    for byte in os.fsencode(name):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value
