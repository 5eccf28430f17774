"""What a change touches: the files that differ from where the branch left the main one, or from the commit before.

usage: python -m scripts.changes prints the changed files;
       python -m scripts.changes --environments ROOM ... ends with 0 where the change concerns what is made in one of these rooms of
       tests, with 1 where it does not; and with 0 where nobody can tell
"""

from __future__ import annotations

import fnmatch
import io
import re
import subprocess
import sys
import tarfile
from functools import cache
from pathlib import Path

__all__ = [
    "ROOT",
    "base",
    "changed_files",
    "changed_operators",
    "changed_sweeps",
    "commit",
    "concerned_files",
    "concerns_environments",
    "export",
    "last_release",
    "lines_changed",
]

ROOT = Path(__file__).resolve().parents[1]

#: What decides how packages are built, what they install, and how a clone sets itself up. The file pyproject.toml of the repository
#: itself has settings of tools alone.
_PACKAGING = ("core/pyproject.toml", "metapackage/*", "plugins/*/pyproject.toml", "requirements*.txt", "constraints.txt", "*/hatch_build.py", "scripts/*.sh")  # fmt: skip

#: A change of more operators than that is one of all of them, and the rotating part sees enough.
_MANY_OPERATORS = 12
#: So is one of more plugins and test files than that.
_MANY_ROOMS = 4


def _git(*arguments: str) -> str | None:
    """Return what git prints, None where there is no git, no repository or no such commit."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def commit() -> str:
    """Return the hash of the commit that is checked out; "" outside a repository."""
    return (_git("rev-parse", "HEAD") or "").strip()


@cache
def base() -> str | None:
    """Return the commit to compare with: where the branch left the main one, or the commit before; None where there is none."""
    for main in ("origin/main", "main"):
        found = (_git("merge-base", "HEAD", main) or "").strip()
        if found and found != commit():
            return found
    return (_git("rev-parse", "--verify", "--quiet", "HEAD~1") or "").strip() or None


def last_release() -> str | None:
    """Return the tag of the last release before this commit; None where there is none."""
    return (_git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*", "HEAD~1") or "").strip() or None


def export(revision: str, folder: Path) -> None:
    """Write the tree of a commit into a folder.

    Raises:
        subprocess.CalledProcessError: there is no such commit.
    """
    archive = subprocess.run(["git", "archive", "--format=tar", revision], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)


@cache
def changed_files() -> frozenset[str] | None:
    """Return the files that differ from the base, in commits or not yet committed; None where that cannot be told."""
    before = base()
    found = _git("diff", "--name-only", before) if before else None
    new = _git("ls-files", "--others", "--exclude-standard")
    if found is None or new is None:
        return None
    return frozenset(found.splitlines()) | frozenset(new.splitlines())


@cache
def changed_sweeps() -> tuple[str, ...]:
    """Return what the paths of sweeps that concern the change begin with: test files that changed, and plugins, unless many did."""
    files = changed_files() or ()
    plugins = {"/".join(path.split("/")[:2]) + "/" for path in files if path.startswith("plugins/") and path.endswith(".py")}
    tests = {path for path in files if Path(path).name.startswith("test_")}
    return tuple(sorted(found)) if len(found := plugins | tests) <= _MANY_ROOMS else ()


def lines_changed() -> dict[str, int]:
    """Return by how many lines each file grew since the base; empty where that cannot be told."""
    before = base()
    found = _git("diff", "--numstat", "--no-renames", before) if before else None
    rows = (line.split("\t") for line in (found or "").splitlines())
    return {path: int(more) - int(fewer) for more, fewer, path in rows if more != "-"}


@cache
def changed_operators() -> frozenset[str]:
    """Return the names of the operators whose modules changed, as models write built-in ones: "SPLIT_V" for ops/split_v.py, and those
    that a family's module registers, each under its name.
    """
    from oplet import BuiltinOperator

    paths = [Path(name) for name in changed_files() or () if fnmatch.fnmatchcase(name, "plugins/*_ops/src/*.py")]
    found = {path.stem.upper() for path in paths if path.match("ops/*.py") and path.stem != "__init__"}
    for path in filter(Path.exists, (ROOT / path for path in paths)):
        found.update(re.findall(r"^([A-Z]\w+) = ", path.read_text("utf-8"), re.MULTILINE))
    found &= BuiltinOperator.__members__.keys()
    return frozenset(found) if len(found) <= _MANY_OPERATORS else frozenset()


@cache
def concerns_environments(room: str) -> bool:
    """Return whether all tests of a room that make environments are to run: packaging or the room changed, or nobody can tell."""
    files = changed_files()
    patterns = (*_PACKAGING, f"{room}/*")
    return files is None or any(fnmatch.fnmatchcase(name, pattern) for name in files for pattern in patterns)


@cache
def concerned_files() -> frozenset[str]:
    """Return the test files that import what changed, or what imports that."""
    from scripts.check_packages import affected

    return frozenset(affected(ROOT, changed_files() or ()).tests)


def main(arguments: list[str]) -> int:
    """Print what changed, or return whether no environment of the rooms is concerned."""
    if arguments[:1] == ["--environments"]:
        return int(not any(map(concerns_environments, arguments[1:])))
    print("\n".join(sorted(changed_files() or ())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
