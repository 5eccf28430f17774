"""The files of stored plans: found by a model's bytes and all else that a plan depends on, kept within bounds.

A plan depends on the settings, the plugins, the machine, and the sources of all code that has made it.

A file has a copy of the model's bytes, which are compared one by one: a plan is never another model's. It is replaced as a whole and
carries a checksum. Who can write in the folder decides what runs, as with Python's own compiled files (`model.files.cache_folder`).

A model is noted when it is opened for the first time, and its plan is stored when it is opened again: most models that are opened
once are never opened again, such as a converter's or a test's.
"""

from __future__ import annotations

import marshal
import mmap
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.model.files.cache_folder import CacheFolder
from oplet.records import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.plugins.manager import PluginManager

__all__ = [
    "MOST_BYTES",
    "PlanFile",
    "PlanName",
    "all_sources",
    "are_unchanged",
    "files_of",
    "find_plan",
    "keep_plan",
    "note_opened",
]


#: Sources that were found unchanged, by path, and since when: for so many seconds they are not looked at again, as this process has its code anyway.
_looked: dict[str, Stamp] = {}
_since, _SECONDS = 0.0, 1.0
#: A source file as it was: its path, its size in bytes, and the time of its last change in nanoseconds.
Stamp = tuple[str, int, int]


def _package(module: str) -> str:
    return module.partition(".")[0]


def _file_of(package: str) -> str:
    """Return the file that a top-level package is imported from; "" if that cannot be told without importing it."""
    loaded = sys.modules.get(package)
    found = (
        loaded.__spec__ if loaded is not None else next(filter(None, (f.find_spec(package, None) for f in sys.meta_path)), None)
    )
    return (found is not None and found.has_location and found.origin) or ""


def files_of(packages: Iterable[str]) -> dict[str, str]:
    """Map each package to the file that it is imported from, "" where that is unknown."""
    return {package: _file_of(package) for package in packages}


def all_sources(manager: PluginManager) -> list[Stamp] | None:
    """Return path, size and time of the source files of all imported modules of oplet and its plugins; None if a module has no
    file, or a plugin that may load is not loaded or has faults.

    Args:
        manager: the plugins.
    """
    wanted = {_package(__name__)}
    for plugin in manager.outline():
        if plugin.state != "blocked":
            if plugin.state != "loaded" or plugin.noted:
                return None
            wanted.add(_package(plugin.module))
    found: set[Stamp] = set()
    for name, module in list(sys.modules.items()):
        if module is None or _package(name) not in wanted:
            continue
        path = getattr(module, "__file__", None)
        if path is None and getattr(module, "__path__", None) is not None:
            continue  # a folder without a file of its own
        try:
            status = os.stat(path)  # type: ignore[arg-type]  # None raises a TypeError
        except (OSError, TypeError):
            return None
        found.add((str(path), status.st_size, status.st_mtime_ns))
    return sorted(found)


def are_unchanged(stamps: Sequence[Stamp], packages: Mapping[str, str]) -> bool:
    """Return whether source files still have the size and time they had, and packages are imported from the same places.

    Args:
        stamps: for each file its path, size in bytes and time of change.
        packages: by package the file that it was imported from.
    """
    global _since
    now = time.monotonic()
    if now - _since > _SECONDS:
        _looked.clear()
        _since = now
    if any(_file_of(package) != path for package, path in packages.items()):
        return False
    stat = os.stat
    try:
        for stamp in stamps:
            path, size, changed = stamp
            if _looked.get(path) == stamp:
                continue
            status = stat(path)
            if status.st_size != size or status.st_mtime_ns != changed:
                return False
            _looked[path] = stamp
    except OSError:
        return False
    return True


#: The largest model, and the largest file; the bytes of all files together, and their number.
MOST_BYTES, _LARGEST_FILE, _ALL_BYTES, _ALL_FILES = 64 << 20, 192 << 20, 512 << 20, 256

_FOLDER = CacheFolder("plans")
_MAGIC = b"oplet plan 1\n\0\0\0"
#: After the magic: the checksum, and the sizes of the facts, the memory and the model. Each part begins at a multiple of `_PAGE`.
_HEAD = struct.Struct("<16sQQQQ")
_PAGE = max(4096, mmap.PAGESIZE)
_SUFFIX = ".plan"
#: Every how many bytes of a model one is part of its plan's name.
_STEP = 61
#: The bytes of two models that are compared at a time.
_TOGETHER = 1 << 20
#: The file that notes the models that were opened: the number of notes, and the bytes of each.
_OPENED, _NOTES, _NOTE = "opened", 4096, 12


class PlanName(Row):
    """Key of a plan stored on disk (a model's prepared state): the model, and the settings that it was made for.

    Attributes:
        settings: a text of everything that the plan depends on besides the model.
        model: the model's bytes.
    """

    settings: str
    model: NDArray[np.uint8]

    @property
    def number(self) -> bytes:
        """A hash of twelve bytes that identifies the plan; of two plans with the same, the later one replaces the first."""
        some = zlib.crc32(self.model[::_STEP].tobytes(), zlib.crc32(self.model[:_PAGE].data))
        return struct.pack("<III", zlib.crc32(self.settings.encode()), some, len(self.model) & 0xFFFFFFFF)

    @property
    def file(self) -> str:
        """The file name of the plan, made of hashes of settings and model."""
        return self.number.hex() + _SUFFIX


class PlanFile(Row):
    """The content of a plan's file.

    Attributes:
        facts: the plan as data: dictionaries, lists, numbers, strings and bytes.
        memory: the bytes that the plan's thunks use, mapped privately and aligned to pages; changes stay in this process.
    """

    facts: dict[str, Any]
    memory: NDArray[np.uint8]


def find_plan(name: PlanName) -> PlanFile | None:
    """Return the plan (what was prepared for a model) stored under a name; None if there is no file, or it cannot be trusted."""
    try:
        with _FOLDER.open(name.file) as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        return _read(pages, name)
    except (OSError, ValueError, EOFError, TypeError, KeyError, struct.error):
        return None


def _read(pages: mmap.mmap, name: PlanName) -> PlanFile | None:
    magic, checksum, facts_size, memory_size, model_size = _HEAD.unpack_from(pages)
    facts_at, memory_at, model_at, end = _places(facts_size, memory_size, model_size)
    if magic != _MAGIC or end != len(pages) or model_size != len(name.model):
        return None
    content: NDArray[np.uint8] = np.frombuffer(pages, np.uint8)
    if not _equal(content[model_at : model_at + model_size], name.model):
        return None
    told, memory = content[facts_at : facts_at + facts_size], content[memory_at : memory_at + memory_size]
    if zlib.crc32(memory.data, zlib.crc32(told.data)) != checksum:
        return None
    if hasattr(mmap, "MADV_DONTNEED") and model_size >= mmap.PAGESIZE:  # the copy of the model is not read again
        pages.madvise(mmap.MADV_DONTNEED, model_at, model_size)
    facts = marshal.loads(told.tobytes())
    if facts["settings"] != name.settings:
        return None
    return PlanFile(facts, memory)


def _places(facts: int, memory: int, model: int) -> tuple[int, int, int, int]:
    """Return the positions of facts, memory, model and end in a plan's file, given the sizes of the three in bytes."""
    facts_at = 64
    memory_at = -(-(facts_at + facts) // _PAGE) * _PAGE
    model_at = -(-(memory_at + memory) // _PAGE) * _PAGE
    return facts_at, memory_at, model_at, model_at + model


def _equal(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Return whether two arrays have the same bytes, without a copy of them all."""
    return len(one) == len(other) and all(
        np.array_equal(one[start : start + _TOGETHER], other[start : start + _TOGETHER])
        for start in range(0, len(one), _TOGETHER)
    )


def keep_plan(name: PlanName, facts: dict[str, Any], memory: bytes) -> None:
    """Store a plan, unless it is too large or the folder cannot be written.

    Args:
        name: the key of the plan.
        facts: the plan as data: dictionaries, lists, numbers, strings and bytes.
        memory: the bytes that the plan's thunks use.
    """
    told = marshal.dumps({"settings": name.settings, **facts})
    facts_at, memory_at, model_at, end = _places(len(told), len(memory), len(name.model))
    if end > _LARGEST_FILE:
        return
    with suppress(OSError):  # the disk is full, or the folder is not the user's
        with _FOLDER.replace(name.file) as file:
            file.write(_HEAD.pack(_MAGIC, zlib.crc32(memory, zlib.crc32(told)), len(told), len(memory), len(name.model)))
            for place, part in ((facts_at, told), (memory_at, memory), (model_at, name.model.data)):
                file.seek(place)
                file.write(part)
        _FOLDER.keep_newest("", _SUFFIX, _ALL_FILES, _ALL_BYTES)


def note_opened(name: PlanName) -> bool:
    """Record on disk that a model was opened; return whether an earlier opening is on record, not overwritten by another model's."""
    number = name.number
    place = int.from_bytes(number[4:8], "little") % _NOTES * _NOTE
    with suppress(OSError), _FOLDER.update(_OPENED) as file:
        file.seek(place)
        if file.read(_NOTE) == number:
            return True
        file.seek(place)
        file.write(number)
    return False
