"""Advice in error messages: which package to install, upgrade or enable for an op that no plugin serves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oplet.ops.serving.registration import Op, op_label
from oplet.plugins.custom_op_makers import maker_of
from oplet.plugins.known_packages import NATIVE_OPS, known_delegate, known_distribution, package_origin
from oplet.plugins.plugin import Plugin
from oplet.plugins.selection import normalised
from oplet.texts import version_ranges

if TYPE_CHECKING:
    from oplet.delegates.registry import DelegateEntry

__all__ = ["advice", "delegate_advice", "no_loader", "no_opener"]


def advice(op: Op, plugins: Sequence[Plugin], delegate: DelegateEntry | None = None, package: str = "") -> str:
    """Return advice, in one line, on how to get an op; it also names plugins that may have it but did not load.

    Args:
        op: an op that no plugin serves in the version that a model needs.
        plugins: all plugins that were found; those that may load have registered their ops.
        delegate: the delegate that exists for it, if one is installed.
        package: the package to advise; "" for the one that is known to provide the op.
    """
    if delegate is not None:
        return (
            f"The delegate {delegate.name} of {delegate.provenance} serves it in interpreters; where there are kernels alone, as in a "
            "build, or where that delegate leaves a node alone, nothing does."
        )
    package = package or known_distribution(op)
    sentences = [_serving(op, plugins) or _installing(op, package, plugins)]
    blocked: dict[str, list[Plugin]] = {}
    for plugin in plugins:
        if normalised(package) in plugin.names:
            continue  # it has a sentence already
        if plugin.state == "broken":
            sentences.append(f"Plugin '{plugin.name}' of {plugin} may have brought it, but is broken: {plugin.error}.")
        elif plugin.state == "blocked":
            blocked.setdefault(plugin.error, []).append(plugin)
    for reason, found in blocked.items():
        names = ", ".join(plugin.name for plugin in found)
        several, one = f"The plugins {names} may bring it, but are", f"Plugin '{names}' of {found[0]} may bring it, but is"
        sentences.append(f"{several if found[1:] else one} {reason}.")
    return " ".join(filter(None, sentences))


def no_opener(path: str, plugins: Sequence[Plugin]) -> str:
    """Explain in one sentence why no plugin opens a library of operators, and what to do about it.

    Args:
        path: the file.
        plugins: all plugins that were found.
    """
    if why := _native_ops_missing(plugins, "compiled operators run", "runs compiled operators"):
        return f"'{path}' cannot be opened: {why}."
    if not os.path.exists(path):
        return f"There is no file '{path}'; give a shared library (.so) of operators."
    return f"'{path}' is of no kind that an installed plugin opens; give a shared library (.so) of operators."


def delegate_advice(name: str) -> str:
    """Return which package of the directory brings a delegate that is not installed, and how to install it; "" if none is known. The result
    ends a sentence.
    """
    package = known_delegate(name)
    if not package:
        return ""
    from oplet.plugins.install_commands import install_command

    return f"{package} brings it and is not installed, or is switched off; install it: {install_command(package)}"


def no_loader(plugins: Sequence[Plugin]) -> str:
    """Explain why no plugin loads delegates that are shared libraries, and what to do about it; the result ends a sentence.

    Args:
        plugins: all plugins that were found; those that may load have registered their delegates.
    """
    why = _native_ops_missing(plugins, "delegate libraries run", "loads delegate libraries")
    return why or f"{NATIVE_OPS}, which loads delegate libraries, registered no loader; update it"


def _native_ops_missing(plugins: Sequence[Plugin], needs: str, does: str) -> str:
    """Explain why oplet-native-ops, which runs shared libraries, is missing or broken, and what to do; empty if it works.

    Args:
        plugins: all plugins that were found.
        needs: what needs the package, with its verb: "compiled operators run".
        does: what the package does: "runs compiled operators".
    """
    runner = next((plugin for plugin in plugins if normalised(NATIVE_OPS) in plugin.names), None)
    if runner is None:
        from oplet.plugins.install_commands import install_command

        return f"{needs} with {NATIVE_OPS}, which is not installed: {install_command(NATIVE_OPS)}"
    if runner.state not in ("broken", "blocked"):
        return ""
    broken = runner.state == "broken"
    return f"{runner}, which {does}, is {'broken: ' if broken else ''}{runner.error}{f'; {runner.remedy()}' if broken else ''}"


def _serving(op: Op, plugins: Sequence[Plugin]) -> str:
    """Return advice for an op that is served in other versions only; "" if it is not served at all."""
    served = [
        (plugin, versions)
        for plugin in plugins
        # A build for certain models has no newer release with more versions.
        if plugin.tier != "selection" and plugin.ops is not None and (versions := plugin.ops.versions(op))
    ]
    if not served:
        return ""
    who = " and ".join(f"{plugin} serves {op_label(op)} in {version_ranges(versions)}" for plugin, versions in served)
    packages = dict.fromkeys(plugin.distribution for plugin, _ in served if plugin.distribution)
    from oplet.plugins.install_commands import install_command  # imported late: only for advice

    commands = " or ".join(install_command(package, upgrade=True) for package in packages)
    return f"{who}; a newer release may serve more: {commands}." if commands else f"{who}."


def _installing(op: Op, package: str, plugins: Sequence[Plugin]) -> str:
    """Return advice for an op that no loaded plugin serves in any version: which package to install or enable."""
    label = op_label(op)
    if not package:
        if isinstance(op, str) and (maker := maker_of(op)) is not None:
            return maker.sentence(op)
        close = (
            f"{p} brings '{e.op}'. " for p in plugins if p.ops for e in p.ops.entries() if str(e.op).lower() == str(op).lower()
        )
        return next(close, "") + (
            f"No package that brings {label} is known; write one ('oplet new-op NAME' begins it), register the op with "
            f"MutableOpResolver.add_custom, or name a compiled library that has it (--custom-op-library, with {NATIVE_OPS})."
        )
    plugin = next((p for p in plugins if normalised(package) in p.names), None)
    from oplet.plugins.install_commands import install_command

    if plugin is None:
        return f"Install the package that brings {label} ({package_origin(package)}): {install_command(package)}."
    if plugin.state == "broken":
        return f"{plugin}, which brings {label}, is installed but broken: {plugin.error}; {plugin.remedy()}."
    if plugin.state == "blocked":
        return f"{plugin}, which brings {label}, is installed but {plugin.error}."
    return f"{plugin} is installed but does not bring {label}; a newer one may: {install_command(package, upgrade=True)}."
