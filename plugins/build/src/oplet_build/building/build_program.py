"""`oplet build --with-core`: from models to a wheel that runs alone, or to a program in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oplet import Model, PluginManager
from oplet_build.building.build_wheel import BuiltWheel, Prefer, cut_for
from oplet_build.building.error import BuildError
from oplet_build.building.packing.payload import INTERPRETER, Payload, make_payload, write_payload_wheel, write_pyz

__all__ = ["BuiltProgram", "build_program"]


@dataclass
class BuiltProgram(BuiltWheel):
    """A built wheel or program that includes the trimmed core.

    Attributes:
        path: the wheel or the program.
        cut: the package of kernels that was extracted for it.
        payload: the contents of the wheel or program.
    """

    payload: Payload

    @property
    def is_archive(self) -> bool:
        """Whether it is a .pyz file, which Python runs directly."""
        return self.path.suffix == ".pyz"

    @property
    def requires(self) -> list[str]:
        return [requirement for _, requirement in self.payload.requires]

    def as_dict(self) -> dict[str, Any]:
        """Return a dictionary of the build, for JSON."""
        told = super().as_dict()
        if self.is_archive:
            told["program"] = told.pop("wheel")
        told["core"] = sorted(path for path in self.payload.core if path.endswith(".py"))
        told["models"] = [{"name": name, "bytes": len(content)} for name, content in self.payload.models.items()]
        return told


def build_program(
    models: Iterable[Model | str | os.PathLike[str]],
    name: str,
    output: str | os.PathLike[str] = "dist",
    *,
    pyz: bool = False,
    with_models: bool = False,
    ops: Iterable[str] = (),
    all_codes: bool = False,
    types: bool = False,
    version: str = "1.0",
    keep_comments: bool = False,
    interpreter: str = INTERPRETER,
    bytecode: bool = True,
    plugins: PluginManager | None = None,
    prefer: Prefer = None,
) -> BuiltProgram:
    """Build a wheel or a program that runs models without oplet: it holds the kernels and the part of the core that they need.

    Args:
        name: the name of the kernels' package, as Python imports it.
        output: the folder to write into, or a file that ends in .pyz.
        pyz: make a program of one file rather than a wheel; an output that ends in .pyz implies it.
        with_models: include the models.
        ops: further ops to include, "CONV_2D" or with versions "CONV_2D:1-5".
        all_codes: include ops that are in the models' operator codes but that no node uses.
        types: let kernels accept only tensor types that these models use.
        version: the version of the wheel or program.
        keep_comments: copy the kernels' modules unchanged.
        interpreter: the Python interpreter in a program's first line (#!), "" for no such line.
        bytecode: include compiled modules in a program.
        plugins: the plugins to extract kernels from; by default all installed ones.
        prefer: plugins to take where several have kernels for an op: names, or a mapping of op names to names.

    Raises:
        BuildError: the name or version is invalid, kernels cannot be extracted, hatchling is missing, or a model cannot be included.
        OpNotFoundError, UnresolvedOpError: no installed package has a kernel for an op of the models.
    """
    opened, found = cut_for(
        models, name, ops, all_codes, keep_comments=keep_comments, types=types, plugins=plugins, prefer=prefer
    )
    if with_models and not opened:
        raise BuildError("There is no model to take along; name one, or build without --with-model.")
    for path, package in found.libraries.items():
        ops = ", ".join(dict.fromkeys(kernel.op for kernel in found.kernels if kernel.distribution == package))
        raise BuildError(
            f"{ops} of {package} runs in the compiled library {os.path.basename(path)}, which a program cannot carry: what opens it "
            "needs the whole of oplet; build a wheel without --with-core."
        )
    target = Path(output)
    archive = pyz or target.suffix == ".pyz"
    payload = make_payload(
        found,
        version,
        models=opened,
        with_models=with_models,
        command=archive or with_models,
        any_custom_options=not archive,
    )
    if not archive:
        return BuiltProgram(write_payload_wheel(payload, found, target), found, payload)
    file = target if target.suffix == ".pyz" else target / f"{name}.pyz"
    return BuiltProgram(write_pyz(payload, file, interpreter=interpreter, bytecode=bytecode), found, payload)
