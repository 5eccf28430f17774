"""Run a program whose imports of LiteRT's interpreter are answered by oplet, and say what ran where."""

from __future__ import annotations

import builtins
import os
import runpy
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

from oplet.errors import ModelError
from oplet.tools.behind.doors import open_doors
from oplet.tools.behind.names import Account, names_behind, plugin_packages
from oplet.tools.behind.processes import Opener, with_doors_in_processes
from oplet.tools.running.delegates import check_delegates

if TYPE_CHECKING:
    from oplet.plugins.manager import PluginManager

__all__ = ["Account", "run_behind"]


def run_behind(
    program: str,
    arguments: Sequence[str] = (),
    *,
    is_module: bool = False,
    plugins: PluginManager,
    blocked: Sequence[str] = (),
    delegates: Sequence[str] = (),
    num_threads: int | None = None,
    tensorflow: bool = False,
    account: Account | None = None,
) -> Account:
    """Run a program in this process as Python would run it, with LiteRT's interpreter answered by oplet.

    Args:
        program: a script, the name of a command that is a script of Python, or with `is_module` a module's name.
        arguments: its arguments.
        is_module: run it as `python -m` does.
        plugins: where kernels and delegates come from.
        blocked: the names of plugins that these lack, for processes that the program starts.
        delegates: for interpreters that the program gives none, see `oplet.delegates.specifier.parse_delegate`, or "auto".
        num_threads: for interpreters that the program gives no number.
        tensorflow: answer `tensorflow.lite` also where TensorFlow is not installed.
        account: where to note what ran, also if the program fails.

    Returns:
        The account.

    Raises:
        ModelError: there is no such program.
        DelegateError: there is no such delegate.
        BaseException: whatever the program raises, SystemExit included.
    """
    account = account or Account()
    path = program if is_module else _script(program)
    check_delegates(delegates, plugins)
    names = names_behind(account, plugins, delegates, num_threads)
    opener = Opener(blocked, delegates, num_threads, tensorflow)
    with (
        open_doors(names, plugin_packages(), bare=tensorflow) as used,
        with_doors_in_processes(opener),
        _as_main(path, arguments, is_module),
    ):
        try:
            with _until_threads_end():
                if is_module:
                    runpy.run_module(program, run_name="__main__", alter_sys=True)
                else:
                    _run_script(path)
        finally:
            account.answered = list(used)
    return account


class _Script(SourceFileLoader):
    """Loads a script; its bytecode is not kept, as Python keeps none of what it is asked to run."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(path)


def _run_script(path: str) -> None:
    """Run a script as `__main__`, with the `__file__` and the other names that Python gives it; folders and archives by their `__main__`."""
    if os.path.isdir(path) or path.endswith(".pyc") or zipfile.is_zipfile(path):
        runpy.run_path(path, run_name="__main__")
        return
    file = os.path.abspath(path)
    module = ModuleType("__main__")
    vars(module).update(__file__=file, __builtins__=builtins, __package__=None, __cached__=None)
    module.__loader__ = loader = _Script("__main__", file)
    before = sys.modules["__main__"]
    sys.modules["__main__"] = module
    try:
        with _until_threads_end():  # they may look for their main module
            loader.exec_module(module)
    finally:
        sys.modules["__main__"] = before


@contextmanager
def _until_threads_end() -> Iterator[None]:
    """Wait for the threads that the program leaves running, as Python does at its end, while oplet still answers their imports."""
    before = set(threading.enumerate())
    try:
        yield
    finally:
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon:
                thread.join()


def _script(program: str) -> str:
    """The path of a script.

    Raises:
        ModelError: there is none, or it is no Python.
    """
    if os.path.exists(program):
        return program
    found = shutil.which(program)
    if found is None:
        raise ModelError(f"There is no program '{program}': give a script, the name of a command, or -m MODULE.")
    with open(found, "rb") as file:
        first = file.readline(200)
    if not (first.startswith(b"#!") and b"python" in first):
        raise ModelError(f"'{found}' is no script of Python, so oplet cannot answer its imports; give its module: -m MODULE.")
    return found


@contextmanager
def _as_main(path: str, arguments: Sequence[str], is_module: bool) -> Iterator[None]:
    """The command line and the first folder of modules as Python gives them to a program."""
    argv, folders = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(os.path.realpath(path))))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders
