"""Generates a new installable package with an operator in C++ and passing tests."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from string import Template

from oplet import BuiltinOperator, write_atomically
from oplet.errors import PluginError
from oplet_native_ops.headers import include_dir

__all__ = ["new_op"]

_TEMPLATE = Path(__file__).with_name("template")
_OP_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(>[A-Za-z0-9_.-]+)?")
_LICENSE = re.compile(r"[A-Za-z0-9.+() -]+")
_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*")
#: Where a name in CamelCase or with digits has its words' borders.
_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def new_op(name: str, directory: Path | None = None, *, license: str = "Apache-2.0", package: str | None = None) -> Path:
    """Write a new package with an operator in C++.

    Args:
        name: the custom op's name in models, such as "Atan".
        directory: the folder to write into, which is made; by default one called as the package, in the current folder.
        license: the package's licence, an SPDX expression.
        package: the package's name for pip; by default one that begins with "oplet-" and has the op's name.

    Returns:
        The folder. Its `native/include` holds this package's headers, so that it compiles without anything else.

    Raises:
        PluginError: `name` cannot be the name of an operator, or `package` that of a package, or the folder is not empty.
    """
    if not _OP_NAME.fullmatch(name):
        raise PluginError(f"'{name}' cannot be an op's name here: give letters, digits, '_', '-' and '.', a letter first.")
    if name in BuiltinOperator.__members__:
        raise PluginError(f"{name} is a built-in operator; a package of this kind brings a custom one, so give another name.")
    if not _LICENSE.fullmatch(license):
        raise PluginError(f"'{license}' is not a licence as pyproject.toml names it: Apache-2.0, MIT, MIT OR Apache-2.0.")
    values = _values(name, license, package)
    target = Path(values["distribution"]) if directory is None else directory
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise PluginError(f"'{target}' is there already; name another folder with --directory, or remove it.")
    headers = include_dir()
    files = dict(_filled(_TEMPLATE, Path(), values))  # everything is filled in before anything is written
    if license != "Apache-2.0":
        del files[Path("LICENSE")]  # another licence's text is the author's to bring
    for header in (headers / "tflite").rglob("*.h"):
        files["native" / Path("include") / header.relative_to(headers)] = header.read_text(encoding="utf-8")
    for path, text in files.items():
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target / path, text)
    return target


def _values(name: str, license: str, package: str | None) -> dict[str, str]:
    """Return the template's placeholder values for an op name, a licence and a package's name, which follows from the op's unless given."""
    from oplet import __version__

    words = re.sub(r"[^a-z0-9]+", "_", _BORDER.sub("_", name).lower()).strip("_").split("_")
    if words[-1] == "op" and len(words) > 1:
        words.pop()
    stem = "_".join(words)
    module = f"oplet_{stem}_op"
    if package is not None:
        module = re.sub(r"[-_.]+", "_", package.lower())
        if module in {"oplet", *sys.stdlib_module_names} or not _PACKAGE.fullmatch(package):
            raise PluginError(
                f"'{package}' cannot be a package's name: give letters, digits, '-' between; no module of Python's."
            )
    if not module.isidentifier() or keyword.iskeyword(module):
        raise PluginError(f"'{name}' gives the module name '{module}', which Python cannot import.")
    return {
        "name": name,
        "stem": stem,
        "module": module,
        "plugin": f"{stem}_op" if package is None else module,
        "distribution": module.replace("_", "-"),
        "function": f"{''.join(word[:1].upper() + word[1:] for word in words)}Operator",
        "library": f"lib{stem}.so",
        "license": license,
        "oplet": ".".join(__version__.split(".")[:2]),
    }


def _filled(folder: Path, place: Path, values: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield (target path, content) of each file of a template folder."""
    for entry in sorted(folder.iterdir()):
        if entry.is_dir():
            yield from _filled(entry, place / entry.name.replace("MODULE", values["module"]), values)
        elif entry.name.endswith(".in"):
            name = entry.name.removesuffix(".in").replace("DOT.", ".").replace("STEM", values["stem"])
            yield place / name, Template(entry.read_text(encoding="utf-8")).substitute(values)
