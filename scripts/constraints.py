"""Write constraints.txt: the exact versions, in this environment, of all packages that the tests use.

usage: python -m scripts.constraints, with the Python of an environment with all requirements that passed `python -m pytest -m "" --part all`

Each line applies to one version of Python; lines of other versions are kept.
"""

from __future__ import annotations

import sys

from packaging.requirements import Requirement
from packaging.version import Version

from scripts.requirements import ROOT, installed, wanted

HEAD = """\
# Versions that passed all tests together, by version of Python, on Linux and x86-64. Made by `python -m scripts.constraints`.
# scripts/test.sh, and with it .ci/run, installs these where the package index has them all; elsewhere, and for other versions of
# Python, the bounds in requirements-*.txt hold. There are no hashes: pip asks for one of everything as soon as it finds one, and
# cannot have any of what it installs from folders, as it does this repository's packages; and hashes of one platform's files
# would shut out all others. Builds from one day to the next (tflite-micro) are not named: an index does not keep them.
"""
#: Installers, whose versions are the environment's own.
_INSTALLERS = {"pip", "setuptools", "wheel"}
_FILES = ("requirements-test.txt", "requirements-dev.txt", "requirements-tensorflow.txt")


def lines(before: str = "") -> list[str]:
    """The lines of the file; those of other versions of Python are taken from its old text."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    kept = [line for line in before.splitlines() if line and not line.startswith("#") and f'"{python}"' not in line]
    roots = [w.requirement for w in wanted() if w.by in _FILES or w.by.startswith("oplet")]
    found = installed(roots)
    mine = [
        f'{name}=={distribution.version} ; python_version == "{python}"'
        for name, distribution in found.items()
        if name not in _INSTALLERS and not Version(distribution.version).is_devrelease
    ]
    return sorted(kept + mine, key=lambda line: (line.partition("python_version")[2].split(".")[-1].zfill(4), line))


def pinned(text: str) -> list[Requirement]:
    """The requirements of the file."""
    return [Requirement(line) for line in text.splitlines() if line and not line.startswith("#")]


if __name__ == "__main__":
    file = ROOT / "constraints.txt"
    old = file.read_text("utf-8") if file.exists() else ""
    file.write_text(HEAD + "\n".join(lines(old)) + "\n", encoding="utf-8")
