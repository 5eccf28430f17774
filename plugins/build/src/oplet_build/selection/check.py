"""Checks models and installed packages against a lock file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from oplet import Composite, Model, OpResolver, Registration
from oplet.schema.enums import TensorType
from oplet.toolkit import API_VERSION, ResolverEntry, install_command, known_distribution
from oplet_build.selection.lock import Lock, LockedOp, LockError, hash_of, installed
from oplet_build.selection.needs import Key, NodeNeed, node_needs

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["Problem", "check_installed", "check_models"]


@dataclass(frozen=True)
class Problem:
    """A difference between a lock file and the models or installed packages."""

    #: What differs: for models "op", "version" or "type"; for installed packages "oplet", "api", "missing", "version", "hash",
    #: "served" or "library".
    kind: str
    text: str  #: A sentence that describes it.
    name: str  #: The op, or the distribution.
    model: str = ""  #: The model, "" if it concerns none.
    subgraph: int = -1  #: The subgraph of the first node concerned, -1 if it concerns none.
    node: int = -1  #: The index of that node.

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary, for JSON."""
        return asdict(self)


def check_models(lock: Lock, models: Iterable[Model], *, all_codes: bool = False) -> list[Problem]:
    """Return what models need that the lock does not have: for each op, version and type, the first node that needs it.

    Raises:
        ModelError: a model is invalid.
    """
    versions: dict[Key, set[int]] = {}
    types: dict[Key, set[TensorType]] = {}
    for op in lock.ops:
        versions.setdefault(op.key, set()).update(op.versions)
        types.setdefault(op.key, set()).update(op.types or TensorType)
    problems: dict[tuple[str, Key, object, str], Problem] = {}
    for model in models:
        for need in node_needs(model, all_codes=all_codes):
            key = need.key
            if need.composite and key not in versions and not known_distribution(Composite(need.name)):
                continue  # no provider is locked: its decomposition runs, whose ops are separate needs
            for kind, value, reason in _lacking(need, versions.get(key), types.get(key)):
                where = f"Node {need.node} ({need.name}) of subgraph {need.subgraph} of {model.name}"
                problem = Problem(kind, f"{where} {reason}", need.name, model.name, need.subgraph, need.node)
                problems.setdefault((kind, key, value, model.name), problem)
    return list(problems.values())


def _lacking(need: NodeNeed, versions: set[int] | None, types: set[TensorType] | None) -> Iterator[tuple[str, object, str]]:
    if versions is None or types is None:
        yield "op", None, f"needs {need.name} version {need.version}, and the lock has no {need.name}."
        return
    if need.version not in versions:
        has = ", ".join(map(str, sorted(versions)))
        plural = "s" if len(versions) > 1 else ""
        yield "version", need.version, f"needs {need.name} version {need.version}, and the lock has version{plural} {has}."
    for type in need.types:
        if type not in types:
            has = ", ".join(t.name for t in sorted(types))
            yield "type", type, f"needs {need.name} for {type.name}, and the lock has it for {has}."


def check_installed(lock: Lock, plugins: PluginManager | None = None, prefer: Iterable[str] | None = None) -> list[Problem]:
    """Return the differences between the installed distributions and those in the lock.

    Args:
        plugins: if given, also check whether another package's kernel would now run an op; None to leave that out.
        prefer: plugins to take first where several have kernels for an op.
    """
    from oplet import __version__

    problems = []
    if lock.oplet != __version__:
        text = f"oplet {__version__} is installed, and the lock has {lock.oplet}: {install_command('oplet-core', version=lock.oplet)}."
        problems.append(Problem("oplet", text, "oplet"))
    if lock.api != API_VERSION:
        text = f"This oplet speaks plugin API {API_VERSION}, and the lock has {lock.api}."
        problems.append(Problem("api", text, "oplet"))
    for locked in lock.distributions:
        name, pin = locked.name, install_command(locked.name, version=locked.version)
        found = installed(name)
        if found is None:
            problems.append(Problem("missing", f"{name} is not installed, and the lock has {locked.version}: {pin}.", name))
            continue
        if found.version != locked.version:
            text = f"{name} {found.version} is installed, and the lock has {locked.version}: {pin}."
            problems.append(Problem("version", text, name))
        if found.hash != locked.hash:
            text = f"The code of {name} {found.version} has the hash {found.hash}, and the lock has {locked.hash}."
            problems.append(Problem("hash", text, name))
    if plugins is not None:
        problems.extend(_served_by_others(lock, plugins.resolver(prefer)))
    return problems


def _served_by_others(lock: Lock, resolver: OpResolver) -> Iterator[Problem]:
    for op in lock.ops:
        if op.fallback:
            continue
        wanted = set(op.versions)
        entries = [e for e in resolver.entries(op.op) if wanted.intersection(range(e.min_version, e.max_version + 1))]
        for entry in entries:
            there = entry.provenance.distribution
            if there != op.distribution:
                locked = f"{op.distribution} ({op.library})" if op.library else op.distribution
                text = f"{op.name} is served by {entry.provenance} now, and the lock has it from {locked}."
                yield Problem("served", text, there)
            elif text := _other_library(op, entry):
                yield Problem("library", text, op.name)
        if op.library and not entries:
            text = (
                f"{op.name} is served by nobody now, and the lock has it in the library {op.library}; if no package brings that, name "
                f"it: --custom-op-library {op.library}."
            )
            yield Problem("library", text, op.name)


def _other_library(op: LockedOp, entry: ResolverEntry) -> str:
    """Say in a sentence how the compiled library of an op's kernel differs from the one in the lock; "" where it does not."""
    if not op.library and not isinstance(entry.target, Registration):
        return ""  # a kernel that is imported by its name, which is not done to tell this
    path = entry.load(entry.min_version).library
    name = os.path.basename(path)
    if name != op.library:
        return f"{op.name} is served by {name or 'no compiled library'} now, and the lock has it in {op.library or 'none'}."
    try:
        found = hash_of(path) if path else ""
    except LockError as error:
        return str(error)
    return "" if found == op.library_hash else f"The library {name} has the hash {found}, and the lock has {op.library_hash}."
