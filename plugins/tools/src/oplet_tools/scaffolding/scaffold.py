"""Writer of new packages for an op or a delegate: complete, installable, with tests that pass."""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import NamedTuple

from oplet import write_atomically
from oplet.errors import OpletError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import OwnFolder, misspelt_operator

__all__ = ["Names", "ScaffoldError", "new_delegate", "new_op"]

_TEMPLATES = Path(__file__).parent / "templates"
_OP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(>[A-Za-z0-9_.-]+)?")
_DELEGATE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_LICENSE = re.compile(r"[A-Za-z0-9.+() -]+")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*")
#: Word boundaries in a CamelCase name: fooBar, HTTPServer, 2DTranspose.
_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


class ScaffoldError(OpletError, ValueError):
    """A package cannot be written: its name is not valid, or its folder is not empty."""


class Names(NamedTuple):
    """Names of a package and its parts."""

    distribution: str  #: The pip package's name, which is also its folder's.
    module: str  #: The Python package's name.
    plugin: str  #: The entry point's name.
    class_name: str  #: The name of a delegate's class.
    test: str  #: The test module's name.

    @classmethod
    def of(cls, name: str, kind: str, package: str | None = None) -> Names:
        """Derive all names from that of an op or delegate.

        Args:
            name: the op's or delegate's name.
            kind: "op" or "delegate", the suffix of the names.
            package: the pip package's name, from which the module's and plugin's names are derived; None to derive all from `name`.

        Examples:
            >>> Names.of("Convolution2DTransposeBias", "op")[:3]
            ('oplet-convolution2d-transpose-bias-op', 'oplet_convolution2d_transpose_bias_op', 'convolution2d_transpose_bias_op')
        """
        words = re.sub(r"[^a-z0-9]+", "_", _BORDER.sub("_", name).lower()).strip("_").split("_")
        if words[-1] == kind and len(words) > 1:
            words.pop()
        stem = "_".join(words)
        plugin = f"{stem}_{kind}"
        camel = "".join(word[:1].upper() + word[1:] for word in words)
        module = f"oplet_{plugin}" if package is None else (plugin := re.sub(r"[-_.]+", "_", package.lower()))
        return cls(module.replace("_", "-"), module, plugin, f"{camel}Delegate", f"test_{stem}")


def new_op(
    name: str, directory: Path | None = None, *, builtin: bool = False, license: str = "Apache-2.0", package: str | None = None
) -> Path:
    """Write a package that provides an op.

    Args:
        name: the op's name in models, such as "Atan"; for a built-in operator its name in the schema.
        directory: the folder to write into, created if missing; by default one named after the package, in the current folder.
        builtin: make a kernel for a built-in operator, in place of the usual kernel.
        license: the package's licence, an SPDX expression.
        package: the package's name for pip; by default one that begins with "oplet-" and has the op's name.

    Returns:
        The folder.

    Raises:
        ScaffoldError: a name is not valid, or the folder is not empty.
    """
    if builtin:
        if name not in BuiltinOperator.__members__:
            meant = misspelt_operator(name) or misspelt_operator(name.upper())
            close = f"did you mean {meant}? Their" if meant else "their"
            raise ScaffoldError(
                f"There is no built-in operator called '{name}'; {close} names are those of the schema: CONV_2D, ADD."
            )
    elif not _OP_NAME.fullmatch(name):
        raise ScaffoldError(f"'{name}' cannot be an op's name here: give letters, digits, '_', '-' and '.', a letter first.")
    elif name in BuiltinOperator.__members__:
        raise ScaffoldError(f"{name} is a built-in operator; --builtin makes a kernel to use in place of the usual one.")
    what = f"A kernel of the built-in operator {name}" if builtin else f"The custom operator {name}"
    return _write("builtin_op" if builtin else "op", name, "op", package, directory, license, what)


def new_delegate(name: str, directory: Path | None = None, *, license: str = "Apache-2.0", package: str | None = None) -> Path:
    """Write a package that provides a delegate.

    Args:
        name: the name by which `load_delegate` finds it.
        directory: the folder to write into, created if missing; by default one named after the package, in the current folder.
        license: the package's licence, an SPDX expression.
        package: the package's name for pip; by default one that begins with "oplet-" and has the delegate's name.

    Returns:
        The folder.

    Raises:
        ScaffoldError: a name is not valid, or the folder is not empty.
    """
    if not _DELEGATE_NAME.fullmatch(name):
        raise ScaffoldError(f"'{name}' cannot be a delegate's name: give letters, digits, '_', '-' and '.', a letter first.")
    return _write("delegate", name, "delegate", package, directory, license, f"The delegate {name}", '"oplet-builtin-ops", ')


def _write(
    template: str, name: str, kind: str, package: str | None, directory: Path | None, license: str, about: str, needs: str = ""
) -> Path:
    from oplet import __version__

    if not _LICENSE.fullmatch(license):
        raise ScaffoldError(f"'{license}' is not a licence as pyproject.toml names it: Apache-2.0, MIT, MIT OR Apache-2.0.")
    names = Names.of(name, kind, package)
    taken = keyword.iskeyword(names.module) or names.module in {"oplet", *sys.stdlib_module_names}
    if package is not None and (taken or not _PACKAGE.fullmatch(package)):
        raise ScaffoldError(f"'{package}' cannot be a package's name: give letters, digits, '-' between; no module of Python's.")
    target = Path(names.distribution) if directory is None else directory
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ScaffoldError(f"'{target}' is there already; name another folder with --directory, or remove it.")
    if directory is None and os.path.lexists(target):
        try:
            OwnFolder(target).make()  # which is there: it only looks whose it is
        except PermissionError as error:  # code that somebody else may change is not what this user installs
            raise ScaffoldError(
                f"'{target}' is there already, and is a link, or a folder that somebody else may write into; name another with --directory, or "
                "remove it."
            ) from error
    values = {
        **names._asdict(),
        "name": name,
        "description": f"{about} for oplet",
        "license": license,
        "oplet": ".".join(__version__.split(".")[:2]),
        "test_requirements": f'{needs}"oplet-testing", "pytest>=8"',
    }
    # All templates are filled before anything is written.
    parts = ("package", template, *["apache"] * (license == "Apache-2.0"))  # another licence's text is the author's to bring
    files = {path: text for part in parts for path, text in _filled(_TEMPLATES / part, Path(), values)}
    for path, text in files.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text)
    return target


def _filled(folder: Path, place: Path, values: Mapping[str, str]) -> list[tuple[Path, str]]:
    """Fill in the templates of a folder, also in subfolders; return each file's path, which begins with `place`, and text."""
    found: list[tuple[Path, str]] = []
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            found += _filled(entry, place / entry.name.replace("MODULE", values["module"]), values)
        elif entry.name.endswith(".in"):
            name = entry.name.removesuffix(".in").replace("DOT.", ".").replace("test_OP", values["test"])
            found.append((place / name, Template(entry.read_text(encoding="utf-8")).substitute(values)))
    return found
