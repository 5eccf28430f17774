"""Diagnosis of a model: the operators that it needs, the packages that serve their nodes, and how to install those that are missing."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from oplet import Composite, Model, PluginManager, Registration
from oplet.errors import OpletError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Op, family_distribution, known_distribution, verify
from oplet.versions.runtime_version import first_runtime
from oplet_tools.describing.operators import composite_of, version_of
from oplet_tools.describing.verdicts import Verdict, try_model

__all__ = ["Diagnosis", "Examination", "examine"]


class Diagnosis(NamedTuple):
    """One operator of a model, in one version, and what provides its kernel."""

    op: str  #: The operator's name.
    version: int  #: The version of the op in the model.
    custom: bool  #: Whether it is a custom op.
    nodes: int  #: The number of nodes that use it.
    provided: str  #: The versions that installed packages have kernels for, "" if none.
    #: The package whose kernel would run it, with its compiled library, its limits, and the packages that serve nodes beyond
    #: them; or the package of the delegate that claims its nodes; "" if a node has no kernel.
    provider: str
    first_runtime: str  #: The first LiteRT or TensorFlow Lite release that runs it, "" if not known.
    fix: str  #: What to install, or why no kernel takes a node of it, as text; "" if all its nodes have kernels.
    composite: bool = False  #: Whether it is a composite; if it has no kernel, `provider` is that of STABLEHLO_COMPOSITE.
    package: str = ""  #: The package of this project to install, "" if a kernel is installed or no package is known.
    refused: bool = False  #: Whether a kernel that serves the op refuses a node of it, with the shapes that the file has.

    @property
    def is_served(self) -> bool:
        """Whether every node of the operator has a kernel or a delegate."""
        return bool(self.provider) and not self.refused


class Examination(NamedTuple):
    """What `examine` finds."""

    operators: list[Diagnosis]  #: The operators, in the order in which the model uses them.
    error: str  #: Why the model cannot be prepared, if no single operator is the cause; "" if it can be.


def examine(path: str | os.PathLike[str] | Model, manager: PluginManager) -> Examination:
    """Prepare a model, and diagnose every operator: which package serves its nodes, or what to install.

    Args:
        path: the model's file, or an open model.

    Raises:
        ModelError: the file cannot be read.
    """
    model = path if isinstance(path, Model) else Model.open(path)
    verify(model)
    trial = try_model(model, manager)
    uses: dict[tuple[Op, int], int] = {}
    verdicts: dict[tuple[Op, int], list[Verdict]] = {}
    for number, subgraph in enumerate(model.root.subgraphs or []):
        for place, operator in enumerate(subgraph.operators or []):
            op, name, version = model.op_of(operator)
            key: tuple[Op, int] = (name if op is BuiltinOperator.CUSTOM else op, version)
            uses[key] = uses.get(key, 0) + 1
            if (verdict := trial.verdicts.get((number, place))) is not None:
                verdicts.setdefault(key, []).append(verdict)
            if (composite := composite_of(operator)) is not None:
                whole = composite, version_of(operator)
                uses[whole] = uses.get(whole, 0) + 1
    found = [_diagnosis(op, version, count, verdicts.get((op, version), ()), manager) for (op, version), count in uses.items()]
    found = [
        each._replace(refused=True, fix=reason) if (reason := _refusal(each, trial.refused)) and not each.composite else each
        for each in found
    ]
    # Where one op needs the package that serves its whole family, the others of the family need no other one.
    families = {each.package for each in found if each.package and each.custom and each.package == family_distribution(each.op)}
    explained = any(not each.is_served for each in found)
    return Examination([_by_family(each, families, manager) for each in found], "" if explained else trial.error)


def _refusal(diagnosis: Diagnosis, refused: Mapping[tuple[str, int], str]) -> str:
    return refused.get((diagnosis.op, diagnosis.version), "") if diagnosis.provider else ""


def _by_family(diagnosis: Diagnosis, families: Container[str], manager: PluginManager) -> Diagnosis:
    package = family_distribution(diagnosis.op) if diagnosis.custom and diagnosis.package else ""
    if package in families and package != diagnosis.package:
        return diagnosis._replace(package=package, fix=manager.advice(diagnosis.op, package))
    return diagnosis


def _diagnosis(op: Op, version: int, nodes: int, verdicts: Sequence[Verdict], manager: PluginManager) -> Diagnosis:
    name, custom, composite = op if isinstance(op, str) else op.name, isinstance(op, str), isinstance(op, Composite)
    release = "" if custom or composite else first_runtime(name, version) or ""
    try:
        provided, provider, fix = _served(op, version, verdicts, manager)
    except OpletError as error:  # a conflict between packages, or a kernel that cannot be imported
        return Diagnosis(name, version, custom, nodes, "", "", release, str(error), composite)
    package = ""
    if not provider and not fix:
        fix, package = manager.advice(op), known_distribution(op)
    return Diagnosis(name, version, custom, nodes, provided, provider, release, "" if provider else fix, composite, package)


def _served(op: Op, version: int, verdicts: Sequence[Verdict], manager: PluginManager) -> tuple[str, str, str]:
    """Return the versions in which an op is provided, what serves its nodes ("" if nothing serves one of them), and why nothing does
    where that is known of the node.
    """
    resolver = manager.resolver()
    served = resolver.versions(op)
    provided = "" if not served else str(served[0]) if len(served) == 1 else f"{served[0]} to {served[-1]}"
    if resolver.find_op(op, version) is not None:
        return provided, _providers(resolver.candidates(op, version)), ""
    if isinstance(op, Composite):
        decomposed = resolver.find_op(BuiltinOperator.STABLEHLO_COMPOSITE, 1)
        return provided, "" if decomposed is None else f"{decomposed.provenance} (its decomposition)", ""
    if any(not verdict.provider for verdict in verdicts):
        return provided, "", next((_sentence(verdict.why) for verdict in verdicts if verdict.why and not verdict.provider), "")
    return provided, ", ".join(dict.fromkeys(verdict.provider for verdict in verdicts)), ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _providers(chain: Iterable[Registration]) -> str:
    """List the packages with a kernel for an op, in order, each with its limits; nodes beyond these go to the next package."""
    told = []
    for registration in chain:
        limits = "" if registration.limits is None else f" ({registration.limits})"
        told.append(f"{registration.source}{limits}")
        if not limits:
            break
    return ", else ".join(told)
