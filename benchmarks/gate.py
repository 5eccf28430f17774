"""Whether a change makes small things slower: measured in turns with the commit that it began from, and judged by ratio alone.

    python -m benchmarks.gate [--base REVISION] [--limit 1.05] [--turns 9]

Both trees answer in child processes of this Python, with the packages that are installed here but sources of the tree, in turns, with a
cache folder each. What is counted are the instructions that the processor carries out for the program, where the system counts them;
elsewhere the time that it spends. Of each measurement the median of the ratios of its turns is printed, now over before. One above the limit is
measured once more, and the exit code is 1 where it is above it again. Kernels are numpy's, and once more compiled where what
oplet-compiled-ops is built with is installed; those of both trees are then built first, which takes minutes where they have changed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.changes import ROOT, base, export

from oplet_tools.processes import run_python

__all__ = ["COUNT", "Measured", "Tree", "above", "main", "measure", "ratios", "table"]

#: Begins every program: `count()` tells what this process has used so far, in units of UNIT. It counts its own threads as well.
COUNT = """
import time
def counter():
    import ctypes, os, platform, struct, sys
    call = {"x86_64": 298, "aarch64": 241}.get(platform.machine())
    if sys.platform != "linux" or call is None:
        return time.process_time_ns, "nanoseconds"
    attributes = ctypes.create_string_buffer(128)
    # Instructions of this process and of threads that it starts, without the system's own.
    struct.pack_into("IIQQQQQ", attributes, 0, 0, 128, 1, 0, 0, 0, 0b1100010)
    file = ctypes.CDLL(None).syscall(call, attributes, 0, -1, -1, 0)
    if file < 0:
        return time.process_time_ns, "nanoseconds"
    return lambda: int.from_bytes(os.read(file, 8), sys.byteorder), "instructions"
count, UNIT = counter()
"""

#: Its arguments: a model of one node, and one of many.
START = """
before = count()
import sys
from oplet import Interpreter
interpreter = Interpreter(sys.argv[2], num_threads=1)
interpreter.allocate_tensors()
interpreter.invoke()
interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
used = {"start to the first answer": count() - before}
"""

INSIDE = """
import sys
from oplet import Interpreter

def used_by(work, times, rounds=7):
    # The least of the rounds: what else runs on the machine only adds.
    work()
    found = []
    for _ in range(rounds):
        before = count()
        for _ in range(times):
            work()
        found.append((count() - before) / times)
    return min(found)

def opened(content):
    interpreter = Interpreter(model_content=content, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter

one, many = (open(path, "rb").read() for path in sys.argv[1:3])
# What follows a model's tables belongs to none of them, so that each of these is new to everything that remembers models.
unseen = iter([many + number.to_bytes(8, "little") for number in range(1, 100)])
used = {
    "open and allocate, unseen": used_by(lambda: opened(next(unseen)), 5),
    "invoke, one node": used_by(opened(one).invoke, 2000),
    "invoke, digits": used_by(opened(many).invoke, 200),
}
"""
END = """
import json
print(json.dumps({"unit": UNIT, "used": used}))
"""
PROGRAMS = (START, INSIDE)


class Tree(NamedTuple):
    """Sources that are measured, and what they keep between runs."""

    sources: Path
    caches: Path


class Measured(NamedTuple):
    """What was counted: in which unit, and of each measurement, a number for each turn."""

    unit: str
    used: dict[str, list[float]]


#: The package of compiled kernels in a tree.
_COMPILED = Path("plugins", "compiled_ops")
#: What the variables of users' settings begin with.
_SETTINGS = ("OPLET_", "PYTHON")


def environment(tree: Tree, compiled: bool) -> dict[str, str]:
    """The variables of a process that is measured: no other of oplet's, and one thread."""
    paths = [tree.sources / "core" / "src", *sorted(tree.sources.glob("plugins/*/src"))]
    kept = {key: text for key, text in os.environ.items() if not key.startswith(_SETTINGS)}
    kept |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    kept |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONHASHSEED": "0", "OPLET_CACHE_DIR": str(tree.caches)}
    return kept if compiled else {**kept, "OPLET_PREFER": "oplet-builtin-ops"}


def run(tree: Tree, models: Sequence[Path], compiled: bool) -> tuple[str, dict[str, float]]:
    """What all measurements count in one turn.

    Raises:
        RuntimeError: a program failed, with what it said.
    """
    unit, used = "", dict[str, float]()
    for program in PROGRAMS:
        arguments = ["-c", COUNT + program + END, *map(str, models)]
        done = run_python(arguments, environment=environment(tree, compiled), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"A measurement of {tree.sources} ended with {done.returncode}: {done.stderr[-2000:]}")
        told = json.loads(done.stdout.splitlines()[-1])
        unit = told["unit"]
        used |= told["used"]
    return unit, used


def measure(
    trees: Sequence[Tree],
    models: Sequence[Path],
    turns: int,
    compiled: bool = False,
    turn: Callable[..., tuple[str, dict[str, float]]] = run,
) -> list[Measured]:
    """Measure trees in turns, each turn in the other order than the one before; a turn that is not counted fills their caches.

    Args:
        trees: the trees.
        models: a model of one node and one of many.
        turns: how many turns are counted.
        compiled: whether kernels are compiled ones.
        turn: what measures one.
    """
    found = [Measured("", {}) for _ in trees]
    for tree in trees:
        # The plan of a model is kept when it is opened for the second time.
        for _ in range(2):
            turn(tree, models, compiled)
    for number in range(turns):
        order = range(len(trees)) if number % 2 == 0 else reversed(range(len(trees)))
        for index in order:
            unit, used = turn(trees[index], models, compiled)
            for name, count in used.items():
                found[index].used.setdefault(name, []).append(count)
            found[index] = Measured(unit, found[index].used)
    return found


def ratios(before: Measured, now: Measured) -> dict[str, float]:
    """Of each measurement the ratio, now over before: the median of those of the turns."""
    return {
        name: statistics.median(mine / other for mine, other in zip(counts, before.used[name]))
        for name, counts in now.used.items()
        if name in before.used
    }


def above(repetitions: Sequence[Mapping[str, float]], limit: float) -> list[str]:
    """The measurements whose ratio is above the limit in each repetition."""
    return [name for name in repetitions[0] if all(found.get(name, 0.0) > limit for found in repetitions)]


def table(before: Measured, now: Measured, found: Mapping[str, float]) -> list[str]:
    """The measurements and their ratios, in lines."""
    lines = [f"{'now / before':44} {'before':>14} {'now':>14}  {now.unit}"]
    for name, ratio in found.items():
        counts = (statistics.median(each.used[name]) for each in (before, now))
        lines.append(f"{name:36} {ratio:7.3f} {' '.join(f'{count:14,.0f}' for count in counts)}")
    return lines


def judged(trees: Sequence[Tree], models: Sequence[Path], turns: int, limit: float, compiled: bool) -> list[str]:
    """The measurements that are above the limit twice; prints what it finds."""
    repetitions: list[dict[str, float]] = []
    for _ in range(2):
        before, now = measure(trees, models, turns, compiled)
        repetitions.append(ratios(before, now))
        print("\n".join([f"kernels: {'compiled' if compiled else 'numpy'}", *table(before, now, repetitions[-1])]), flush=True)
        if not above(repetitions, limit):
            break
    return above(repetitions, limit)


def can_compile(trees: Sequence[Tree]) -> bool:
    """Whether kernels can be compiled ones here: what builds them is installed, and all trees have them."""
    installed = all(importlib.util.find_spec(name) is not None for name in ("oplet_compiled_ops", "numba", "ziglang"))
    return installed and all((tree.sources / _COMPILED / "src/oplet_compiled_ops/library").is_dir() for tree in trees)


def build_kernels(tree: Tree) -> None:
    """Build the library of a tree's compiled kernels for this processor; those that are alike in both trees are compiled once.

    Raises:
        RuntimeError: the build failed, with what it said.
    """
    arguments = ["-m", "oplet_compiled_ops.compiling", "--objects", str(ROOT / _COMPILED / "build" / "objects")]
    done = run_python(arguments, environment=environment(tree, compiled=True), capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The kernels of {tree.sources} cannot be built:\n{done.stdout}{done.stderr}")


def one_node() -> bytes:
    """A model of one node, whose kernel does next to nothing."""
    from oplet_testing import Spec, one_op_model

    return one_op_model("ABS", [Spec("float32", [4])], [Spec("float32", [4])])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and judge; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--base", default="", metavar="REVISION", help="by default where the branch left the main one, or the commit before"
    )
    parser.add_argument("--limit", type=float, default=1.05, help="the ratio that is too much")
    parser.add_argument("--turns", type=int, default=9)
    given = parser.parse_args(arguments)
    revision = given.base or base()
    if not revision:
        sys.exit("There is no commit before this one to compare with; name one with --base.")
    slower = []
    with tempfile.TemporaryDirectory(prefix="oplet-gate-") as name:
        place = Path(name)
        export(revision, place / "before")
        models = [place / "one.tflite", ROOT / "examples" / "digits" / "digits_int8.tflite"]
        models[0].write_bytes(one_node())
        trees = [Tree(place / "before", place / "caches-before"), Tree(ROOT, place / "caches-now")]
        for compiled in (False, True):
            if not compiled or can_compile(trees):
                if compiled:
                    for tree in trees:
                        build_kernels(tree)
                caches = [tree._replace(caches=tree.caches / str(compiled)) for tree in trees]
                for tree in caches:
                    tree.caches.mkdir(parents=True)
                slower += judged(caches, models, given.turns, given.limit, compiled)
    for name in slower:
        print(f"{name}: above {given.limit:g} in two of two repetitions, beside {revision}", file=sys.stderr)
    return int(bool(slower))


if __name__ == "__main__":
    for setting in [name for name in os.environ if name.startswith(_SETTINGS)]:
        del os.environ[setting]  # processes that are measured inherit the rest
    sys.exit(main())
