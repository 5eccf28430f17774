"""Mapping a model's file, and reading its tables from the bytes, after a check of the kind of file."""

from __future__ import annotations

import mmap
import os
import stat
import time
import weakref
from _thread import RLock

from oplet.errors import LimitError, ModelError
from oplet.ops.shared_values import SharedValues
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.texts import shown

__all__ = ["SCHEMA_VERSION", "MappedFile", "decoded", "ensure_not_truncated", "map_file", "open_regular"]

#: Flags for opening: a pipe or device that replaced a file in the meantime must not block or become the controlling terminal.
_FLAGS = sum(getattr(os, name, 0) for name in ("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class MappedFile:
    """The bytes of a file, read-only: memory-mapped, with pages of the operating system's cache, or read into memory.

    Attributes:
        path: the file's path.
        view: its bytes.
        shared_values: constants and packed weights that all interpreters of the file share; None if the file may change unnoticed.
    """

    __slots__ = ("__weakref__", "_pages", "_size", "path", "shared_values", "view")

    def __init__(self, path: str, content: mmap.mmap | bytes | memoryview) -> None:
        self.path = path
        self.view = memoryview(content)
        self._pages = content if isinstance(content, mmap.mmap) else None
        self._size = len(content)
        self.shared_values: SharedValues | None = None

    def check(self) -> None:
        """Check that the file was not truncated: reading a mapping beyond the end of its file kills the process.

        The mapping keeps a file that was deleted or replaced by renaming. A file that was read into memory does not change.

        Raises:
            ModelError: the file is shorter than when it was mapped.
        """
        pages = self._pages
        if pages is not None and pages.size() < self._size:  # asked before each run, with as few calls as can be
            ensure_not_truncated(pages, self.path)

    def release_pages(self) -> None:
        """Release the pages that were read so far; they are loaded again when they are next read.

        Decoding a model's tables reads a few bytes near each constant, and an operating system with large pages then counts all of the
        constants as memory of this process.
        """
        if self._pages is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)


def ensure_not_truncated(pages: mmap.mmap, path: str) -> None:
    """Check that the file of a mapping is not shorter than the mapping.

    Args:
        path: the file's path in messages.

    Raises:
        ModelError: the file is shorter.
    """
    try:
        size = pages.size()
    except (OSError, ValueError):  # an anonymous mapping
        return
    if size < len(pages):
        raise ModelError(
            f"'{shown(path)}' changed while it was in use: it had {len(pages)} bytes and has {size}. Open it again; "
            "write a new file and rename it over the old one, open it with use_mmap=False, or hand over the bytes as model_content."
        )


def open_regular(path: str | bytes, *, follow: bool = True) -> int:
    """Open a regular file for reading, without blocking; the caller closes the descriptor.

    Args:
        path: the file.
        follow: whether the last component of the path may be a symbolic link.

    Raises:
        OSError: the file cannot be opened, or is not a regular file.
        ValueError: the path is not a valid file name.
    """
    _ensure_regular(os.stat(path, follow_symlinks=follow))
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    try:
        _ensure_regular(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _ensure_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for test, words in _KINDS if test(status.st_mode)), "no file")
        words = "Is a directory: " if kind == "a directory" else ""
        raise OSError(0, f"{words}it is {kind}, and only regular files are read")


_open: weakref.WeakValueDictionary[tuple[object, ...], MappedFile] = weakref.WeakValueDictionary()
_lock = RLock()  # reentrant: a destructor may run anywhere

#: Nanoseconds after which a change gives a file another time stamp, where stamps are fine and where they are whole seconds.
_TICK, _COARSE_TICK = 50_000_000, 2_100_000_000


def _renew_lock() -> None:
    """Replace the lock in a forked child process, which has no copy of the parent's thread that may have held it."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def map_file(path: str | os.PathLike[str], *, use_mmap: bool = True, follow: bool = True) -> MappedFile:
    """Map a file, or return the existing mapping of the same, unchanged file.

    Args:
        path: the file.
        use_mmap: False to read the file into memory instead, so that later changes of the file have no effect.
        follow: whether the last component of the path may be a symbolic link.

    Raises:
        ModelError: the file cannot be opened, is empty, is not a regular file, or changes while it is read.
        LimitError: there is not enough memory.
    """
    file_path = os.fsdecode(path)
    try:
        descriptor = open_regular(file_path, follow=follow)
        try:
            return _content(descriptor, file_path, use_mmap)
        finally:
            os.close(descriptor)
    except ModelError:
        raise
    except MemoryError as error:
        raise LimitError(f"There is not enough memory to read '{shown(file_path)}'; open it with use_mmap=True.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise ModelError(
            f"Could not open '{shown(file_path)}'. The model allocation is null/empty: {reason}; {_remedy(file_path)}."
        ) from error


def _remedy(path: str) -> str:
    """Return what to do about a path that leads to no file; `Path` makes one slash of the two of an address."""
    if path[4:8] == "TFL3":
        return "these are a model's bytes: give them as model_content"
    scheme = path.partition(":/")[0]
    if 1 < len(scheme) < len(path) and scheme.isalnum():  # a drive has one letter
        return "it is an address: download the file, and give its path"
    saved = os.path.exists(f"{path}/saved_model.pb")
    return "it is a SavedModel: convert it with TensorFlow's converter" if saved else "check the path"


def _content(descriptor: int, path: str, use_mmap: bool) -> MappedFile:
    status = os.fstat(descriptor)
    if not status.st_size:
        raise ModelError(f"Could not open '{shown(path)}'. The model allocation is null/empty: the file is empty (0 bytes).")
    key = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, use_mmap
    with _lock:
        mapped = _open.get(key)
        if mapped is None or (not use_mmap and mapped.shared_values is None):
            settled = _is_settled(status)
            content = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) if use_mmap else _read(descriptor, path, status.st_size)
            mapped = _open[key] = MappedFile(path, content)
        else:
            settled = mapped.shared_values is None and _is_settled(status)
        if settled:
            mapped.shared_values = SharedValues()
    return mapped


def _is_settled(status: os.stat_result) -> bool:
    """Return whether any change from now on gives the file another time stamp.

    A file that was written a moment ago may be written once more with the same time stamp. Values that were computed from its
    earlier bytes must not be reused then.
    """
    changed = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    return time.time_ns() - changed > (_TICK if changed % 1_000_000_000 else _COARSE_TICK)


def _read(descriptor: int, path: str, size: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb", buffering=0) as file:
        content = file.read(size) or b""
        while len(content) < size and (more := file.read(size - len(content))):  # the system reads at most 2 GB at a time
            content += more
    if len(content) != size:
        raise ModelError(
            f"'{shown(path)}' changed while it was read: it had {size} bytes, of which {len(content)} came. Open it again."
        )
    return content


#: The only version of the schema that runtimes read.
SCHEMA_VERSION = 3
_IDENTIFIER = b"TFL3"
_MINIMUM_SIZE = 8

#: Other files that users try to open: their first bytes, and the advice in the message.
_LOOKALIKES: tuple[tuple[bytes, str], ...] = (
    (
        b"LITERTLM",
        "a LiteRT-LM file (.litertlm), a language model with its tokenizer and other parts; oplet-lm runs it, as does LiteRT-LM",
    ),
    (b"\x89HDF\r\n", "an HDF5 (Keras .h5) file; convert it with TensorFlow's converter"),
    (b"\x08\x01\x12", "a TensorFlow SavedModel protobuf; convert it with TensorFlow's converter"),
    (b"\x1f\x8b", "a gzip file; unpack it first"),
    (b"GGUF", "a GGUF file of llama.cpp, which no TensorFlow Lite runtime reads"),
    *((bytes((8, version, 18)), "an ONNX model; convert it first") for version in range(3, 20)),
)
#: Texts that are found in place of a file, in small letters; blank lines and a byte order mark may come before them.
_TEXTS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer; run 'git lfs pull' to get the file itself"),
    (b"version https://hawser", "a Git LFS pointer; run 'git lfs pull' to get the file itself"),
    (b"/annex/objects/", "a git-annex pointer; run 'git annex get' to get the file itself"),
    *(
        (start, "an HTML page; the download went to a web page, not to the file")
        for start in (b"<!doctype", b"<html", b"<head", b"<?xml")
    ),
)
#: How many bytes of blanks may come before such a text.
_BLANKS = 4096
#: What zip archives begin with, what the first entry's name ends with in bundles of models, and where that name lies.
_ZIP = b"PK\x03\x04"
_MODELS = (".tflite", ".task", "tf_lite_prefill_decode", "tokenizer_model")
_ENTRY_LENGTH, _ENTRY_NAME = 26, 30


def _kind(view: memoryview) -> str:
    """Return what a file that is no model looks like, and what to do about it; "" if that is not known."""
    head = bytes(view[:_BLANKS])
    if head.startswith(_ZIP):
        name = bytes(view[_ENTRY_NAME : _ENTRY_NAME + int.from_bytes(head[_ENTRY_LENGTH : _ENTRY_LENGTH + 2], "little")][:200])
        entry = shown(name.decode("utf-8", "replace"))
        if entry.lower().endswith(_MODELS):
            return (
                f"a zip archive of models, such as MediaPipe's .task, whose first file is '{entry}'; unpack it and open a model in it, "
                "run a language model's with oplet-lm, or the bundle with MediaPipe"
            )
        return "a zip archive; a Keras .keras file or an archive must be converted or unpacked first"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    found = (words for start, words in _LOOKALIKES if head.startswith(start))
    return next(found, "") or next((words for start, words in _TEXTS if text.startswith(start)), "")


def decoded(view: memoryview, where: str, unknown: list[str]) -> tables.Model:
    """Decode a model's tables; those of tensors and nodes stay arrays, one per field.

    Args:
        view: the file's bytes.
        where: the file's name in messages.
        unknown: receives descriptions of the first few fields and union members that this schema does not have.

    Raises:
        ModelError: the file is no .tflite file, has another version of the schema, or is damaged.
    """
    head = bytes(view[:32])
    if len(view) < _MINIMUM_SIZE:
        raise ModelError(
            f"Model provided must have at least 7 bytes to hold identifier; there are {len(view)} in {where}. "
            f"The model is not a valid Flatbuffer buffer; fetch it again."
        )
    if head[4:8] != _IDENTIFIER:
        kind = _kind(view)
        looks = f" It looks like {kind}." if kind else " It is another kind of file, or damaged."
        found = head[4:8].decode("ascii", "replace").encode("ascii", "backslashreplace").decode()
        found = "".join(c if c.isprintable() else "?" for c in found)
        raise ModelError(
            f"The model is not a valid Flatbuffer buffer: Model provided has model identifier '{found}', should be 'TFL3' in {where}.{looks}"
        )
    root = decode(tables.Model, view, where, unknown, (tables.Tensor, tables.Operator))
    if root.version != SCHEMA_VERSION:
        raise ModelError(
            f"Model provided is schema version {root.version} not equal to supported version {SCHEMA_VERSION}. "
            f"Convert {where} again with a current converter."
        )
    return root
