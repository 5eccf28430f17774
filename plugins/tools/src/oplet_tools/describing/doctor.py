"""Diagnosis of a model: the operators that it needs, the packages that provide them, and how to install those that are missing."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

from oplet import Composite, Model, PluginManager, Registration
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Op, default_manager, family_distribution, known_distribution, verify
from oplet.versions.runtime_version import first_runtime
from oplet_tools.describing.composites import composite_of, version_of

__all__ = ["Diagnosis", "diagnose"]


class Diagnosis(NamedTuple):
    """One operator of a model, in one version, and what provides its kernel.

    Attributes:
        op: the operator's name.
        version: the version that the model asks for.
        custom: whether it is a custom op.
        nodes: the number of nodes that use it.
        provided: the versions that installed packages have kernels for, "" if none.
        provider: the package whose kernel would run it, with the kernel's compiled library, its declared limits and the packages
            for nodes beyond these; or the package of the delegate that exists for it; "" if none does.
        first_runtime: the first LiteRT or TensorFlow Lite release that runs it, "" if not known.
        fix: what to install, as text; "" if a kernel is installed.
        package: the package of this project to install, "" if a kernel is installed or no package is known.
        composite: whether it is a composite; without a kernel of its own, `provider` is that of STABLEHLO_COMPOSITE.
    """

    op: str
    version: int
    custom: bool
    nodes: int
    provided: str
    provider: str
    first_runtime: str
    fix: str
    composite: bool = False
    package: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name, for JSON."""
        return self._asdict()


def diagnose(path: str | os.PathLike[str], manager: PluginManager | None = None) -> list[Diagnosis]:
    """Diagnose every operator of a model: which package has the kernel for it, or what to install.

    Args:
        path: the model's file.
        manager: the plugins; all installed ones by default.

    Raises:
        ModelError: the file cannot be read.
    """
    manager = manager or default_manager()
    model = Model.open(path)
    verify(model)
    uses: dict[tuple[Op, int], int] = {}
    for subgraph in model.root.subgraphs or []:
        for operator in subgraph.operators or []:
            op, name, version = model.op_of(operator)
            key: tuple[Op, int] = (name if op is BuiltinOperator.CUSTOM else op, version)
            uses[key] = uses.get(key, 0) + 1
            if (composite := composite_of(operator)) is not None:
                whole = composite, version_of(operator)
                uses[whole] = uses.get(whole, 0) + 1
    found = [_diagnosis(op, version, count, manager) for (op, version), count in uses.items()]
    # Where one op needs the package that serves its whole family, the others of the family need no other one.
    families = {each.package for each in found if each.package and each.custom and each.package == family_distribution(each.op)}
    return [_by_family(each, families, manager) for each in found]


def _by_family(diagnosis: Diagnosis, families: Container[str], manager: PluginManager) -> Diagnosis:
    package = family_distribution(diagnosis.op) if diagnosis.custom and diagnosis.package else ""
    if package in families and package != diagnosis.package:
        return diagnosis._replace(package=package, fix=manager.advice(diagnosis.op, package))
    return diagnosis


def _diagnosis(op: Op, version: int, nodes: int, manager: PluginManager) -> Diagnosis:
    resolver = manager.resolver()
    name = op if isinstance(op, str) else op.name
    served = resolver.versions(op)
    provided = "" if not served else str(served[0]) if len(served) == 1 else f"{served[0]} to {served[-1]}"
    registration = resolver.find_op(op, version)
    provider = _providers(resolver.candidates(op, version)) if registration else ""
    if isinstance(op, Composite):
        if registration is None and (decomposed := resolver.find_op(BuiltinOperator.STABLEHLO_COMPOSITE, 1)) is not None:
            provider = f"{decomposed.provenance} (its decomposition)"
        fix, package = ("", "") if provider else (manager.advice(op), known_distribution(op))
        return Diagnosis(name, version, False, nodes, provided, provider, "", fix, True, package)
    if registration is None and isinstance(op, str) and (delegate := manager.delegate_for(op)) is not None:
        provider = f"{delegate.provenance} (delegate {delegate.name})"
    return Diagnosis(
        name,
        version,
        isinstance(op, str),
        nodes,
        provided,
        provider,
        ("" if isinstance(op, str) else first_runtime(name, version)) or "",
        "" if provider else manager.advice(op),
        package="" if provider else known_distribution(op),
    )


def _providers(chain: Iterable[Registration]) -> str:
    """List the packages with a kernel for an op, in order, each with its limits; nodes beyond these go to the next package."""
    told = []
    for registration in chain:
        limits = "" if registration.limits is None else f" ({registration.limits})"
        told.append(f"{registration.source}{limits}")
        if not limits:
            break
    return ", else ".join(told)
