"""A rehearsal of a release: build its files, check them, and take a stranger's first steps with them.

usage: python -m scripts.rehearsal FOLDER [--python PYTHON ...] [--emulated LEVEL ...] [--musl PYTHON ...] [--steps STEPS ...] [--built] [--objects]

FOLDER gets `dist`, every source distribution and wheel with what goes with them (this platform's wheels; kernels' object files of
plugins/compiled_ops/build/objects are used), `again`, the same from a copy of the clone, which must be the same bytes, `index`, an index of `dist`
in plain files, which is served on this machine while the steps are taken, and the log: `rehearsal.json`, `rehearsal.txt`, and what each file
holds, `contents.txt`. Each row of steps begins in a fresh virtual environment of each Python, as a user whose home and
caches are empty; packages of others come from pip's own index. --emulated takes some of them on an emulated processor, such as aarch64-neon,
and --musl with a Python that is linked with musl, for which wheels are built too; then no other Python is taken unless one is named. --built takes the files that lie in FOLDER/dist, and builds nothing; --objects
has the second build use the object files of the first in place of compiling all kernels. The exit code is 1 if a step failed.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from scripts import contents, packages, reproduced
from scripts.downstream import writes_apart
from scripts.emulated.debian import Unavailable
from scripts.emulated.environment import environment
from scripts.emulated.levels import LEVELS
from scripts.fresh_install import fresh_user
from scripts.requirements import ROOT

__all__ = [
    "STEPS", "Abroad", "Land", "Row", "Stranger", "build", "check", "emulated", "index", "look", "main", "musl", "rebuild", "served",
    "table", "walk",
]  # fmt: skip

_DIGITS = ROOT / "examples" / "digits"
_PICTURE = _DIGITS / "pictures" / "7.png"
#: The lowest numpy that the core allows; a Python that is younger has none of it, and its own lowest in its place.
_LOWEST_NUMPY = ("1.23.5", "1.26.0", "2.1.0", "2.3.2")

#: Runs a model on a picture that is a list of numbers, and says what it sees, with which numpy, and who convolves.
_PROGRAM = """
import json, sys
import numpy as np
from oplet import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
source = interpreter.get_input_details()[0]
interpreter.set_tensor(source["index"], np.array(json.loads(sys.argv[2]), np.float32).reshape(source["shape"]))
interpreter.invoke()
answer = interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).argmax()
served = {node.op: node.distribution for node in interpreter.explain()}
print("sees", open(sys.argv[3]).read().split()[answer], "with numpy", np.__version__, "by", served["CONV_2D"])
"""


class Row(NamedTuple):
    """A step that was taken.

    Attributes:
        python: the version of Python, "" for what is done once.
        steps: the name of its row of steps.
        step: what was done.
        verdict: "ok", "no wheel" where a package of somebody else has none for this Python, or "failed".
        seconds: how long it took.
        packages: what pip installed.
        megabytes: what the environment grew by, without compiled modules.
        said: the last line of what was printed; where it failed, the end of that.
    """

    python: str
    steps: str
    step: str
    verdict: str
    seconds: float
    packages: tuple[str, ...] = ()
    megabytes: float = 0.0
    said: str = ""


def build(dist: Path, only: Sequence[str] = (), platforms: Sequence[str] = ()) -> str:
    """Build the source distribution of every package, or of some by their folders' names, and its wheel for this platform and some others.

    Returns:
        why a package cannot be built, "" if all are.
    """
    for folder in packages.folders():
        if not only or folder.name in only:
            try:
                place = dist / ("plugins" if folder.parent.name == "plugins" else "core")
                packages.build(folder, place, packages.here_and(folder, platforms))
            except SystemExit as error:  # a build hook's way to say it
                return f"{folder.name}: {error}"
    return ""


def rebuild(folder: Path, objects: Path | None = None, only: Sequence[str] = (), platforms: Sequence[str] = ()) -> str:
    """Build all a second time, into `folder/again`; returns what differs from `folder/dist`, "" for nothing.

    Args:
        folder: where both lie.
        objects: kernels' object files to use; all kernels are compiled unless given.
        only: some packages, by their folders' names.
        platforms: further ones, as `build` had them.
    """
    options = ["--here", *(word for platform in platforms for word in ("--platform", platform))]
    shutil.rmtree(folder / "again", ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="oplet-again-") as work:
        failed = reproduced.again(folder / "again", Path(work), only, objects, options)
    return failed or "; ".join(reproduced.differences(folder / "dist", folder / "again"))


def look(folder: Path) -> str:
    """Write what each file holds to `folder/contents.txt`; returns what none should, "" for nothing."""
    files = _files(folder / "dist")
    (folder / "contents.txt").write_text("\n".join(map(contents.listing, files)), "utf-8")
    return "; ".join(sentence for file in files for sentence in contents.wrong(file))


def _files(dist: Path) -> list[Path]:
    return [path for path in sorted(dist.glob("*/*")) if path.name.endswith((".whl", ".tar.gz"))]


def check(dist: Path) -> str:
    """Check the files as an index would; returns what is wrong, "" for nothing."""
    done = subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *_files(dist)], capture_output=True, text=True)
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()


def index(folder: Path) -> None:
    """Make `folder/index`, an index (PEP 503) of the files in `folder/dist`."""
    from scripts.release_files import checksums

    shutil.rmtree(folder / "index", ignore_errors=True)
    links: dict[str, list[str]] = {}
    for path, digest in checksums(folder / "dist").items():
        file = Path(path).name
        name = parse_wheel_filename(file)[0] if file.endswith(".whl") else parse_sdist_filename(file)[0]
        links.setdefault(canonicalize_name(name), []).append(f'<a href="../../dist/{path}#sha256={digest}">{file}</a><br>')
    for name, lines in links.items():
        page = folder / "index" / name / "index.html"
        page.parent.mkdir(parents=True)
        page.write_text("\n".join(["<!DOCTYPE html>", *lines, ""]), "utf-8")


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine alone; gives its address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class Stranger:
    """Somebody with a fresh virtual environment, an empty home and the index.

    Args:
        python: the Python to make the environment with.
        address: where the folder with the index is served.
        folder: an empty folder for the environment and the home.
        steps: the name of the row of steps.
    """

    def __init__(self, python: str, address: str, folder: Path, steps: str) -> None:
        self._address, self._place, self._steps = address, folder, steps
        (folder / "home").mkdir()
        (folder / "work").mkdir()
        self._variables = fresh_user(folder / "home")
        subprocess.run(
            [python, "-m", "venv", str(folder / "venv")], check=True, capture_output=True, text=True, env=self._variables
        )
        self._installed = folder / "venv"
        bin = self._installed / ("Scripts" if os.name == "nt" else "bin")
        self.python = str(bin / "python")
        self._pip, self._oplet = [self.python, "-m", "pip", "install"], [str(bin / "oplet")]
        asked = (
            "import sys, platform; print(platform.python_version() + 't' * (not getattr(sys, '_is_gil_enabled', lambda: True)()))"
        )
        self.version = subprocess.run([self.python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()

    def install(self, *wanted: str, step: str = "") -> Row:
        """Have pip install packages; one of this project that does not come from the index of the rehearsal is a failure."""
        report = self._place / "report.json"
        report.unlink(missing_ok=True)
        before = self._megabytes()
        pip = [*self._pip, "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        row = self._ran(
            step or f"pip install {' '.join(wanted)}",
            [*pip, "--report", str(report), "--extra-index-url", f"{self._address}/index/", *wanted],
        )
        if not report.exists():
            lacks = re.search("No matching distribution found for (?!oplet)", row.said)
            return row._replace(verdict="no wheel") if lacks else row
        found = json.loads(report.read_text("utf-8"))["install"]
        names = sorted(f"{each['metadata']['name']}=={each['metadata']['version']}" for each in found)
        foreign = [
            each["download_info"]["url"]
            for each in found
            if re.match(r"oplet(-|$)", canonicalize_name(each["metadata"]["name"]))
            and not each["download_info"]["url"].startswith(f"{self._address}/")
        ]
        row = row._replace(packages=tuple(names), megabytes=round(self._megabytes() - before, 1), said="")
        return row._replace(verdict="failed", said=f"not of this rehearsal: {', '.join(foreign)}") if foreign else row

    def runs_a_model(self, says: str = "sees seven", fails: bool = False) -> Row:
        """Run a model from Python; `fails`: it is to end with the sentence `says` in one line."""
        words = [str(_DIGITS / "digits_float32.tflite"), json.dumps(_pixels()), str(_DIGITS / "labels.txt")]
        return self._ran("a model answers" if not fails else "the sentence", [self.python, "-c", _PROGRAM, *words], says, fails)

    def command(self, *words: str, says: str = "") -> Row:
        """Run the command `oplet`."""
        shown = " ".join(word.removeprefix(f"{ROOT}{os.sep}") for word in words)
        return self._ran(f"oplet {shown}", [*self._oplet, *words], says)

    def units(self, package: str) -> Row:
        """Run a package's tests on what is installed, away from this repository."""
        tests = writes_apart(ROOT, package, self._place / "tests")
        command = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", str(tests)]
        return self._ran(f"tests of {package}", command, " passed", at=self._place / "tests")

    def _ran(self, step: str, command: Sequence[str], says: str = "", fails: bool = False, at: Path | None = None) -> Row:
        start = time.perf_counter()
        done = subprocess.run(
            command, cwd=at or self._place / "work", env=self._variables, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        seconds = round(time.perf_counter() - start, 1)
        told = (done.stdout + done.stderr).strip()
        last = (told.splitlines() or [""])[-1]
        ok = (done.returncode != 0) is fails and says in (last if fails else told)
        verdict, said = ("ok", last) if ok else ("failed", told[-2000:])
        return Row(self.version, self._steps, step, verdict, seconds, said=said)

    def _megabytes(self) -> float:
        files = (path for path in self._installed.rglob("*") if path.suffix != ".pyc" and path.is_file())
        return sum(path.stat().st_size for path in files) / 1e6


class Abroad(Stranger):
    """Somebody on another processor or C library, whose Python this machine can start: pip of this machine installs for that one.

    pip takes the wheels that the other platform's tags allow; what depends on the platform in requirements it decides for this one.

    Args:
        land: the platform.
        address: where the folder with the index is served.
        folder: an empty folder for the packages and the home.
        steps: the name of the row of steps.
    """

    def __init__(self, land: Land, address: str, folder: Path, steps: str) -> None:
        self._address, self._place, self._steps = address, folder, steps
        for name in ("home", "work", "site"):
            (folder / name).mkdir()
        self._installed, self.python, self.version = folder / "site", str(land.python), f"{land.version} {land.name}"
        self._variables = fresh_user(folder / "home") | {
            "PYTHONPATH": str(self._installed),
            "PYTHONNOUSERSITE": "1",
            **land.variables,
        }
        tag = f"cp{land.version.replace('.', '')}"
        words = ["--python-version", land.version, "--implementation", "cp", *_repeated("--abi", (tag, "abi3", "none"))]
        words += [*_repeated("--platform", land.tags), "--target", str(self._installed), "--upgrade"]
        self._pip, self._oplet = [sys.executable, "-m", "pip", "install", *words], [self.python, "-m", "oplet"]


class Land(NamedTuple):
    """A platform that is not this machine's.

    Attributes:
        name: what the log calls it.
        platform: for which packages with machine code are built, as `scripts.packages` calls it.
        python: the command that starts its Python.
        version: of that Python, such as "3.11".
        tags: what its wheels are named by.
        variables: further environment variables of its processes.
    """

    name: str
    platform: str
    python: Path
    version: str
    tags: tuple[str, ...]
    variables: Mapping[str, str] = {}


def emulated(name: str) -> Land:
    """Return an emulated processor, a level of `scripts.emulated`.

    Raises:
        Unavailable: there is no emulator, or no Python for it.
    """
    level = LEVELS[name]
    made = environment(level.architecture)
    tags = (*(f"manylinux_2_{minor}_{level.architecture}" for minor in range(17, 37)), f"manylinux2014_{level.architecture}")
    return Land(name, f"linux-{level.architecture}", made.python, _version_of(made.python), tags, {"QEMU_CPU": level.cpu})


def musl(python: str) -> Land:
    """Return this machine's processor with musl as the C library, by a Python that is linked with it."""
    tags = tuple(f"musllinux_1_{minor}_{platform.machine()}" for minor in (2, 1))
    return Land("musl", f"musl-{platform.machine()}", Path(python).absolute(), _version_of(Path(python)), tags)


def _version_of(python: Path) -> str:
    asked = [str(python), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def _repeated(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _pixels() -> list[float]:
    """The picture of a seven, as small as the model takes it."""
    from PIL import Image

    return [value / 255 for value in Image.open(_PICTURE).convert("L").resize((8, 8)).tobytes()]


def _first(stranger: Stranger) -> Iterator[Row]:
    """`pip install oplet`, then the command into the same environment."""
    yield stranger.install("oplet")
    yield stranger.runs_a_model("by oplet-builtin-ops")
    yield stranger.install("oplet[cli]")
    run = ("run", str(_DIGITS / "digits_int8.tflite"), "--input", str(_PICTURE), "--labels", str(_DIGITS / "labels.txt"))
    yield stranger.command(*run, says="seven")


def _fast(stranger: Stranger) -> Iterator[Row]:
    """The compiled kernels."""
    yield stranger.install("oplet[fast]")
    yield stranger.runs_a_model("by oplet-compiled-ops")


def _core(stranger: Stranger) -> Iterator[Row]:
    """The core alone, which says what is missing."""
    yield stranger.install("oplet-core")
    yield stranger.runs_a_model("oplet-builtin-ops", fails=True)
    yield stranger.install("oplet-builtin-ops")
    yield stranger.runs_a_model()


def _everything(stranger: Stranger) -> Iterator[Row]:
    """`oplet[all]`."""
    yield stranger.install("oplet[all]")
    yield stranger.runs_a_model()
    yield stranger.command("doctor", str(ROOT / "examples/atan/atan.tflite"), says="oplet-atan-op")


def _lowest_numpy(stranger: Stranger) -> Iterator[Row]:
    """The lowest numpy that this Python can have."""
    for version in _LOWEST_NUMPY:
        row = stranger.install("oplet", f"numpy=={version}")
        if row.verdict == "ok" or version == _LOWEST_NUMPY[-1]:
            yield row
            break
    yield stranger.runs_a_model(f"numpy {version} ")


def _newest_numpy(stranger: Stranger) -> Iterator[Row]:
    """The newest numpy that this Python can have, whatever else would ask for an older one."""
    yield stranger.install("oplet")
    yield stranger.install("numpy", "--upgrade", step="pip install --upgrade numpy")
    yield stranger.runs_a_model()


def _author(stranger: Stranger) -> Iterator[Row]:
    """The tests of the package that is there to be copied."""
    yield stranger.install("oplet-atan-op", "oplet-testing", "pytest", "hypothesis")
    yield stranger.units("atan_op")


#: Rows of steps, each in an environment of its own.
STEPS = {
    "oplet": _first, "core": _core, "fast": _fast, "all": _everything, "lowest-numpy": _lowest_numpy, "newest-numpy": _newest_numpy, "author": _author,
}  # fmt: skip


#: Rows that can be taken on another platform: the others make environments, or take as long as an emulator makes of them.
_ABROAD = ("oplet", "core", "fast")


def walk(python: str | Land, address: str, steps: Sequence[str]) -> Iterator[Row]:
    """Take rows of steps with a Python; a row ends where a step does not succeed.

    Args:
        python: the Python, or that of another platform.
        address: where the folder with the index is served.
        steps: names of `STEPS`.
    """
    for name in steps:
        with tempfile.TemporaryDirectory(prefix="oplet-rehearsal-") as place:
            try:
                made = Abroad if isinstance(python, Land) else Stranger
                stranger = made(python, address, Path(place), name)  # type: ignore[arg-type]
            except (OSError, subprocess.CalledProcessError) as error:
                yield Row(
                    str(python), name, "a virtual environment", "failed", 0.0, said=str(getattr(error, "stderr", "") or error)
                )
                continue
            for row in STEPS[name](stranger):
                yield row
                if row.verdict != "ok":
                    break


def table(rows: Sequence[Row]) -> str:
    """The rows as text, in columns."""
    lines = [("Python", "steps", "step", "verdict", "s", "packages", "MB", "said")]
    for row in rows:
        ours = [each for each in row.packages if each.startswith("oplet")]
        count = f"{len(ours)}+{len(row.packages) - len(ours)}" if row.packages else ""
        size = f"{row.megabytes:.1f}" if row.packages else ""
        words = " ".join(row.said.split())
        said = words[:160] if row.verdict == "ok" else words[-160:]
        lines.append((row.python, row.steps, row.step, row.verdict, f"{row.seconds:.1f}", count, size, said))
    widths = [max(len(line[column]) for line in lines) for column in range(7)]
    return "".join(
        "  ".join([*(text.ljust(width) for text, width in zip(line, widths)), line[7]]).rstrip() + "\n" for line in lines
    )


def _write(folder: Path, rows: Sequence[Row], sums: Mapping[str, str]) -> None:
    files = {path: {"bytes": (folder / "dist" / path).stat().st_size, "sha256": digest} for path, digest in sums.items()}
    (folder / "rehearsal.json").write_text(
        json.dumps({"rows": [row._asdict() for row in rows], "files": files}, indent=1) + "\n", "utf-8"
    )
    text = "".join(f"{told['sha256']}  {told['bytes']:>10,}  {path}\n" for path, told in files.items())
    (folder / "rehearsal.txt").write_text(f"{table(rows)}\n(packages: this project's + others')\n\n{text}", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Take all steps; returns 1 if one failed."""
    from scripts import release_files

    parser = argparse.ArgumentParser(prog="python -m scripts.rehearsal", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", action="append", help="may be repeated; this one by default")
    parser.add_argument("--steps", nargs="+", choices=STEPS, default=list(STEPS))
    parser.add_argument("--built", action="store_true", help="take the files that lie in FOLDER/dist")
    parser.add_argument("--objects", action="store_true", help="the second build uses the first one's object files")
    parser.add_argument("--emulated", action="append", default=[], choices=LEVELS, help="a processor; may be repeated")
    parser.add_argument(
        "--musl", action="append", default=[], metavar="PYTHON", help="one that is linked with musl; may be repeated"
    )
    given = parser.parse_args(arguments)
    folder = given.folder.resolve()
    dist, rows = folder / "dist", list[Row]()

    def note(row: Row) -> None:
        rows.append(row)
        print(table([row]).splitlines()[1], flush=True)

    def checked(step: str, action: Callable[[], str]) -> None:
        start = time.perf_counter()
        told = action()
        note(Row("", "files", step, "failed" if told else "ok", round(time.perf_counter() - start, 1), said=told))

    lands = list[Land]()
    for name, python in [*((name, "") for name in given.emulated), *(("musl", python) for python in given.musl)]:
        try:
            lands.append(musl(python) if python else emulated(name))
        except (Unavailable, OSError, subprocess.CalledProcessError) as error:
            note(Row("", name, "a Python for it", "failed", 0.0, said=str(error)))
    platforms = list(dict.fromkeys(land.platform for land in lands))
    if not given.built:
        shutil.rmtree(dist, ignore_errors=True)
        checked("build", lambda: build(dist, platforms=platforms))
        checked(
            "build again: the same bytes",
            lambda: rebuild(folder, packages.objects() if given.objects else None, platforms=platforms),
        )
    checked("twine check --strict", lambda: check(dist))
    checked("contents", lambda: look(folder))
    release_files.main([str(dist)])
    sums = release_files.checksums(dist)
    index(folder)
    with served(folder) as address:
        pythons: list[str | Land] = [*(given.python or [sys.executable] * (not lands)), *lands]
        for each in pythons:
            steps = [name for name in given.steps if name in _ABROAD or not isinstance(each, Land)]
            for row in walk(each, address, steps):
                note(row)
                _write(folder, rows, sums)
    _write(folder, rows, sums)
    return int(any(row.verdict == "failed" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
