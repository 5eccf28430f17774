"""`oplet build`: makes a wheel of only those kernels that some models need."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oplet import Model, PluginManager
from oplet.toolkit import Preference
from oplet_build.building.cutting.cut_kernels import CutPackage, cut_kernels
from oplet_build.building.error import BuildError
from oplet_build.building.packing.wheel import requirements, write_wheel
from oplet_build.selection.needs import needs_of

__all__ = ["BuiltWheel", "Prefer", "build_wheel", "cut_for"]

#: Preferred plugins, for ops that several plugins serve.
Prefer = str | Iterable[str] | Mapping[str, str] | Preference | None


@dataclass
class BuiltWheel:
    """A built wheel."""

    path: Path
    cut: CutPackage  #: The package of extracted kernels that is in it.

    @property
    def requires(self) -> list[str]:
        """Requirements of the wheel, in pip's notation."""
        return requirements(self.cut)

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of the build, for JSON."""
        kernels = [
            {
                "op": k.op,
                "custom": k.custom,
                "composite": k.composite,
                "min_version": k.min_version,
                "max_version": k.max_version,
                "from": k.distribution,
                **({"fallback": True} if k.fallback else {}),
            }
            for k in self.cut.kernels
        ]
        sources = [{"name": s.name, "version": s.version, "license": s.license} for s in self.cut.sources]
        return {
            "wheel": str(self.path),
            "bytes": self.path.stat().st_size,
            "ops": kernels,
            "sources": sources,
            "requires": self.requires,
            "passed_over_sentences": [each.as_dict() for each in self.cut.passed_over],
            "modules": sorted(self.cut.modules.values()),
            "libraries": sorted(self.cut.libraries),
        }


def build_wheel(
    models: Iterable[Model | str | os.PathLike[str]],
    name: str,
    directory: str | os.PathLike[str] = "dist",
    *,
    ops: Iterable[str] = (),
    all_codes: bool = False,
    types: bool = False,
    version: str = "1.0",
    keep_comments: bool = False,
    plugins: PluginManager | None = None,
    prefer: Prefer = None,
) -> BuiltWheel:
    """Build a wheel that holds only the kernels that these models need, extracted from the installed op packages.

    The models run with oplet and this wheel alone; other ops have no kernel then.

    Args:
        name: the package's name in Python; its pip name has "-" for "_".
        directory: the folder to write the wheel into.
        ops: further ops to include, "CONV_2D" or with versions "CONV_2D:1-5".
        all_codes: include ops that are in the models' operator codes but that no node uses.
        types: let kernels accept only tensor types that these models use.
        keep_comments: copy needed modules unchanged; by default without docstrings, comments and type-checking code.
        plugins: the plugins to extract kernels from; by default all installed ones.
        prefer: plugins to take where several have kernels for an op, whatever they require: names, or a mapping of op names to names.

    Raises:
        BuildError: the name or version is invalid, kernels cannot be extracted, or hatchling is missing.
        OpNotFoundError, UnresolvedOpError: no installed package has a kernel for an op of the models.
    """
    _, found = cut_for(models, name, ops, all_codes, keep_comments=keep_comments, types=types, plugins=plugins, prefer=prefer)
    return BuiltWheel(write_wheel(found, version, Path(directory)), found)


def cut_for(
    models: Iterable[Model | str | os.PathLike[str]],
    name: str,
    ops: Iterable[str],
    all_codes: bool,
    *,
    plugins: PluginManager | None,
    prefer: Prefer,
    **how: bool,
) -> tuple[list[Model], CutPackage]:
    """Open models and extract the kernels that they need; the arguments are those of `build_wheel`."""
    opened = [each if isinstance(each, Model) else Model.open(each) for each in models]
    needs = needs_of(opened, ops=ops, all_codes=all_codes)
    if not needs:
        raise BuildError("These models have no operators, so there is nothing to build; name some with --op.")
    manager, preference = PluginManager() if plugins is None else plugins, Preference.read(prefer)
    return opened, cut_kernels(needs, name, manager, prefer=preference, models=opened, **how)
