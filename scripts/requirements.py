"""Requirements of this repository, as declared and as installed."""

from __future__ import annotations

import importlib.metadata as metadata
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["DEVELOPMENT", "RUN_TIME", "Wanted", "installed", "wanted"]

ROOT = Path(__file__).resolve().parents[1]
#: Audiences of a requirement: users of the packages, or developers of this repository.
RUN_TIME, DEVELOPMENT = "run time", "development"


class Wanted(NamedTuple):
    """A declared requirement.

    Attributes:
        requirement: the requirement.
        audience: RUN_TIME or DEVELOPMENT.
        by: the package, or the requirements file, that declares it.
    """

    requirement: Requirement
    audience: str
    by: str


def wanted() -> list[Wanted]:
    """All requirements of the packages (extras and build systems included) and of the requirements files, without our own packages."""
    found: list[Wanted] = []
    projects = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")), ROOT / "metapackage"]
    for path in (folder / "pyproject.toml" for folder in projects):
        tables: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        project = tables["project"]
        for text in project.get("dependencies", ()):
            found.append(Wanted(Requirement(text), RUN_TIME, project["name"]))
        for extra, texts in project.get("optional-dependencies", {}).items():
            found += [Wanted(Requirement(text), RUN_TIME, f"{project['name']}[{extra}]") for text in texts]
        found += [Wanted(Requirement(text), DEVELOPMENT, "build-system") for text in tables["build-system"]["requires"]]
    for path in sorted(ROOT.glob("requirements-*.txt")):
        for line in path.read_text("utf-8").splitlines():
            text = re.sub(r"(^|\s+)#.*", "", line).strip()
            if text and not text.startswith("-"):
                found.append(Wanted(Requirement(text), DEVELOPMENT, path.name))
    own = {canonicalize_name(folder.name) for folder in projects}
    return [
        w
        for w in found
        if w.requirement.name != "oplet" and canonicalize_name(w.requirement.name.removeprefix("oplet-")) not in own
    ]


def installed(roots: Iterable[Requirement]) -> dict[str, metadata.Distribution]:
    """The installed distributions that these requirements lead to, directly or not, by name; missing ones are left out."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(requirement, "") for requirement in roots]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            distribution = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = distribution
        for wish in ("", *requirement.extras):
            if (name, wish) not in seen:
                seen.add((name, wish))
                waiting += [(Requirement(text), wish) for text in _requires(distribution)]
    return dict(sorted(found.items()))


def _requires(distribution: metadata.Distribution) -> Iterator[str]:
    yield from distribution.requires or ()
