"""`oplet build --with-core`: a program in one file, with the kernels, the core that runs them and, if wanted, the models."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import oplet
from oplet.model.model import Model
from oplet.schema.enums import TensorType
from oplet.tools.building.cutting.cut_core import cut_core, strip_source
from oplet.tools.building.cutting.cut_kernels import CutPackage
from oplet.tools.building.distributions import Distribution, distribution
from oplet.tools.building.error import BuildError
from oplet.tools.building.packing.archive import write_archive
from oplet.tools.building.packing.bytecode import LOADER, compiled
from oplet.tools.building.packing.program_modules import contents_module, licence_files, main_module
from oplet.tools.building.packing.wheel import CoreParts, write_wheel

__all__ = ["INTERPRETER", "Program", "program", "write_bundle_wheel", "write_program"]

#: What the first line of a program names.
INTERPRETER = "/usr/bin/env python3"

_MODELS = "models"
_NEEDS_ML_DTYPES = (TensorType.BFLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)


@dataclass(frozen=True)
class Program:
    """Everything that goes into a program or into a wheel with the core.

    Attributes:
        name: what it is called.
        version: its version.
        core: the files of the trimmed core.
        kernels: the files of the package of kernels.
        models: the models' bytes, by name.
        requires: module and requirement of each package that must be installed beside it.
        sources: the pip packages that parts of it come from.
    """

    name: str
    version: str
    core: dict[str, bytes]
    kernels: dict[str, bytes]
    models: dict[str, bytes] = field(default_factory=dict)
    requires: tuple[tuple[str, str], ...] = ()
    sources: tuple[Distribution, ...] = ()

    def contents(self, headers: Mapping[str, int] | None) -> bytes:
        """`oplet/app.py`; `headers` as for `contents_module`."""
        models = {name: (self.model_file(name), len(content)) for name, content in self.models.items()}
        beyond_numpy = [(module, package) for module, package in self.requires if module != "numpy"]
        return contents_module(self.name, self.version, models, beyond_numpy, headers)

    @staticmethod
    def model_file(name: str) -> str:
        """Where a model lies in the program."""
        return f"oplet/{_MODELS}/{name}.tflite"


def program(
    cut: CutPackage,
    version: str,
    *,
    models: Sequence[Model] = (),
    with_models: bool = False,
    command: bool = True,
    any_custom_options: bool = False,
) -> Program:
    """Put kernels and core together.

    Args:
        cut: the kernels.
        version: the program's version.
        models: the models that it was made for.
        with_models: take them along.
        command: it has a command line.
        any_custom_options: keep what reads custom options even if these kernels do not.

    Raises:
        BuildError: a model cannot be taken along, or an installed package is not as it should be.
    """
    name = cut.name.replace("_", "-")
    reads_options = any(b"flatbuffers" in text for text in cut.files.values())
    kernels = {path: _with_vendored(path, text) for path, text in cut.files.items()}
    core = cut_core(
        kernels,
        package=cut.name,
        distribution=name,
        version=version,
        program=command,
        custom_options=any_custom_options or reads_options,
    )
    sources = {source.name: source for source in (*cut.sources, distribution("oplet"), distribution("flatbuffers"))}
    return Program(
        name=name,
        version=version,
        core=core,
        kernels=kernels,
        models=_named(models) if with_models else {},
        requires=_requires(cut, models, sources["oplet"]),
        sources=tuple(_with_licence(source, sources["oplet"]) for source in sources.values()),
    )


def write_program(made: Program, target: Path, *, interpreter: str = INTERPRETER, bytecode: bool = True) -> Path:
    """Write a program as a .pyz; the same program and Python give the same bytes.

    Args:
        made: the program.
        target: the file.
        interpreter: what its first line names, "" for no such line.
        bytecode: also put in compiled modules for the Python that runs this, so that it starts faster there.

    Raises:
        BuildError: something in it does not compile.
        OSError: the file cannot be written.
    """
    numpy = dict(made.requires)["numpy"]
    sources = {**made.core, **made.kernels, "__main__.py": main_module(made.name, numpy)}

    def files(headers: Mapping[str, int]) -> dict[str, bytes]:
        modules = {**sources, "oplet/app.py": made.contents(headers)}
        if bytecode:
            modules |= compiled(modules)
            # Whoever imports oplet finds the compiled modules from then on, and the program does so first.
            modules["oplet/__init__.py"] += f"import {LOADER}\n".encode()
        return {**modules, **licence_files("licenses", made.sources)}

    models = {made.model_file(name): content for name, content in made.models.items()}
    write_archive(target, models, files, interpreter)
    return target


def write_bundle_wheel(made: Program, cut: CutPackage, directory: Path) -> Path:
    """Write a wheel that holds the core too; where it has models, it brings a command that runs them.

    Args:
        made: the program.
        cut: what it was made of.
        directory: the folder to write into.

    Raises:
        BuildError: as `write_wheel` does.
    """
    files = {**made.core, **made.kernels}
    command = ""
    if made.models:
        files |= {made.model_file(name): content for name, content in made.models.items()}
        files["oplet/app.py"] = made.contents(None)
        command = "oplet.app:main"
    requires = tuple(requirement for _, requirement in made.requires)
    return write_wheel(cut, made.version, directory, CoreParts(files, requires, made.sources, command))


def _named(models: Sequence[Model]) -> dict[str, bytes]:
    """The models' bytes by the names of their files; of files with one name, with their folders'."""
    stems = [Path(model.path).stem if model.path else "model" for model in models]
    named: dict[str, bytes] = {}
    for model, stem in zip(models, stems):
        if model.root.external_buffer_groups:
            raise BuildError(
                f"{model.name} keeps constants in other files; a program takes models of one file (write it with the constants inside)."
            )
        folder = Path(os.path.abspath(model.path)).parent.name if model.path else ""
        name = re.sub(r"[^A-Za-z0-9_.+-]", "_", stem if stems.count(stem) == 1 else f"{folder}-{stem}")
        if name in named and named[name] != bytes(model.data):
            raise BuildError(f"Two models would be called '{name}'; {model.name} is one of them. Rename it.")
        named[name] = bytes(model.data)
    return named


def _requires(cut: CutPackage, models: Iterable[Model], core: Distribution) -> tuple[tuple[str, str], ...]:
    """The compiled packages that must be there: numpy, ml_dtypes for models of its types, and what kernels import."""
    known: dict[str, str] = {}
    for source in (*cut.sources, core):  # the core's words go before those of others
        for text in source.requires:
            requirement = text.partition(";")[0].strip()
            known[_normalised(re.split(r"[\s<>=!~\[(]", requirement, maxsplit=1)[0])] = requirement
    carried = {"oplet", "flatbuffers", *sys.stdlib_module_names}
    modules = {"numpy"} | (cut.external - carried)
    tensors = (tensor for model in models for graph in model.root.subgraphs or [] for tensor in graph.tensors or [])
    if any(tensor.type in _NEEDS_ML_DTYPES for tensor in tensors):
        modules.add("ml_dtypes")
    return tuple((module, known.get(_normalised(module), module)) for module in sorted(modules))


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _with_vendored(path: str, content: bytes) -> bytes:
    """A kernel's module with the flatbuffers that the core brings, where it uses one."""
    if not path.endswith(".py") or b"flatbuffers" not in content:
        return content
    return f"{strip_source(ast.parse(content))}\n".encode()


def _with_licence(source: Distribution, core: Distribution) -> Distribution:
    """The package with the text of its licence: of packages that carry none but are under oplet's, oplet's."""
    if source.license_files:
        return source
    if source.name == "flatbuffers":
        source = replace(source, license="Apache-2.0")  # its metadata says so in other words
    if source.license != core.license:
        return source
    files = core.license_files or _licence_beside_source()
    return replace(source, license_files=files)


def _licence_beside_source() -> tuple[tuple[str, bytes], ...]:
    """The licence of an oplet that runs from its repository."""
    for folder in Path(oplet.__file__).resolve().parents[1:4]:
        file = folder / "LICENSE"
        if file.is_file():
            return ((file.name, file.read_bytes()),)
    return ()
