"""Launch a program in this process with the import hooks installed, and report what its interpreters ran.

Processes that it forks inherit the hooks. Spawned ones, and those of a fork server, are new Python interpreters that unpickle preparation data first:
a `HookInstaller` is added to these data, and installs the hooks before the program's main module is imported again.
"""

from __future__ import annotations

import builtins
import multiprocessing.spawn
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
from oplet_tools.behind.import_hooks import intercept_imports
from oplet_tools.behind.litert_names import UsageReport, litert_names, plugin_packages
from oplet_tools.running.delegates import check_delegates

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["UsageReport", "run_behind"]

_KEY = "oplet_behind"


class HookInstaller:
    """Installs the import hooks in the process that unpickles it.

    Args:
        blocked: names of plugins to leave out.
        delegates: specifications ("NAME:key=value") of the delegates of interpreters that the program makes without delegates.
        num_threads: number of threads of interpreters that the program makes without one; None for oplet's default.
        tensorflow: provide a substitute of `tensorflow.lite` if TensorFlow is not installed.
    """

    def __init__(self, blocked: Sequence[str], delegates: Sequence[str], num_threads: int | None, tensorflow: bool) -> None:
        self._arguments = (tuple(blocked), tuple(delegates), num_threads, tensorflow)

    def __reduce__(self) -> tuple[Any, ...]:
        return _install_hooks, self._arguments


def _install_hooks(blocked: Sequence[str], delegates: Sequence[str], num_threads: int | None, tensorflow: bool) -> None:
    """Install the import hooks in this process until it ends; the arguments are the fields of `HookInstaller`."""
    from oplet import PluginManager
    from oplet_tools.behind.import_hooks import intercept_imports
    from oplet_tools.behind.litert_names import UsageReport, litert_names, plugin_packages

    plugins = PluginManager().without(blocked)
    hooks = intercept_imports(
        litert_names(UsageReport(), plugins, delegates, num_threads), plugin_packages(), without_tensorflow=tensorflow
    )
    hooks.__enter__()
    _ACTIVE_HOOKS.append(hooks)


#: The hooks of this process; they stay installed as long as they are referenced.
_ACTIVE_HOOKS: list[Any] = []


@contextmanager
def install_in_child_processes(opener: HookInstaller) -> Iterator[None]:
    """Make processes that are spawned while the `with` block runs unpickle `opener` first, which installs the hooks there."""
    usual = multiprocessing.spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        return {_KEY: opener, **usual(name)}

    multiprocessing.spawn.get_preparation_data = prepared
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = usual


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
    report: UsageReport | None = None,
) -> UsageReport:
    """Run a Python program in this process, with its imports of LiteRT's interpreter replaced by oplet.

    Args:
        program: a script, the name of a command that is a Python script, or with `is_module` a module's name.
        arguments: the program's arguments.
        is_module: run a module, as `python -m` does.
        plugins: the plugins that provide kernels and delegates.
        blocked: names of the plugins that are switched off in `plugins`, for processes that the program starts.
        delegates: delegates of interpreters that the program makes without any, as "NAME:key=value" each, or "auto" for the fastest engine.
        num_threads: number of threads of interpreters that the program makes without one; None for oplet's default.
        tensorflow: provide a substitute of `tensorflow.lite` if TensorFlow is not installed.
        report: the report to fill, also if the program fails; None for a new one.

    Returns:
        The report of the program's interpreters: models, kernels, replaced modules.

    Raises:
        ModelError: there is no such program.
        DelegateError: there is no such delegate.
        BaseException: any exception of the program, SystemExit included.
    """
    report = report or UsageReport()
    path = program if is_module else _script(program)
    check_delegates(delegates, plugins)
    names = litert_names(report, plugins, delegates, num_threads)
    opener = HookInstaller(blocked, delegates, num_threads, tensorflow)
    with (
        intercept_imports(names, plugin_packages(), without_tensorflow=tensorflow) as used,
        install_in_child_processes(opener),
        _as_main(path, arguments, is_module),
    ):
        try:
            with _join_threads():
                if is_module:
                    runpy.run_module(program, run_name="__main__", alter_sys=True)
                else:
                    _run_script(path)
        finally:
            report.answered, report.passed = list(used.answered), list(used.passed)
            report.refused = dict(used.refused)
    return report


class _Script(SourceFileLoader):
    """A loader of a script, whose bytecode is not cached: Python does not cache that of its main module either."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(path)


def _run_script(path: str) -> None:
    """Run a script as `__main__`, with the module attributes that Python sets; for a folder or archive, its `__main__.py`."""
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
        with _join_threads():  # threads may use the main module
            loader.exec_module(module)
    finally:
        sys.modules["__main__"] = before


@contextmanager
def _join_threads() -> Iterator[None]:
    """Wait at the end of the block for the threads that the program left running, as Python does; their imports are still
    intercepted.
    """
    before = set(threading.enumerate())
    try:
        yield
    finally:
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon:
                thread.join()


def _script(program: str) -> str:
    """Return the path of a script or of a command's script.

    Raises:
        ModelError: there is no such program, or it is not a Python script.
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
    """Set `sys.argv` and `sys.path[0]` as Python sets them for a program."""
    argv, folders = sys.argv, sys.path[:]
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.getcwd() if is_module else os.path.dirname(os.path.abspath(os.path.realpath(path))))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, folders
