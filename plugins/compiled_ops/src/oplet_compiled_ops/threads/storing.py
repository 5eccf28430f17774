"""Serializes the jobs (kernel calls) of a model's nodes for another process, with the memory that they point to.

A job's arguments are int64 words, some of which are pointers: those of arrays by the kernel's signature, integers where they lead into known
memory. Words of arrays are values, but where `memory.Pointers` says that they are pointers. Each pointer is identified by the memory region that it points
into: the arena (the memory of tensors), the model's bytes, an array that the node's function keeps alive, or the library of kernels.
It is stored as an offset in that region, and `restoring` turns it into a pointer again. Jobs with a pointer to any other memory are not
stored.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet import StoredThunks, checkpoint
from oplet.kernels.arrays import Copies, spans
from oplet_compiled_ops.library.kernels import Entry, known
from oplet_compiled_ops.library.memory import Array, Pointers, address, words_at
from oplet_compiled_ops.library.opening import library
from oplet_compiled_ops.threads import HEAD_WORDS, RUN

__all__ = ["store_thunks"]

#: Memory below this may be mistaken for sizes.
_LOWEST = 1 << 32
#: The kinds of regions.
_KINDS = "arena", "model", "code", "own"
#: The bytes to which pieces of memory keep their alignment.
_LINE = 64
#: Every so many nodes or arrays, whether the run was cancelled is looked at.
_OFTEN = 256


class _NotStored(Exception):
    """Raised when jobs cannot be serialized, with the reason."""


class _Region:
    """A piece of memory that pointers in jobs may point into.

    Args:
        kind: "arena" (tensors), "model" (the model's bytes), "code" (a kernel in the library), or "own" for an array, whose memory
            is stored.
        start: its address.
        end: the address after its last byte.
    """

    def __init__(self, kind: str, start: int, end: int) -> None:
        self.kind, self.start, self.end = kind, start, end
        self.words: list[tuple[int, Array]] = []  # arrays in own memory with the positions of words that are addresses
        self.place = -1  # the offset at which it is stored; -1 as long as nothing points to it


class _Run(NamedTuple):
    """The jobs that become one callable when they are restored, with the error flags of the nodes that they run."""

    jobs: Sequence[int]  #: The addresses of its jobs.
    marks: Sequence[Array] = ()  #: The error flags of nodes that may fail (`failing`).


def store_thunks(runs: Sequence[Sequence[Any]], arena: Array, model: Array, arrays: Sequence[Array]) -> StoredThunks | None:
    """Serialize functions that run nodes as data from which `restoring.restore` makes callables; None if that is impossible.

    Args:
        runs: sequences of functions, each of which becomes one callable; a function that runs in portions becomes several.
        arena: the memory that tensors share.
        model: the model's bytes.
        arrays: further arrays to store.
    """
    try:
        kept: list[Any] = []
        found = [run for thunks in runs for run in _found(thunks, kept)]
        return _Storing(kept, arena, model, [*arrays, *(mark for run in found for mark in run.marks)]).stored(found, arrays)
    except _NotStored:
        return None


def _found(thunks: Sequence[Any], kept: list[Any]) -> list[_Run]:
    """Return the jobs that these functions run; add to `kept` the objects that these keep alive, all arrays that jobs access
    among them.
    """
    jobs: list[int] = []
    marks: list[Array] = []
    for number, thunk in enumerate(thunks):
        if not number % _OFTEN:
            checkpoint()
        if (turns := getattr(thunk, "turns", None)) is not None:
            kept += turns.kept
            return [_turn(turns.entry, parts, kept) for parts in turns.turns]
        if hasattr(thunk, "copies"):
            kept += (thunk.copies, *thunk.keep)
            jobs += thunk.addresses
        elif hasattr(thunk, "jobs"):
            kept += thunk.jobs.kept
            jobs += thunk.jobs.addresses
            marks += [failure.mark for failure in thunk.jobs.failures]
        else:
            raise _NotStored("a thunk is not one of machine code")
    return [_Run(jobs, marks)]


def _turn(entry: Entry, parts: Sequence[tuple[Any, ...]], kept: list[Any]) -> _Run:
    words: Array = entry.rows(parts)
    job: Array = np.array([entry.address, address(words), words.strides[0], len(words), 1], np.int64)
    kept += (words, job, *(value for arguments in parts for value in arguments if isinstance(value, np.ndarray)))
    return _Run([address(job)])


class _Storing:
    def __init__(self, kept: Iterable[Any], arena: Array, model: Array, arrays: Iterable[Array]) -> None:
        regions = [
            _Region(kind, address(whole), address(whole) + whole.nbytes) for kind, whole in (("arena", arena), ("model", model))
        ]
        self._library = library()
        code = {kernel.address for kernel in known if kernel.address is not None}
        regions += [_Region("code", where, where) for where in sorted(code)]
        outer = [(region.start, region.end) for region in regions]
        found: dict[int, _Region] = {}
        tables: list[Pointers] = []
        for number, array in enumerate((*_arrays(kept, tables), *arrays)):
            if not number % _OFTEN:
                checkpoint()
            where = address(array)
            if any(first <= where < end for first, end in outer):
                continue
            first, last = next(iter(spans([array])), (where, where))
            root = _root(array)
            # What is behind an array's last element may be read, too; what is before its first one is none of its business.
            region = found.setdefault(id(root), _Region("own", first, last))
            region.start, region.end = min(first, region.start), max(last, region.end, address(root) + root.nbytes)
        for table, pointers in tables:
            where = address(table)
            if where % 8:
                raise _NotStored("words lie between words")
            found[id(_root(table))].words.append((where, pointers))
        self._regions = sorted([*regions, *found.values()], key=lambda region: (region.start, region.end))
        self._starts = np.array([region.start for region in self._regions], np.int64)
        self._ends = np.array([region.end for region in self._regions], np.int64)
        if (self._ends[:-1] > self._starts[1:]).any():
            raise _NotStored("arrays overlap otherwise than as views")
        self._mapped = _mapped()
        if self._mapped.min() < _LOWEST:
            raise _NotStored("memory is at addresses that may be sizes")
        self._pieces: list[tuple[int, bytes]] = []
        self._size = 0
        self._waiting: list[_Region] = []
        self._moved: dict[str, list[Array]] = {kind: [] for kind in _KINDS}

    def stored(self, runs: Sequence[_Run], arrays: Sequence[Array]) -> StoredThunks:
        words, own, pointers, calls = _jobs([run.jobs for run in runs])
        values = np.array(words, np.int64)
        self._place(values.nbytes, 0)
        self._resolve(values, np.array(pointers, np.int64), 0)
        self._moved["own"].append(np.array(own, np.int64))
        self._pieces.append((0, values.tobytes()))
        offsets = [self._offset(array) for array in arrays]
        failing = [[self._offset(mark) for mark in run.marks] for run in runs]
        start = self._offset_of(RUN.entry().address)
        while self._waiting:
            checkpoint()
            region = self._waiting.pop()
            content = bytearray(ctypes.string_at(region.start, region.end - region.start))
            for where, places in region.words:
                values = np.frombuffer(content, np.int64, int(places.max(initial=-1)) + 1, where - region.start)
                self._resolve(values, places, (region.place + where - region.start) // 8)
            self._pieces.append((region.place, bytes(content)))
        memory = bytearray(self._size)
        for place, piece in self._pieces:
            memory[place : place + len(piece)] = piece
        moved = {
            kind: np.concatenate(found or [np.empty(0, np.int64)]).astype(np.int32).tobytes()
            for kind, found in self._moved.items()
        }
        facts = {
            "library": self._library.identity,
            "calls": calls,
            "marks": failing,
            "run": start,
            "moved": moved,
        }
        return StoredThunks("oplet_compiled_ops.threads.restoring:restore", facts, bytes(memory), offsets)

    def _place(self, nbytes: int, residue: int) -> int:
        """Reserve `nbytes` in the memory to be stored, at an offset that is `residue` modulo 64, as its address was; return the
        offset.
        """
        place = self._size + (residue - self._size) % _LINE
        self._size = place + nbytes
        return place

    def _find(self, words: Array) -> tuple[Array, Array]:
        """Return for each word the number of the memory region that it may point into, and whether it does.

        An address just after a region's last byte counts as pointing into it.
        """
        numbers = np.maximum(np.searchsorted(self._starts, words, "right") - 1, 0)
        return numbers, (words >= self._starts[numbers]) & (words <= self._ends[numbers])

    def _resolve(self, words: Array, positions: Array, first: int) -> None:
        """Replace each pointer among words of memory by its offset in the region that it points into.

        The pointers' positions in the stored memory are added to `_moved`, by the kind of region; `restoring` adds the region's
        new address there.

        Args:
            words: the words, which are changed.
            positions: the positions in `words` of those that may be pointers.
            first: the position of `words[0]` in the stored memory, in words.
        """
        values = words[positions]
        numbers, inside = self._find(values)
        # An address of something else, which would be another one in another process; other numbers lead nowhere.
        if (np.searchsorted(self._mapped, values[~inside], "right") % 2).any():
            raise _NotStored("an address is unknown")
        positions, numbers = positions[inside], numbers[inside]
        moves, kinds = np.zeros(len(self._regions), np.int64), np.zeros(len(self._regions), np.int8)
        for number in sorted(set(numbers.tolist())):
            region = self._regions[number]
            moves[number] = self._offset_in(region) - region.start
            kinds[number] = _KINDS.index(region.kind)
        words[positions] += moves[numbers]
        for kind, name in enumerate(_KINDS):
            self._moved[name].append(positions[kinds[numbers] == kind] + first)

    def _offset_in(self, region: _Region) -> int:
        """Return at which offset a region will begin within its kind when restored: in stored memory, or from the library's anchor.

        A region that is asked for the first time is reserved a place. The arena and the model's bytes are regions of their own,
        at offset 0.
        """
        if region.kind in ("arena", "model"):
            return 0
        if region.kind == "code":
            return region.start - self._library.anchor
        if region.place < 0:
            region.place = self._place(region.end - region.start, region.start % _LINE)
            self._waiting.append(region)
        return region.place

    def _offset_of(self, where: int) -> int:
        [number], [inside] = self._find(np.array([where], np.int64))
        if not inside:
            raise _NotStored("an address is unknown")
        region: _Region = self._regions[number]
        return where - region.start + self._offset_in(region)

    def _offset(self, array: Array) -> int:
        """Return the offset of an array in the stored memory, where its region is placed if it is not yet."""
        where = address(array)
        [number], [inside] = self._find(np.array([where], np.int64))
        if not inside or self._regions[number].kind != "own":
            raise _NotStored("an array is in memory that is not stored")
        return self._offset_of(where)


def _mapped() -> Array:
    """Return the memory map of this process as a sorted array: the start and end of each mapped range, in turns."""
    found: list[int] = []
    try:
        with open("/proc/self/maps", "rb") as file:
            for line in file:
                first, _, last = line.partition(b" ")[0].partition(b"-")
                found += int(first, 16), int(last, 16)
    except (OSError, ValueError):
        pass
    if not found:
        raise _NotStored("the system does not tell what memory there is")
    return np.array(sorted(found), np.uint64).clip(max=np.iinfo(np.int64).max).astype(np.int64)


def _jobs(runs: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Lay out jobs, with their arguments, as one list of words.

    Return the words, the positions of those that are offsets in them (in bytes, not pointers), those of the ones that may be pointers, and
    for each run the offset of RUN's arguments.
    """
    words: list[int] = []
    own: list[int] = []
    pointers: list[int] = []
    calls = []
    slots = {kernel.address: kernel.entry().pointers for kernel in known if kernel.address is not None}
    for addresses in runs:
        heads = [words_at(where, HEAD_WORDS).tolist() for where in addresses]
        heads = [head for head in heads if head[3]]  # the others have no parts
        if any(head[4] > 1 for head in heads):
            raise _NotStored("several threads share a job")
        calls.append(8 * len(words))
        table = len(words) + 3
        own.append(table - 2)
        words += [0, 8 * table, len(heads), *[0] * len(heads)]  # nobody reads a team where each job has one thread
        for number, (function, where, stride, count, threads) in enumerate(heads):
            at = len(words)
            words[table + number] = 8 * at
            words += [function, 8 * (at + HEAD_WORDS), stride, count, threads, *words_at(where, stride * count // 8).tolist()]
            own += [table + number, at + 1]
            pointers.append(at)
            for part in range(count):
                first = at + HEAD_WORDS + part * (stride // 8)
                pointers += [first + slot for slot in slots.get(function, range(stride // 8))]
    return words, own, pointers, calls


def _arrays(kept: Iterable[Any], tables: list[Pointers]) -> Iterator[Array]:
    """Yield the numpy arrays among objects that functions keep alive, those within tuples, lists and copies included.

    What tells that words of an array are addresses is added to `tables`.
    """
    waiting = list(kept)
    while waiting:
        found = waiting.pop()
        if isinstance(found, np.ndarray):
            yield found
        elif isinstance(found, Pointers):
            tables.append(found)
            yield found.table
        elif isinstance(found, (tuple, list)):
            waiting += found
        elif isinstance(found, Copies):
            waiting += found.pairs


def _root(array: Array) -> Array:
    """Return the array that owns a view's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
