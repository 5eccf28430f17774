"""Processes that a program starts with multiprocessing: they get the hooks of the program, whichever way they are started.

Forked ones have them already. Those that are spawned, or forked by a server, are new interpreters of Python, which read what to prepare from
a pickle; what is added to it opens the hooks there before the program's module is imported again.
"""

from __future__ import annotations

import multiprocessing.spawn
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["HookInstaller", "install_in_child_processes"]

_KEY = "oplet_behind"


class HookInstaller:
    """Opens the hooks in the process that unpickles it.

    Args:
        blocked: names of plugins to leave out.
        delegates: for interpreters that the program gives none.
        num_threads: for interpreters that the program gives no number.
        tensorflow: answer `tensorflow.lite` also where TensorFlow is not installed.
    """

    def __init__(self, blocked: Sequence[str], delegates: Sequence[str], num_threads: int | None, tensorflow: bool) -> None:
        self._arguments = (tuple(blocked), tuple(delegates), num_threads, tensorflow)

    def __reduce__(self) -> tuple[Any, ...]:
        return _install_hooks, self._arguments


def _install_hooks(blocked: Sequence[str], delegates: Sequence[str], num_threads: int | None, tensorflow: bool) -> None:
    """Open the hooks until the process ends."""
    from oplet.plugins.manager import PluginManager
    from oplet.tools.behind.import_hooks import intercept_imports
    from oplet.tools.behind.litert_names import UsageReport, litert_names, plugin_packages

    plugins = PluginManager().without(blocked)
    hooks = intercept_imports(
        litert_names(UsageReport(), plugins, delegates, num_threads), plugin_packages(), without_tensorflow=tensorflow
    )
    hooks.__enter__()
    _ACTIVE_HOOKS.append(hooks)


#: What keeps the hooks of this process open.
_ACTIVE_HOOKS: list[Any] = []


@contextmanager
def install_in_child_processes(opener: HookInstaller) -> Iterator[None]:
    """Have processes that are spawned meanwhile open the hooks too."""
    usual = multiprocessing.spawn.get_preparation_data

    def prepared(name: str) -> dict[str, Any]:
        return {_KEY: opener, **usual(name)}

    multiprocessing.spawn.get_preparation_data = prepared
    try:
        yield
    finally:
        multiprocessing.spawn.get_preparation_data = usual
