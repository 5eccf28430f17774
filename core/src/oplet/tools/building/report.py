"""What a selective build saved: ops, modules, bytes, and the time until it is imported or has an answer.

Times are those of fresh processes that take turns, so that the machine's moods fall on both sides alike; believe the ratios. Both sides
have the same done: the same ops registered and their kernels imported, from modules that are compiled already, whether or not the environment
lets Python keep compiled modules, by an oplet that sees no plugins but those that the build was cut out of.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from oplet.model.files.atomic_write import write_atomically
from oplet.plugins.manager import PluginManager
from oplet.plugins.plugin import PluginInfo
from oplet.tools.building.build import BuiltWheel
from oplet.tools.building.cutting.cutting import Cut
from oplet.tools.building.error import BuildError
from oplet.tools.building.packages import find_package
from oplet.tools.building.packing.app import Program
from oplet.tools.building.packing.programs import BuiltProgram
from oplet.tools.building.sources import Kernel
from oplet.tools.children import TimeoutExpired, run_python
from oplet.tools.running.pictures import PICTURES_NEED

__all__ = ["BeforeAfter", "Report", "make_report"]

_ROUNDS = 5
_TIMEOUT = 120

#: Both halves import numpy first, which is the same for both.
_IMPORT_KERNELS = """
import importlib, json, sys, time
import numpy
from oplet import Interpreter, MutableOpResolver
modules, ops = json.loads(sys.argv[1])
start = time.perf_counter()
resolver = MutableOpResolver()
for place in modules:
    module, _, attribute = place.partition(":")
    target = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        target = getattr(target, name)
    target.register_ops(resolver=resolver)
for op, kind, version in ops:
    key = op if kind == "custom" else kind != "composite" and importlib.import_module("oplet").BuiltinOperator[op]
    if (resolver.find_composite(op, version) if kind == "composite" else resolver.find_op(key, version)) is None:
        sys.exit(f"nothing serves {op} version {version}")
print(time.perf_counter() - start)
"""
_IMPORT_ALL = """
import json, sys, time
import numpy
_, ops = json.loads(sys.argv[1])
start = time.perf_counter()
from oplet import BuiltinOperator, Interpreter, PluginManager
resolver = PluginManager().resolver()
for op, kind, version in ops:
    key = op if kind == "custom" else kind != "composite" and BuiltinOperator[op]
    if (resolver.find_composite(op, version) if kind == "composite" else resolver.find_op(key, version)) is None:
        sys.exit(f"nothing serves {op} version {version}")
print(time.perf_counter() - start)
"""
_ANSWER = """
import sys
from oplet.tools.running.run import run_model
for value in run_model(sys.argv[1]).outputs:
    print(value.name, value.array.shape)
"""


@dataclass(frozen=True)
class BeforeAfter:
    """A number of the installed packages, and of what was built."""

    before: float
    after: float

    @property
    def ratio(self) -> float:
        """After by before; 1 where there was nothing before."""
        return self.after / self.before if self.before else 1.0

    def as_dict(self) -> dict[str, float]:
        """The same for JSON."""
        return {"before": self.before, "after": self.after, "ratio": round(self.ratio, 4)}


@dataclass
class Report:
    """What was saved.

    Attributes:
        kept: the names of the ops that are in the build.
        dropped: the names of the ops of the source packages that are not.
        kernels_modules: modules of the op packages.
        kernels_bytes: bytes of their files.
        core_modules: modules of oplet; None where the build has no core.
        core_bytes: bytes of their files.
        import_seconds: until the kernels (with the core: oplet and the kernels) are imported, numpy apart; None if not measured.
        answer_seconds: from the start of the process to the outputs of the first model; None if not measured, or no program.
        compared: what the times compare, in a sentence; "" where none were measured.
        needs: what a build with the core needs where it runs, in a sentence; "" for kernels alone, which need oplet.
    """

    kept: list[str]
    dropped: list[str]
    kernels_modules: BeforeAfter
    kernels_bytes: BeforeAfter
    core_modules: BeforeAfter | None = None
    core_bytes: BeforeAfter | None = None
    import_seconds: BeforeAfter | None = None
    answer_seconds: BeforeAfter | None = None
    compared: str = ""
    needs: str = ""
    notes: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """The same for JSON."""
        result = {name: value for name, value in asdict(self).items() if value is not None}
        for name, value in vars(self).items():
            if isinstance(value, BeforeAfter):
                result[name] = value.as_dict()
        return result

    def rows(self) -> list[tuple[str, str, str, str]]:
        """What is counted, before, after, and how they compare, for a table."""
        ops = BeforeAfter(len(self.kept) + len(self.dropped), len(self.kept))
        counted: list[tuple[str, BeforeAfter | None]] = [
            ("ops", ops),
            ("modules of kernels", self.kernels_modules),
            ("bytes of kernels", self.kernels_bytes),
            ("modules of the core", self.core_modules),
            ("bytes of the core", self.core_bytes),
        ]
        rows = [(what, f"{v.before:,.0f}", f"{v.after:,.0f}", f"{v.ratio:.1%}") for what, v in counted if v is not None]
        imported = "import of the kernels, ms" if self.core_bytes is None else "import of core and kernels, ms"
        timed = [(imported, self.import_seconds), ("start to answer, ms", self.answer_seconds)]
        rows += [(what, f"{v.before * 1e3:.0f}", f"{v.after * 1e3:.0f}", f"{v.ratio:.1%}") for what, v in timed if v is not None]
        return rows


def make_report(built: BuiltWheel, plugins: PluginManager, *, model: str | None = None, timing: bool = True) -> Report:
    """Compare a build with what it was cut out of.

    Args:
        built: the build.
        plugins: where it was cut out.
        model: the file of its first model, which a program and oplet both run.
        timing: also measure times, in processes of their own.
    """
    cut = built.cut
    made = built.made if isinstance(built, BuiltProgram) else None
    sources = {source.name for source in cut.sources}
    infos = [info for info in plugins.plugins() if info.distribution in sources]
    kept = sorted({kernel.op for kernel in cut.kernels})
    dropped = sorted({op for info in infos for op, _, _ in info.ops} - set(kept))
    tops = sorted(
        {name.partition(".")[0] for name in cut.modules.values()} | {i.module.partition(":")[0].partition(".")[0] for i in infos}
    )
    modules, size = _installed(tops)
    files = cut.files if made is None else made.kernels
    report = Report(kept, dropped, BeforeAfter(modules, _modules(files)), BeforeAfter(size, _size(files)))
    if made is not None:
        modules, size = _installed(["oplet"])
        report.core_modules = BeforeAfter(modules, _modules(made.core))
        report.core_bytes = BeforeAfter(size, _size(made.core))
        report.needs = _needs(made)
    if timing:
        try:
            with tempfile.TemporaryDirectory(prefix="oplet-report-") as cache:
                environment = _environment(infos, cache)
                report.import_seconds = _import_seconds(cut, infos, made, environment)
                report.compared = _compared(sorted(sources), made)
                if isinstance(built, BuiltProgram) and built.is_archive and model is not None:
                    inside = next(iter(built.made.models), None)
                    model, archive = os.path.abspath(model), built.path.resolve()
                    arguments = [model] if inside is None else ["--model", inside]
                    report.answer_seconds = _answer_seconds(archive, model, arguments, environment)
        except BuildError as error:
            report.notes.append(str(error))
    return report


def _needs(made: Program) -> str:
    packages = " and ".join(requirement for _, requirement in made.requires)
    if "oplet/tools/running/pictures.py" not in made.core:
        return f"needs {packages}, nothing else"
    return f"needs {packages}, nothing else; {PICTURES_NEED}"


def _compared(sources: Sequence[str], made: Program | None) -> str:
    """What stands in the columns of times."""
    what = (
        "oplet, these ops registered, their kernels imported"
        if made is not None
        else "these ops registered, their kernels imported"
    )
    return (
        f"times: {what}; installed is oplet with {' and '.join(sources)} alone. Medians of {_ROUNDS} fresh processes each that took turns, "
        "all from compiled modules; imports begin when numpy is there."
    )


def _installed(tops: Iterable[str]) -> tuple[int, int]:
    """Modules and bytes of installed packages."""
    packages = [find_package(top) for top in tops]
    modules = [path for package in packages for path in package.modules.values() if path is not None]
    files = [*modules, *(path for package in packages for path in package.data.values())]
    return len(modules), sum(path.stat().st_size for path in files)


def _modules(files: Mapping[str, bytes]) -> int:
    return sum(path.endswith(".py") for path in files)


def _size(files: Mapping[str, bytes]) -> int:
    return sum(map(len, files.values()))


def _environment(infos: Iterable[PluginInfo], cache: str) -> dict[str, str]:
    """What both sides are to find alike.

    What pip installed comes compiled, what was built did not, and the environment may keep Python from writing: a cache for both.
    A plugin that the build was not cut out of would be loaded on one side only.
    """
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
    return compiled | {"OPLET_PLUGINS": ",".join(sorted(i.name for i in infos)), "OPLET_DISABLE_PLUGINS": "", "OPLET_PREFER": ""}


def _import_seconds(cut: Cut, infos: Sequence[PluginInfo], made: Program | None, environment: Mapping[str, str]) -> BeforeAfter:
    ops = [(kernel.op, _kind(kernel), kernel.max_version) for kernel in cut.kernels]
    before = json.dumps([sorted(info.module for info in infos), ops])
    after = json.dumps([[cut.name], ops])
    script = _IMPORT_KERNELS if made is None else _IMPORT_ALL
    with tempfile.TemporaryDirectory(prefix="oplet-report-") as folder:
        for path, content in {**cut.files, **({**made.core, **made.kernels} if made is not None else {})}.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        found = f"import sys; sys.path.insert(0, {folder!r})\n"
        commands = {"before": ["-c", script, before], "after": ["-c", found + script, after]}
        times = _interleaved(commands, environment, reported=True)
    return BeforeAfter(times["before"], times["after"])


def _kind(kernel: Kernel) -> str:
    return "composite" if kernel.composite else "custom" if kernel.custom else "builtin"


def _answer_seconds(archive: Path, model: str, arguments: list[str], environment: Mapping[str, str]) -> BeforeAfter:
    commands = {"before": ["-c", _ANSWER, model], "after": [str(archive), *arguments]}
    times = _interleaved(commands, environment, reported=False)
    return BeforeAfter(times["before"], times["after"])


def _interleaved(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], *, reported: bool) -> dict[str, float]:
    """Median seconds of Python's commands that take turns: those that they print, or from their start to their end."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(_ROUNDS + 1):
        for name, command in sorted(commands.items(), reverse=bool(number % 2)):  # neither always follows the other
            seconds = _seconds(command, environment, reported)
            if number:  # the first one compiles
                times[name].append(seconds)
    return {name: statistics.median(values) for name, values in times.items()}


def _seconds(command: Sequence[str], environment: Mapping[str, str], reported: bool) -> float:
    start = time.perf_counter()
    try:
        done = run_python(command, environment=environment, capture_output=True, text=True, timeout=_TIMEOUT)
    except TimeoutExpired:
        raise BuildError(f"Times were not measured: a process took more than {_TIMEOUT} seconds.") from None
    seconds = time.perf_counter() - start
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise BuildError(f"Times were not measured: {reason}")
    return float(done.stdout.split()[-1]) if reported else seconds
