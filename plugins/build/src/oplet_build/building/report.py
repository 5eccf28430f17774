"""Report of what a selective build saves: ops, modules, bytes, import time, and time from process start to the first result.

Times are measured in fresh processes that alternate between the installed packages and the build, so that changes in the machine's speed affect
both alike; the ratios are reliable, the milliseconds less so. Both sides register the same ops and import their kernels from compiled modules,
and oplet sees only the plugins that the build was cut out of.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from oplet import PluginManager, write_atomically
from oplet.toolkit import PluginInfo
from oplet_build.building.build_program import BuiltProgram
from oplet_build.building.build_wheel import BuiltWheel
from oplet_build.building.cutting.cut_core import core_packages
from oplet_build.building.cutting.cut_kernels import CutPackage
from oplet_build.building.distributions import find_package
from oplet_build.building.error import BuildError
from oplet_build.building.kernels import Kernel
from oplet_build.building.packing.payload import Payload
from oplet_tools.processes import TimeoutExpired, run_python
from oplet_tools.running.pictures import PICTURES_NEED

__all__ = ["BeforeAfter", "Report", "make_report"]

_ROUNDS = 3
_TIMEOUT = 120
#: Packages that running a model takes in a build alone, so that they do not count as what it saves.
_OF_BUILDS = ("oplet_build",)
_PICTURES = "oplet_tools/running/pictures.py"

#: Both scripts import numpy before they measure.
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
from oplet_tools.running.run import run_model
for value in run_model(sys.argv[1]).outputs:
    print(value.name, value.array.shape)
"""


@dataclass(frozen=True)
class BeforeAfter:
    """A number for the installed packages (before) and for the build (after)."""

    before: float
    after: float

    @property
    def ratio(self) -> float:
        """`after / before`; 1 if `before` is 0."""
        return self.after / self.before if self.before else 1.0

    def as_dict(self) -> dict[str, float]:
        """Return a dictionary of the numbers, for JSON."""
        return {"before": self.before, "after": self.after, "ratio": round(self.ratio, 4)}


@dataclass
class Report:
    """Savings of a build: sizes and times of the installed packages (before) and of the build (after)."""

    kept: list[str]  #: Names of the ops in the build.
    dropped: list[str]  #: Names of the other ops of the source packages.
    kernels_modules: BeforeAfter  #: The number of modules of the op packages.
    kernels_bytes: BeforeAfter  #: The bytes of these modules' files.
    #: The number of modules of oplet, and of oplet-tools where the build has a command; None if it has no core.
    core_modules: BeforeAfter | None = None
    core_bytes: BeforeAfter | None = None  #: The bytes of these modules' files; None if the build has no core.
    #: Seconds to import the kernels (with the core: oplet and the kernels), without numpy; None if not measured.
    import_seconds: BeforeAfter | None = None
    #: Seconds from process start to the first model's outputs; None if not measured, or for no program.
    answer_seconds: BeforeAfter | None = None
    compared: str = ""  #: A sentence that says which runs the times compare; "" without times.
    needs: str = ""  #: A sentence that says what a build with the core requires; "" for kernels alone, which require oplet.
    notes: list[str] = field(default_factory=list)  #: Sentences on what could not be measured.

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary, for JSON, without quantities that were not measured."""
        result = {name: value for name, value in asdict(self).items() if value is not None}
        for name, value in vars(self).items():
            if isinstance(value, BeforeAfter):
                result[name] = value.as_dict()
        return result

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the report as rows of a table: quantity, before, after, ratio."""
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


def make_report(
    built: BuiltWheel,
    plugins: PluginManager,
    *,
    model: str | None = None,
    timing: bool = True,
    progress: Callable[[str, float], None] | None = None,
) -> Report:
    """Compare a build with the installed packages that it was extracted from.

    Args:
        built: the build.
        plugins: the plugins that it was extracted from.
        model: the file of its first model, which both the program and the installed oplet run; None to leave that time out.
        timing: also measure times, in separate processes.
        progress: called with the name of a measurement, and the fraction of it that is done, 0 to 1.
    """
    tell = progress or (lambda what, part: None)
    cut = built.cut
    payload = built.payload if isinstance(built, BuiltProgram) else None
    sources = {source.name for source in cut.sources}
    infos = [info for info in plugins.plugins() if info.distribution in sources]
    kept = sorted({kernel.op for kernel in cut.kernels})
    dropped = sorted({op for info in infos for op, _, _ in info.ops} - set(kept))
    tops = sorted(
        {name.partition(".")[0] for name in cut.modules.values()} | {i.module.partition(":")[0].partition(".")[0] for i in infos}
    )
    modules, size = _installed(tops)
    files = cut.files if payload is None else payload.kernels
    report = Report(kept, dropped, BeforeAfter(modules, _modules(files)), BeforeAfter(size, _size(files)))
    if payload is not None:
        modules, size = _installed(package for package in core_packages(payload.core) if package not in _OF_BUILDS)
        report.core_modules = BeforeAfter(modules, _modules(payload.core))
        report.core_bytes = BeforeAfter(size, _size(payload.core))
        report.needs = _needs(payload)
    if timing:
        try:
            with tempfile.TemporaryDirectory(prefix="oplet-report-") as cache:
                environment = _environment(infos, cache)
                report.import_seconds = _import_seconds(cut, infos, payload, environment, partial(tell, "measuring imports"))
                report.compared = _compared(sorted(sources), payload)
                if isinstance(built, BuiltProgram) and built.is_archive and model is not None:
                    inside = next(iter(built.payload.models), None)
                    model, archive = os.path.abspath(model), built.path.resolve()
                    arguments = [model] if inside is None else ["--model", inside]
                    report.answer_seconds = _answer_seconds(
                        archive, model, arguments, environment, partial(tell, "measuring starts")
                    )
        except BuildError as error:
            report.notes.append(str(error))
    return report


def _needs(payload: Payload) -> str:
    packages = " and ".join(requirement for _, requirement in payload.requires)
    if _PICTURES not in payload.core:
        return f"needs {packages}, nothing else"
    return f"needs {packages}, nothing else; {PICTURES_NEED}"


def _compared(sources: Sequence[str], payload: Payload | None) -> str:
    """Return a sentence on what the times compare: installed packages (`sources`) with the build."""
    what = (
        "oplet, these ops registered, their kernels imported"
        if payload is not None
        else "these ops registered, their kernels imported"
    )
    return (
        f"times: {what}; installed is oplet with {' and '.join(sources)} alone. Medians of {_ROUNDS} fresh processes each that took turns, "
        "all from compiled modules; imports begin when numpy is there."
    )


def _installed(tops: Iterable[str]) -> tuple[int, int]:
    """Count the modules of installed packages, and the bytes of their files; `tops` are the packages' names."""
    packages = [find_package(top) for top in tops]
    modules = [path for package in packages for path in package.modules.values() if path is not None]
    files = [*modules, *(path for package in packages for path in package.data.values())]
    return len(modules), sum(path.stat().st_size for path in files)


def _modules(files: Mapping[str, bytes]) -> int:
    return sum(path.endswith(".py") for path in files)


def _size(files: Mapping[str, bytes]) -> int:
    return sum(map(len, files.values()))


def _environment(infos: Iterable[PluginInfo], cache: str) -> dict[str, str]:
    """Return environment variables that make both sides comparable.

    Installed packages have compiled modules, a fresh build has none, and Python may be told not to write any: both sides get a cache.
    Other plugins are switched off: only the installed oplet would load them.
    """
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
    return compiled | {"OPLET_PLUGINS": ",".join(sorted(i.name for i in infos)), "OPLET_DISABLE_PLUGINS": "", "OPLET_PREFER": ""}


def _import_seconds(
    cut: CutPackage,
    infos: Sequence[PluginInfo],
    payload: Payload | None,
    environment: Mapping[str, str],
    tell: Callable[[float], None],
) -> BeforeAfter:
    ops = [(kernel.op, _kind(kernel), kernel.max_version) for kernel in cut.kernels]
    before = json.dumps([sorted(info.module for info in infos), ops])
    after = json.dumps([[cut.name], ops])
    script = _IMPORT_KERNELS if payload is None else _IMPORT_ALL
    with tempfile.TemporaryDirectory(prefix="oplet-report-") as folder:
        for path, content in {**cut.files, **({**payload.core, **payload.kernels} if payload is not None else {})}.items():
            file = Path(folder, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(file, content)
        found = f"import sys; sys.path.insert(0, {folder!r})\n"
        commands = {"before": ["-c", script, before], "after": ["-c", found + script, after]}
        times = _interleaved(commands, environment, tell, reported=True)
    return BeforeAfter(times["before"], times["after"])


def _kind(kernel: Kernel) -> str:
    return "composite" if kernel.composite else "custom" if kernel.custom else "builtin"


def _answer_seconds(
    archive: Path, model: str, arguments: list[str], environment: Mapping[str, str], tell: Callable[[float], None]
) -> BeforeAfter:
    commands = {"before": ["-c", _ANSWER, model], "after": [str(archive), *arguments]}
    times = _interleaved(commands, environment, tell, reported=False)
    return BeforeAfter(times["before"], times["after"])


def _interleaved(
    commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], tell: Callable[[float], None], *, reported: bool
) -> dict[str, float]:
    """Time Python processes that alternate; return the median seconds by name: of the number that they print (`reported`), or of
    their running time.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    tell(0.0)
    for number in range(_ROUNDS + 1):
        for name, command in sorted(commands.items(), reverse=bool(number % 2)):  # the order alternates too
            seconds = _seconds(command, environment, reported)
            if number:  # the first round compiles modules
                times[name].append(seconds)
        tell((number + 1) / (_ROUNDS + 1))
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
