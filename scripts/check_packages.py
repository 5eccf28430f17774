"""Lint, check the types of, and run the units of some packages, or of what a change touches and what imports that.

usage: python -m scripts.check_packages [PACKAGE ...]; scripts/check calls it
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from scripts.changes import ROOT, changed_files
from scripts.import_graph import imports, modules

__all__ = ["Checked", "affected", "folders", "main"]


class Checked(NamedTuple):
    """What is to be checked, as paths from the root of the repository.

    Attributes:
        packages: folders of packages.
        tests: test files elsewhere.
        files: other Python files that are only linted.
    """

    packages: list[str]
    tests: list[str]
    files: list[str]


def folders(root: Path) -> dict[str, str]:
    """Return the folders of the repository's packages by name: "core", "atan_op"."""
    return {"core": "core", **{path.parent.name: f"plugins/{path.parent.name}" for path in sorted(root.glob("plugins/*/pyproject.toml"))}}  # fmt: skip


def _known(root: Path) -> dict[str, str]:
    """Return all modules of packages, tests and scripts: their names, and their paths from the root."""
    found: dict[str, Path] = {}
    for source in (root / "core" / "src", *root.glob("plugins/*/src")):
        for package in source.iterdir():
            if package.is_dir():
                found |= modules(package)
    for folder in ("tests", "scripts", "benchmarks", "core/tests", *(f"{each}/tests" for each in folders(root).values())):
        for path in (root / folder).rglob("*.py"):
            found[".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")] = path
    return {name: path.relative_to(root).as_posix() for name, path in found.items()}


def affected(root: Path, changed: Collection[str]) -> Checked:
    """Return what a change concerns: packages with changed files, and tests elsewhere that import a changed module, or one that does."""
    known = _known(root)
    by_path = {path: name for name, path in known.items()}
    concerned = {by_path[path] for path in changed if path in by_path}
    graph = {name: set(imports(root / path, known)) & known.keys() for name, path in known.items()}
    near = concerned | {name for name, others in graph.items() if others & concerned}
    packages = sorted({folder for folder in folders(root).values() if any(path.startswith(f"{folder}/") for path in changed)})

    def elsewhere(path: str) -> bool:
        return Path(path).name.startswith("test_") and not any(path.startswith(f"{folder}/") for folder in packages)

    tests = {known[name] for name, others in graph.items() if (name in concerned or others & near) and elsewhere(known[name])}
    rooms = {str(Path(path).parent) for path in changed if Path(path).name == "conftest.py" and "tests" in path}
    tests |= {path for path in by_path if elsewhere(path) and any(path.startswith(f"{room}/") for room in rooms)}
    files = sorted(path for path in changed if path.endswith(".py") and (root / path).exists() and not any(path.startswith(f"{p}/") for p in packages))  # fmt: skip
    return Checked(packages, sorted(tests), files)


def _run(name: str, *command: str) -> bool:
    began = time.monotonic()
    print(f"{name} ...", flush=True)
    code = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
    print(f"{name}: {'ok' if code == 0 else 'failed'}, {time.monotonic() - began:.0f} s", flush=True)
    return code == 0


def main(names: list[str]) -> int:
    """Check the packages that are named, or what changed; return 1 where something is wrong."""
    known = folders(ROOT)
    names = [Path(name).name for name in names]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"There is no package {unknown[0]}; there are {', '.join(known)}.", file=sys.stderr)
        return 2
    if names:
        checked = Checked(sorted({known[name] for name in names}), [], [])
    else:
        changed = changed_files()
        if changed is None:
            print("Nobody can tell what changed: there is no commit before this one; name packages.", file=sys.stderr)
            return 2
        checked = affected(ROOT, changed)
    if not any(checked):
        print("Nothing of Python changed.")
        return 0
    print("\n".join(["packages: " + ", ".join(checked.packages or ["none"]), *checked.tests]))
    linted = [*checked.packages, *checked.tests, *checked.files]
    good = _run("lint", "ruff", "check", "--quiet", *linted) and _run("format", "ruff", "format", "--check", "--quiet", *linted)
    if checked.packages:
        good = _run("types", "mypy", *(f"{folder}/src" for folder in checked.packages)) and good
    tests = [*(f"{folder}/tests" for folder in checked.packages), *checked.tests]
    if tests:
        processes = os.environ.get("OPLET_TEST_PROCESSES", "2")
        # Who breaks everything need not wait until all of it has failed.
        chosen = ["-q", "-n", processes, "--dist", "worksteal", "--installed", "--maxfail=50"]
        good = _run("units", "pytest", *chosen, *tests) and good
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
