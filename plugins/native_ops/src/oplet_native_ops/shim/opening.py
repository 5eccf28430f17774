"""Opens a third-party library so that its LiteRT C API calls bind to this package's library, not to another one.

The loader looks for what a new library leaves undefined among the libraries of the program itself, then among those that were asked
for by the same `dlopen`. So an otherwise empty file that needs first our library and then theirs, opened for itself alone
(RTLD_LOCAL), binds their library to ours. Nothing becomes global: TensorFlow, which exports functions of the same names, is not
hijacked; and their file is not touched. Where somebody made such functions global, ours are put before them (RTLD_DEEPBIND).
"""

from __future__ import annotations

import ctypes
import os
import platform
import tempfile
import threading
from pathlib import Path
from typing import Any

from oplet.errors import PluginError
from oplet_native_ops.shim.elf import ElfError, ElfInfo, empty_library, read_elf
from oplet_native_ops.shim.library import library_path, shim

__all__ = ["NativeLibrary", "open_library"]

_MODE = getattr(os, "RTLD_NOW", 0) | getattr(os, "RTLD_LOCAL", 0)  # Windows has neither, and `shim` says so
#: LiteRT's C API under the names by which libraries are linked with it, and the version of its symbols.
_RUNTIMES = {"libtensorflowlite_c.so": "VERS_1.0"}
#: Where the loader looks for a name without a folder.
_FOLDERS = ("/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64")


class NativeLibrary:
    """A third-party shared library, whose LiteRT symbols are bound to this package's C library.

    Attributes:
        path: the file.
        name: the file's name, for messages.
        info: its dynamic symbols and dependencies.
        functions: the ctypes library.
        was_loaded: whether the process had loaded it before, so that it is bound to another LiteRT library.
    """

    def __init__(self, path: str, info: ElfInfo, functions: ctypes.CDLL, was_loaded: bool) -> None:
        self.path = path
        self.name = Path(path).name
        self.info = info
        self.functions = functions
        self.was_loaded = was_loaded

    def function(self, name: str) -> ctypes._NamedFuncPointer | None:
        """Return the library's exported function without arguments, by C name or C++ name ("a::b"); None if there is none."""
        return self._first(symbols_of(name), ctypes.c_void_p, [])

    def registerer(self, name: str) -> ctypes._NamedFuncPointer | None:
        """Return the exported function that takes a `tflite::MutableOpResolver *`, by C or C++ name; None if there is none."""
        return self._first(registerer_symbols(name), None, [ctypes.c_void_p])

    def _first(self, symbols: tuple[str, ...], result: Any, arguments: list[Any]) -> ctypes._NamedFuncPointer | None:
        for symbol in symbols:
            if symbol in self.info.functions:
                found = getattr(self.functions, symbol)
                found.restype, found.argtypes = result, arguments
                return found  # type: ignore[no-any-return]
        return None


def symbols_of(name: str) -> tuple[str, ...]:
    """Return the linker symbols of a function without arguments: the C name, and the Itanium-mangled C++ name."""
    return _symbols(name, "v")


def registerer_symbols(name: str) -> tuple[str, ...]:
    """Return the linker symbols of a function that takes a `tflite::MutableOpResolver *`."""
    return _symbols(name, "PNS_17MutableOpResolverE" if name.startswith("tflite::") else "PN6tflite17MutableOpResolverE")


def _symbols(name: str, arguments: str) -> tuple[str, ...]:
    parts = name.split("::")
    inner = "".join(f"{len(part)}{part}" for part in parts)
    return (f"_ZN{inner}E{arguments}",) if len(parts) > 1 else (name, f"_Z{inner}{arguments}")


#: With what told one file from another when it was opened.
_opened: dict[str, tuple[NativeLibrary, tuple[int, ...]]] = {}
_lock = threading.Lock()


def open_library(path: str | os.PathLike[str]) -> NativeLibrary:
    """Open a library once; it stays loaded until the process ends, as it may have started threads.

    Args:
        path: the file; or a name without folder, which is looked for in LD_LIBRARY_PATH and the system's folders if there is no
            such file here. Opening runs the library's own code: it can do whatever the program can.

    Raises:
        PluginError: this platform is not supported, there is no such file, it is no library for this machine, a dependency is
            missing, or the file was rebuilt since it was opened, and the system's loader keeps the old one.
    """
    shim()
    found = _find(os.fspath(path))
    status = os.stat(found)
    state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    with _lock:
        if found not in _opened:
            _opened[found] = _open(found), state
        library, before = _opened[found]
    if before != state:
        raise PluginError(
            f"{library.name} has changed since this program opened it; start the program anew, or give the library another name."
        )
    return library


def _find(path: str) -> str:
    if os.path.isfile(path):
        return os.path.realpath(path)
    if os.sep not in path:
        multiarch = f"{platform.machine()}-linux-gnu"
        folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        for folder in (*folders, *_FOLDERS, *(f"{each}/{multiarch}" for each in _FOLDERS)):
            if os.path.isfile(os.path.join(folder, path)):
                return os.path.realpath(os.path.join(folder, path))
        raise PluginError(f"There is no library {path} here, in LD_LIBRARY_PATH or in the system's folders; give its path.")
    raise PluginError(f"There is no library {path}; give the path of a shared library (.so).")


def _open(path: str) -> NativeLibrary:
    own = shim()
    name = Path(path).name
    try:
        info, ours = read_elf(path), read_elf(own._name)
    except (ElfError, OSError) as error:
        raise PluginError(f"{name} cannot be loaded: {error}; give a shared library (.so).") from error
    if info.machine != ours.machine:
        raise PluginError(f"{name} is built for {info.machine}, and this machine is {ours.machine}: build it for this one.")
    was_loaded = _is_loaded(path)
    try:
        scope = _open_bound(path)
    except OSError as error:
        runtimes = [runtime for runtime in info.needed if runtime in _RUNTIMES]
        if not runtimes:
            raise PluginError(f"{name} cannot be loaded: {_reason(info, ours, error)}") from error
        try:
            for runtime in runtimes:
                _stand_in(runtime)
            scope = _open_bound(path)
        except OSError as again:
            raise PluginError(f"{name} cannot be loaded: {_reason(info, ours, again)}") from again
    functions = ctypes.CDLL(path, mode=_MODE)  # the same one, which is there by now and stays as it was bound
    functions.__dict__["scope"] = scope
    return NativeLibrary(path, info, functions, was_loaded)


def _is_loaded(path: str) -> bool:
    try:
        ctypes.CDLL(path, mode=_MODE | os.RTLD_NOLOAD)
    except OSError:
        return False
    return True


def _open_bound(path: str) -> ctypes.CDLL:
    mode = _MODE
    if _are_global(("TfLiteOperatorCreate", "TfLiteIntArrayCreate", "TfLiteTensorRealloc")):
        if not hasattr(os, "RTLD_DEEPBIND"):
            raise OSError(
                "another library of this program has made functions of LiteRT's C API global, which this system puts first"
            )
        mode |= os.RTLD_DEEPBIND  # not otherwise: it also puts aside an allocator that the program was started with
    return _open_bytes(empty_library(_header(), [str(library_path()), path]), mode)


def _are_global(names: tuple[str, ...]) -> bool:
    program = ctypes.CDLL(None)
    return any(hasattr(program, name) for name in names)


_standing_in: dict[str, ctypes.CDLL] = {}


def _stand_in(runtime: str) -> None:
    """Satisfy dependencies on LiteRT's C library by an empty library of that name; the calls bind to this package's."""
    if runtime not in _standing_in:
        _standing_in[runtime] = _open_bytes(empty_library(_header(), soname=runtime, version=_RUNTIMES[runtime]))


def _header() -> bytes:
    with open(library_path(), "rb") as file:
        return file.read(64)


def _open_bytes(library: bytes, mode: int = _MODE) -> ctypes.CDLL:
    """Load a library from bytes rather than a file of the user's."""
    try:
        with tempfile.NamedTemporaryFile(prefix="oplet", suffix=".so") as file:
            file.write(library)
            file.flush()
            return ctypes.CDLL(file.name, mode=mode)
    except OSError:
        # No folder for temporary files, or one that nothing may be executed from. The descriptor stays open: the loader knows
        # libraries by their paths, and this path would be another file's later.
        descriptor = os.memfd_create("oplet")
        os.write(descriptor, library)
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}", mode=mode)


def _reason(info: ElfInfo, ours: ElfInfo, error: OSError) -> str:
    missing = [
        name
        for name in info.undefined
        if name.startswith(("TfLite", "_ZN6tflite", "_ZNK6tflite", "LiteRt")) and name not in ours.functions
    ]
    if not missing:
        return f"{error}."
    listed = ", ".join(missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    return (
        f"it calls {listed}, which {'is' if len(missing) == 1 else 'are'} not in LiteRT's public C API for operators and delegates; "
        f"link it with what defines {'it' if len(missing) == 1 else 'them'} ({error})."
    )
