"""Import hooks in processes that a program starts with multiprocessing, whatever the start method.

Forked processes inherit the hooks. Spawned ones, and those of a fork server, are new Python interpreters that unpickle preparation data first:
a `HookInstaller` is added to these data, and installs the hooks before the program's main module is imported again.
"""

from __future__ import annotations

import multiprocessing.spawn
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["HookInstaller", "install_in_child_processes"]

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
