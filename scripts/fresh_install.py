"""Check of README's commands and code in a fresh copy of this repository, with fresh environments and empty caches.

usage: python -m scripts.fresh_install [--python PYTHON ...] [--with builtin_ops] [--with everything] [--json FILE]

For each Python and each set of packages, `scripts/demo.sh` makes the environment; then every command of README's list and README's two
pieces of code are run. The home folder is empty, so that pip and oplet find no caches. Prints a table; the exit code is 1 if
anything failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["COMMANDS", "SETS", "Step", "code_of_readme", "copy_clone", "fresh_user", "verbs_of_readme", "walk"]

ROOT = Path(__file__).resolve().parents[1]
DIGITS = "examples/digits"

#: The sets of packages: those of the demo, or all of the repository.
SETS = ("builtin_ops", "everything")
#: pip's message if a package has no wheel for this Python; such a step is not a failure.
_NO_WHEEL = "No matching distribution found for "

#: A program that was written for LiteRT.
_PROGRAM = """
import sys
from tflite_runtime.interpreter import Interpreter
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape)
"""


class Command(NamedTuple):
    """A command of README's list, with values in place of the placeholders.

    Attributes:
        arguments: the arguments of `oplet`.
        says: a text that the output must contain.
        delegate: whether it needs a delegate, which the set "builtin_ops" lacks.
    """

    arguments: str
    says: str
    delegate: bool = False


#: README's list, in its order; `M` is a quantized model, `F` a float model, and `W` an empty folder.
COMMANDS = (
    Command(f"run M --input {DIGITS}/pictures/7.png --labels {DIGITS}/labels.txt --top 3 --output W/y.npz", "seven"),
    Command("run F --delegate example", "by the delegate example", delegate=True),
    Command("behind W/program.py M", "(1, 10)"),
    Command("doctor M", "All 7 operators are served."),
    Command("inspect M", "CONV_2D"),
    Command("inspect M --json", '"CONV_2D"'),
    Command("partition F --delegate example --svg W/p.svg", "example", delegate=True),
    Command("explore F -o W/graph.html", "graph.html"),
    Command("compare F --delegate example --layers", "delegate", delegate=True),
    Command("benchmark M --num-runs 3 --min-secs 0.1 --profile-html W/p.html --trace W/t.json", "CONV_2D"),
    Command("benchmark M --num-runs 3 --min-secs 0.1 --compare litert", "litert", delegate=True),
    Command("tune M --num-threads 2", "oplet"),
    Command("versions M --nodes", "CONV_2D"),
    Command("versions M --against 2.17.0", "2.17.0"),
    Command("rewrite M -o W/small.tflite --strip", "small.tflite"),
    Command("select M -o W/resolver.py --lock W/oplet.lock.json", "CONV_2D"),
    Command("select M --check W/oplet.lock.json", ""),
    Command("build M --name kernels -o W/dist --no-timing", "kernels-1.0-py3-none-any.whl"),
    Command("build M --name alone --with-core --with-model -o W/dist --no-timing", "alone-1.0-py3-none-any.whl"),
    Command("build M --name app --with-model -o W/app.pyz --no-timing", "app.pyz"),
    Command("plugins", "oplet-builtin-ops"),
    Command("plugins --json", "oplet-builtin-ops"),
    Command("new-op Stranger --directory W/op", "oplet_stranger_op"),
    Command("new-op TANH --builtin --directory W/builtin", "tanh"),
    Command("new-delegate stranger --directory W/delegate", "oplet_stranger_delegate"),
)


class Step(NamedTuple):
    """The result of one step.

    Attributes:
        what: the command, or a description of the step.
        verdict: "ok", "failed" or "no wheel".
        seconds: its duration.
        told: the end of its output, if it is not ok.
    """

    what: str
    verdict: str
    seconds: float
    told: str = ""


def verbs_of_readme() -> list[str]:
    """The commands that README lists, in its order."""
    text = (ROOT / "README.md").read_text("utf-8")
    return re.findall(r"^    oplet ([a-z-]+)", text.partition("## The command")[2].partition("\n## ")[0], re.MULTILINE)


def code_of_readme() -> list[str]:
    """README's pieces of Python."""
    return re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def walk(python: str, packages: str, folder: Path) -> Iterator[Step]:
    """Run all steps with one Python.

    Args:
        python: the Python interpreter.
        packages: one of SETS.
        folder: an empty folder to work in.
    """
    clone, home, work = (folder / name for name in ("clone", "home", "work"))
    copy_clone(clone)
    home.mkdir()
    work.mkdir()
    environment = fresh_user(home) | {"PYTHON": python, "OPLET_VENV": str(folder / "venv")}
    ran = _Runner(clone, environment)
    demo = ran("scripts/demo.sh", ["sh", "scripts/demo.sh"], "seven")
    yield demo
    if demo.verdict != "ok":
        return
    bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(bin / "python"), "-m", "pip", "install", "--quiet"]
    yield ran("pip install tools[graph] build", [*pip, "./plugins/tools[graph]", "./plugins/build"])
    if packages == "everything":
        for plugin in sorted(path.parent.name for path in (clone / "plugins").glob("*/pyproject.toml")):
            if plugin not in ("build", "predictor", "tools"):
                yield ran(f"pip install plugins/{plugin}", [*pip, f"./plugins/{plugin}"])
    (work / "program.py").write_text(_PROGRAM)
    (work / "code.py").write_text(_readme_as_a_program())
    model = f"{DIGITS}/digits_int8.tflite"
    models = {"M": model, "F": f"{DIGITS}/digits_float32.tflite"}
    for command in COMMANDS:
        if command.delegate and packages != "everything":
            continue
        words = [models.get(word) or re.sub(r"^W(?=/|$)", str(work), word) for word in command.arguments.split()]
        yield ran(f"oplet {command.arguments}", [str(bin / "oplet"), *words], command.says)
    yield ran("README's code", [str(bin / "python"), str(work / "code.py"), model, "examples/atan/atan.tflite"], "(1, 10)\nTrue")
    yield from _programs(ran, bin, python, work, folder)


def _programs(ran: _Runner, bin: Path, python: str, work: Path, folder: Path) -> Iterator[Step]:
    """Build a .pyz program and run it where only numpy is installed, then with Pillow too."""
    subprocess.run([python, "-m", "venv", str(folder / "alone")], check=True, capture_output=True)
    alone = str(folder / "alone" / bin.name / "python")
    pip = [alone, "-m", "pip", "install", "--quiet"]
    picture = [
        alone,
        str(work / "app.pyz"),
        "--input",
        f"{DIGITS}/pictures/7.png",
        "--labels",
        f"{DIGITS}/labels.txt",
        "--top",
        "1",
    ]
    yield ran("pip install numpy", [*pip, "numpy"])
    yield ran("app.pyz with numpy alone", [alone, str(work / "app.pyz")], "(")
    yield ran("app.pyz with a picture, without Pillow", picture, "pip install pillow", code=1)
    yield ran("pip install pillow", [*pip, "pillow"])
    yield ran("app.pyz with a picture", picture, "seven")


def _readme_as_a_program() -> str:
    """README's code as a program: with a model, a value and a print added."""
    drop_in, op = code_of_readme()
    lines = [
        "import sys, numpy",
        "x = numpy.zeros((1, 8, 8, 1), numpy.int8)",
        drop_in.replace('"model.tflite"', "sys.argv[1]"),
        "print(y.shape)",
        op,
        "from oplet import MutableOpResolver",
        "resolver = MutableOpResolver()",
        "register_ops(resolver)",
        "custom = Interpreter(sys.argv[2], op_resolver=resolver)",
        "y = custom.get_signature_runner()(x=numpy.float32([0.5]))['y']",
        "print(bool(abs(y[0] - numpy.arctan(1.5)) < 1e-6))",
    ]
    return "\n".join(lines) + "\n"


class _Runner:
    """Runs commands in the copy of the repository."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder, self._environment = folder, environment

    def __call__(self, what: str, command: Sequence[str], says: str = "", code: int = 0) -> Step:
        start = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        seconds = time.perf_counter() - start
        told = done.stdout + done.stderr
        if done.returncode == code and says in told and "Traceback (most recent call last)" not in told:
            return Step(what, "ok", seconds)
        verdict = "no wheel" if _NO_WHEEL in told else "failed"
        return Step(what, verdict, seconds, told.strip()[-2000:])


def copy_clone(target: Path) -> None:
    """Copy the files that git tracks, and new files that it does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)


def fresh_user(home: Path) -> dict[str, str]:
    """Environment variables of a fresh user; only pip's are kept, as they name the package index."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "OPLET_", "XDG_", "VIRTUAL_ENV"))}
    settings = Path.home() / ".config" / "pip" / "pip.conf"
    if settings.is_file():
        kept.setdefault("PIP_CONFIG_FILE", str(settings))
    return kept | {"HOME": str(home), "USERPROFILE": str(home), "TMPDIR": str(home), "PIP_NO_CACHE_DIR": "1"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all steps with every requested Python and set; returns 1 if a step failed."""
    parser = argparse.ArgumentParser(prog="python -m scripts.fresh_install", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", help="may be repeated; this one by default")
    parser.add_argument("--with", dest="packages", action="append", choices=SETS, help="may be repeated; both by default")
    parser.add_argument("--json", type=Path, help="also write all steps here")
    given = parser.parse_args(arguments)
    found: dict[str, dict[str, list[Step]]] = {}
    for python in given.python or [sys.executable]:
        for packages in given.packages or SETS:
            with tempfile.TemporaryDirectory(prefix="oplet-fresh-") as folder:
                steps = found.setdefault(python, {})[packages] = []
                for step in walk(python, packages, Path(folder)):
                    steps.append(step)
                    print(f"{python}  {packages}  {step.verdict}  {step.seconds:.1f} s  {step.what}", flush=True)
                    if step.told:
                        print(step.told, flush=True)
    print("\n| Python | packages | ok | no wheel | failed |\n|---|---|---|---|---|")
    for python, sets in found.items():
        for packages, steps in sets.items():
            counts = [sum(step.verdict == verdict for step in steps) for verdict in ("ok", "no wheel", "failed")]
            print(f"| {python} | {packages} | {' | '.join(map(str, counts))} |")
    if given.json:
        told = {python: {p: [step._asdict() for step in steps] for p, steps in sets.items()} for python, sets in found.items()}
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    return int(any(step.verdict == "failed" for sets in found.values() for steps in sets.values() for step in steps))


if __name__ == "__main__":
    sys.exit(main())
