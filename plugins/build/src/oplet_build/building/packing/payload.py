"""The payload of a program: kernels, the core that runs them and, if wanted, the models; written as a .pyz program or as a wheel.

Generated files of a program: `__main__.py`, `oplet/app.py` and the licences.
"""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import zipapp
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import oplet
from oplet import Model
from oplet.schema.enums import TensorType
from oplet.toolkit import atomic_write, normalised
from oplet_build.building.cutting.cut_core import PACKAGES, core_packages, cut_core, strip_source
from oplet_build.building.cutting.cut_kernels import CutPackage
from oplet_build.building.distributions import Distribution, distribution, licence_texts
from oplet_build.building.error import BuildError
from oplet_build.building.packing.bytecode import LOADER, compiled
from oplet_build.building.packing.wheel import CoreParts, write_wheel

__all__ = ["INTERPRETER", "Payload", "make_payload", "write_payload_wheel", "write_pyz"]

_MAIN = """\
import sys

if sys.version_info < (3, 10):
    sys.exit({name!r} + ": Python 3.10 or later is needed, this is " + sys.version.split()[0])
try:
    import numpy
except ModuleNotFoundError:
    sys.exit({name!r} + ': numpy is needed; install it: pip install "' + {numpy!r} + '"')
except ImportError as error:
    sys.exit({name!r} + ": numpy cannot be imported: " + " ".join(str(error).split())[:300])

if __name__ == "__main__":
    from oplet.app import main

    sys.exit(main())
"""

_CONTENTS = """\
import os

from oplet_build.standalone.contents import AppContents, AppModel
from oplet_build.standalone.main import main as run

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CONTENTS = AppContents(
    name={name!r},
    version={version!r},
    models=({models}),
    requires={requires!r},
    root=HERE,
    loader=__spec__.loader if {archive!r} else None,
)


def main(arguments=None):
    return run(CONTENTS, arguments)
"""


def main_module(name: str, numpy: str) -> bytes:
    """Return the source of an archive's `__main__.py`, which reports a missing numpy before it imports anything else.

    Args:
        name: the program's name.
        numpy: the requirement, in pip's notation.
    """
    return _MAIN.format(name=name, numpy=numpy).encode()


def contents_module(
    name: str,
    version: str,
    models: Mapping[str, tuple[str, int]],
    requires: Iterable[tuple[str, str]],
    headers: Mapping[str, int] | None,
) -> bytes:
    """Return the source of `oplet/app.py`: the program's contents and its `main`.

    Args:
        name: the program's name.
        version: the program's version.
        models: the path in the archive and the size in bytes of each model, by its name.
        requires: for each compiled package that the program needs besides numpy, the module and the pip requirement.
        headers: offsets of the models' zip headers in the archive, by path; None for a wheel.
    """
    entries = [
        f"\n        AppModel({model!r}, {file!r}, {size}, {(headers or {}).get(file, -1)}),"
        for model, (file, size) in models.items()
    ]
    text = _CONTENTS.format(
        name=name,
        version=version,
        models="".join(entries) + ("\n    " if entries else ""),
        requires=tuple(requires),
        archive=headers is not None,
    )
    return text.encode()


def licence_files(folder: str, sources: Iterable[Distribution]) -> dict[str, bytes]:
    """Return the licence files of the packages that code comes from, and the file SOURCES, which lists them, in `folder`."""
    sources = list(sources)
    texts = licence_texts(sources)
    where = {text: path for path, text in texts.items()}
    lines = ["This program holds parts of the following packages.", ""]
    for source in sources:
        files = [where[text] for _, text in source.license_files]
        lines.append(", ".join([f"{source.name} {source.version}: {source.license or 'licence not named'}", *files]))
    return {f"{folder}/{path}": text for path, text in texts.items()} | {f"{folder}/SOURCES": ("\n".join(lines) + "\n").encode()}


#: Alignment of a model's bytes in the archive, which keeps the alignment of its constants in the mapped file.
MODEL_ALIGNMENT = 64
_TIME = (1980, 1, 1, 0, 0, 0)
_LOCAL_HEADER_SIZE = 30
#: Identifier of a zip extra field that only pads: two bytes of identifier ("op") and two of size precede the padding.
_PADDING_NAME = b"op"


def write_archive(
    target: Path, models: Mapping[str, bytes], files: Callable[[Mapping[str, int]], Mapping[str, bytes]], interpreter: str
) -> None:
    """Write a program's archive; the same content gives the same bytes.

    Args:
        target: the file.
        models: the models by path in the archive; they come first, uncompressed and aligned.
        files: makes all other files, by path, from the offsets of the models' zip headers (counted after the interpreter line).
        interpreter: the interpreter in the first line (#!); "" for none.
    """
    buffer = io.BytesIO()
    prefix = len(f"#!{interpreter}\n".encode()) if interpreter else 0
    headers: dict[str, int] = {}
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in sorted(models.items()):
            headers[path] = buffer.tell()
            entry = _entry(path)
            begin = prefix + buffer.tell() + _LOCAL_HEADER_SIZE + len(path.encode())
            padding = -(begin + 4) % MODEL_ALIGNMENT
            entry.extra = _PADDING_NAME + padding.to_bytes(2, "little") + bytes(padding)
            archive.writestr(entry, content, zipfile.ZIP_STORED)
        for path, content in sorted(files(headers).items()):
            archive.writestr(_entry(path), content, zipfile.ZIP_DEFLATED, 9)
    buffer.seek(0)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target, executable=bool(interpreter)) as file:
        zipapp.create_archive(buffer, file, interpreter or None)


def _entry(path: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _TIME)
    entry.create_system = 3  # Unix, on every system, so that the bytes are the same
    entry.external_attr = 0o644 << 16
    return entry


#: The interpreter in a program's first line (#!).
INTERPRETER = "/usr/bin/env python3"

_MODELS = "models"
_NEEDS_ML_DTYPES = (TensorType.BFLOAT16, TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)


@dataclass(frozen=True)
class Payload:
    """Contents of a program, or of a wheel with the core."""

    name: str  #: The program's name.
    version: str  #: The program's version.
    core: dict[str, bytes]  #: Files of the trimmed core, by path.
    kernels: dict[str, bytes]  #: Files of the kernels' package, by path.
    models: dict[str, bytes] = field(default_factory=dict)  #: The models' bytes, by name.
    requires: tuple[tuple[str, str], ...] = ()  #: Module and pip requirement of each package that must be installed.
    sources: tuple[Distribution, ...] = ()  #: The pip packages that parts of it come from.

    def contents(self, headers: Mapping[str, int] | None) -> bytes:
        """Return the source of `oplet/app.py`; `headers` are the offsets in the archive of the models' zip headers, by path; None for a
        wheel.
        """
        models = {name: (self.model_file(name), len(content)) for name, content in self.models.items()}
        beyond_numpy = [(module, package) for module, package in self.requires if module != "numpy"]
        return contents_module(self.name, self.version, models, beyond_numpy, headers)

    @staticmethod
    def model_file(name: str) -> str:
        """Return the path of a model's file in the program, by the model's name."""
        return f"oplet/{_MODELS}/{name}.tflite"


def make_payload(
    cut: CutPackage,
    version: str,
    *,
    models: Sequence[Model] = (),
    with_models: bool = False,
    command: bool = True,
    any_custom_options: bool = False,
) -> Payload:
    """Make the payload of a build: its kernels and the core that runs them.

    Args:
        cut: the kernels.
        version: the program's version.
        models: the models that the kernels were cut for.
        with_models: include the models.
        command: include a command line.
        any_custom_options: include the reader of FlexBuffers (custom ops' options) even if these kernels do not use it.

    Raises:
        BuildError: a model cannot be included, or an installed package lacks a module that is needed.
    """
    name = cut.name.replace("_", "-")
    taken_along = _named(models) if with_models else {}
    reads_options = any_custom_options or any(b"flatbuffers" in text for text in cut.files.values())
    kernels = {path: _with_vendored(path, text) for path, text in cut.files.items()}
    core = cut_core(
        kernels,
        package=cut.name,
        distribution=name,
        version=version,
        program=command,
        custom_options=reads_options,
    )
    owners = [PACKAGES[package] for package in core_packages(core)]
    carried = [distribution(name) for name in (*owners, *(["flatbuffers"] if reads_options else []))]
    sources = {source.name: source for source in (*cut.sources, *carried)}
    return Payload(
        name=name,
        version=version,
        core=core,
        kernels=kernels,
        models=taken_along,
        requires=_requires(cut, models, sources["oplet-core"]),
        sources=tuple(_with_licence(source, sources["oplet-core"]) for source in sources.values()),
    )


def write_pyz(payload: Payload, target: Path, *, interpreter: str = INTERPRETER, bytecode: bool = True) -> Path:
    """Write a payload as a .pyz program; the same payload and Python give the same bytes.

    Args:
        payload: the contents.
        target: the file.
        interpreter: the interpreter in its first line (#!), "" for no such line.
        bytecode: include modules compiled for the running version of Python, which then starts the program faster.

    Raises:
        BuildError: a module does not compile.
        OSError: the file cannot be written.
    """
    numpy = dict(payload.requires)["numpy"]
    sources = {**payload.core, **payload.kernels, "__main__.py": main_module(payload.name, numpy)}

    def files(headers: Mapping[str, int]) -> dict[str, bytes]:
        modules = {**sources, "oplet/app.py": payload.contents(headers)}
        if bytecode:
            modules |= compiled(modules)
            # Importing oplet, which the program does first, activates the compiled modules.
            modules["oplet/__init__.py"] += f"import {LOADER}\n".encode()
        return {**modules, **licence_files("licenses", payload.sources)}

    models = {payload.model_file(name): content for name, content in payload.models.items()}
    write_archive(target, models, files, interpreter)
    return target


def write_payload_wheel(payload: Payload, cut: CutPackage, directory: Path) -> Path:
    """Write a payload as a wheel; if it has models, the wheel installs a command that runs them.

    Args:
        payload: the contents.
        cut: the kernels' package in it.
        directory: the folder to write into.

    Raises:
        BuildError: hatchling is missing, or the version or a source's metadata cannot be used.
    """
    files = {**payload.core, **payload.kernels}
    command = ""
    if payload.models:
        files |= {payload.model_file(name): content for name, content in payload.models.items()}
        files["oplet/app.py"] = payload.contents(None)
        command = "oplet.app:main"
    requires = tuple(requirement for _, requirement in payload.requires)
    return write_wheel(cut, payload.version, directory, CoreParts(files, requires, payload.sources, command))


def _named(models: Sequence[Model]) -> dict[str, bytes]:
    """Return the models' bytes by file name; where several files have the same name, their folders' names come before it."""
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
    """List the packages that must be installed: numpy, ml_dtypes for models with its types, and external imports of the
    kernels.
    """
    known: dict[str, str] = {}
    for source in (*cut.sources, core):  # the core's requirement takes precedence
        for text in source.requires:
            requirement = text.partition(";")[0].strip()
            known[normalised(re.split(r"[\s<>=!~\[(]", requirement, maxsplit=1)[0])] = requirement
    carried = {*PACKAGES, "flatbuffers", *sys.stdlib_module_names}
    modules = {"numpy"} | (cut.external - carried)
    tensors = (tensor for model in models for graph in model.root.subgraphs or [] for tensor in graph.tensors or [])
    if any(tensor.type in _NEEDS_ML_DTYPES for tensor in tensors):
        modules.add("ml_dtypes")
    return tuple((module, known.get(normalised(module), module)) for module in sorted(modules))


def _with_vendored(path: str, content: bytes) -> bytes:
    """Return a kernels' file; a module that imports flatbuffers gets imports of the copy in the core instead."""
    if not path.endswith(".py") or b"flatbuffers" not in content:
        return content
    return f"{strip_source(ast.parse(content))}\n".encode()


def _with_licence(source: Distribution, core: Distribution) -> Distribution:
    """Return the distribution with its licence text; one without a licence file, but under oplet's licence, gets oplet's file."""
    if source.license_files:
        return source
    if source.name == "flatbuffers":
        source = replace(source, license="Apache-2.0")  # its metadata does not use the SPDX name
    if source.license != core.license:
        return source
    files = core.license_files or _licence_beside_source()
    return replace(source, license_files=files)


def _licence_beside_source() -> tuple[tuple[str, bytes], ...]:
    """Read the licence file of an oplet that runs from its repository."""
    for folder in Path(oplet.__file__).resolve().parents[1:4]:
        file = folder / "LICENSE"
        if file.is_file():
            return ((file.name, file.read_bytes()),)
    return ()
