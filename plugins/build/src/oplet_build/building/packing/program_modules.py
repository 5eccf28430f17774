"""Generated files of a program: `__main__.py`, `oplet/app.py` and the licences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from oplet_build.building.distributions import Distribution, licence_texts

__all__ = ["contents_module", "licence_files", "main_module"]

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
