"""Run the tests of packages as strangers pin them: those of the last release, against the core as it is here.

usage: python -m scripts.downstream [--base REVISION] [--package PLUGIN ...]

The packages are plugins/atan_op and plugins/example_delegate with their tests, as they were at the last release (the last tag), before
the first release at the commit that the change began from. They are installed from there, what they stand on from here, in a virtual
environment of its own. A package that does not allow this version of the core holds nothing against it, and is told. The exit code is
1 where a test fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

from packaging.requirements import Requirement

from scripts.changes import ROOT, base, export, last_release
from scripts.packages import version
from scripts.requirements import tomllib

__all__ = ["CHANGED", "PINNED", "main", "project", "refusal", "tools", "writes_apart"]

#: The packages that play the stranger's.
PINNED = ("atan_op", "example_delegate")
#: What they and their tests stand on, taken from this tree.
CHANGED = ("core", "plugins/testing", "plugins/builtin_ops", "metapackage")
#: What their tests ask for besides, with the bounds of requirements-test.txt.
_TOOLS = ("ai-edge-litert", "hypothesis", "pytest")


def project(folder: Path) -> dict[str, object]:
    """The table `project` of a package."""
    return dict(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"])


def refusal(folder: Path, current: str) -> str:
    """Why a package is not to be installed beside this version of the core; "" if it is."""
    found = project(folder)
    needs = [Requirement(str(text)) for text in found["dependencies"]]  # type: ignore[attr-defined]
    for need in needs:
        if need.name in ("oplet-core", "oplet") and not need.specifier.contains(current, prereleases=True):
            return f"{found['name']} asks for {need}, and this is {current}: it holds nothing against it."
    return ""


def tools(text: str) -> list[str]:
    """The requirements of the tests among the lines of a file of requirements."""
    lines = (line.partition("  #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and line[0] not in "-#" and Requirement(line).name in _TOOLS]


def writes_apart(base_tree: Path, package: str, folder: Path) -> Path:
    """Lay a package's tests where nothing of this repository is found but the few modules beside them that tests share."""
    for source in [*base_tree.glob(f"plugins/{package}/tests/**/*"), *base_tree.glob("tests/*.py")]:
        if source.is_file():
            target = folder / source.relative_to(base_tree)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    markers = '["sweep: of cases", "environment: made first"]'
    (folder / "pyproject.toml").write_text(f'[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = {markers}\n')
    return folder / "plugins" / package / "tests"


def _environment(folder: Path, packages: Sequence[Path | str]) -> str:
    """The Python of a new virtual environment with these packages."""
    venv.create(folder, with_pip=False)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, *map(str, packages)], check=True)
    return python


def _run(pinned: Sequence[str], revision: str) -> int:
    with tempfile.TemporaryDirectory(prefix="oplet-downstream-") as name:
        place = Path(name)
        tree = place / "before"
        export(revision, tree)
        chosen = []
        for package in pinned:
            if said := refusal(tree / "plugins" / package, version()):
                print(said)
            else:
                chosen.append(package)
        if not chosen:
            return 0
        needs = tools((ROOT / "requirements-test.txt").read_text("utf-8"))
        here = [ROOT / folder for folder in CHANGED]
        python = _environment(place / "environment", [*here, *(tree / "plugins" / package for package in chosen), *needs])
        failed = []
        for package in chosen:
            apart = place / package
            tests = writes_apart(tree, package, apart)
            hidden = ("PYTHONPATH", "VIRTUAL_ENV")
            variables = {key: text for key, text in os.environ.items() if key not in hidden and not key.startswith("OPLET_")}
            variables["XDG_CACHE_HOME"] = str(place / "caches")
            command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tests)]
            print(f"{package} of {revision}:", flush=True)
            if subprocess.run(command, cwd=apart, env=variables).returncode:
                failed.append(package)
    for package in failed:
        print(
            f"plugins/{package}, as it was at {revision}, fails with the core as it is here: what it uses of the core changed. Keep "
            "that, or, where it was never promised, change what the package does and say so in the changelog.",
            file=sys.stderr,
        )
    return int(bool(failed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the tests; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts.downstream", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="", metavar="REVISION", help="where the packages are from; by default the last release")
    parser.add_argument("--package", nargs="+", default=PINNED, choices=PINNED, dest="packages")
    given = parser.parse_args(arguments)
    revision = given.base or last_release() or base()
    if not revision:
        sys.exit("There is neither a release nor a commit before this one, so that no package is older than the core.")
    return _run(given.packages, revision)


if __name__ == "__main__":
    sys.exit(main())
