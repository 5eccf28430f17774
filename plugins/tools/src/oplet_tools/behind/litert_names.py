"""LiteRT's names and the oplet classes that stand for them in intercepted modules; a report of what these ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oplet import load_delegate
from oplet.interpreter import Delegate, Interpreter, InterpreterWithCustomOps, OpResolverType, SignatureRunner
from oplet.toolkit import GROUP
from oplet_tools.behind.stand_ins.analyzer import Analyzer
from oplet_tools.running.delegates import delegates_or_auto
from oplet_tools.running.run import providers_of

if TYPE_CHECKING:
    from oplet import PluginManager

__all__ = ["UsageReport", "litert_classes", "litert_names", "plugin_packages"]


class UsageReport:
    """A report on the interpreters of a program that ran with `run_behind`: models, kernels, replaced modules.

    Attributes:
        answered: LiteRT modules that the program imported and oplet replaced.
        passed: modules that the program imported from LiteRT itself.
        refused: the modules whose import was refused, each with the error message.
        models: the number of interpreters made of each model, by the model's name.
        nodes: for each package or delegate, the number of nodes that its kernels run, summed over all interpreters.
    """

    def __init__(self) -> None:
        self.answered: list[str] = []
        self.passed: list[str] = []
        self.refused: dict[str, str] = {}
        self.models: Counter[str] = Counter()
        self._nodes: dict[int, dict[str, int]] = {}

    @property
    def nodes(self) -> dict[str, int]:
        """The number of nodes that each package's or delegate's kernels run, by its name, summed over all interpreters."""
        total: Counter[str] = Counter()
        for counts in self._nodes.values():
            total.update(counts)
        return dict(total.most_common())

    def add_interpreter(self, interpreter: Interpreter) -> int:
        """Count a new interpreter; return its number, to be passed to `update_nodes`."""
        self.models[interpreter.model.name] += 1
        number = len(self._nodes)
        self.update_nodes(number, interpreter)
        return number

    def update_nodes(self, number: int, interpreter: Interpreter) -> None:
        """Record whose kernels the interpreter's nodes have now; `number` is the one that `add_interpreter` returned."""
        self._nodes[number] = providers_of(interpreter)

    def __str__(self) -> str:
        """Return the report in one line."""
        told = self._told()
        if self.passed:
            told += f"; of LiteRT itself: {', '.join(self.passed)}"
        return "; ".join([told, *(each.rstrip(".") for each in self.refused.values())])

    def _told(self) -> str:
        if not self.answered:
            return "the program imported no interpreter that oplet answers; tensorflow.lite where TensorFlow is missing takes --tensorflow"
        if not self.models:
            alone = not any(name.endswith(".compiled_model") for name in self.answered)
            return f"answered {', '.join(self.answered)}" + ("; this process made no interpreter" if alone else "")
        models = ", ".join(name if count == 1 else f"{name} ({count} times)" for name, count in self.models.items())
        served = ", ".join(f"{count} {'node' if count == 1 else 'nodes'} by {who}" for who, count in self.nodes.items())
        return f"answered {', '.join(self.answered)}; ran {models}: {served}"


def litert_names(
    report: UsageReport, plugins: PluginManager, delegates: Sequence[str], num_threads: int | None
) -> dict[str, Any]:
    """Map LiteRT's names ("Interpreter") to oplet's classes, which fill `report`; `delegates` and `num_threads` are their defaults."""

    class Accounted(Interpreter):
        def __init__(self, *given: Any, **named: Any) -> None:
            if len(given) < 3 and not named.get("experimental_delegates") and delegates:
                named["experimental_delegates"] = delegates_or_auto(delegates, plugins)
            if len(given) < 4 and named.get("num_threads") is None:
                named["num_threads"] = num_threads
            super().__init__(*given, **{"plugins": plugins, **named})
            self._number = report.add_interpreter(self)

        def allocate_tensors(self) -> None:
            super().allocate_tensors()
            report.update_nodes(self._number, self)  # kernels may have declined nodes

    class AccountedWithCustomOps(InterpreterWithCustomOps, Accounted):
        pass

    for made, original in ((Accounted, Interpreter), (AccountedWithCustomOps, InterpreterWithCustomOps)):
        made.__name__ = made.__qualname__ = original.__name__
    accounted = {"Interpreter": Accounted, "InterpreterWithCustomOps": AccountedWithCustomOps}
    return dict(sorted({**litert_classes(), **accounted, "Analyzer": Analyzer}.items()))


def litert_classes() -> dict[str, Any]:
    """Return the names of LiteRT's interpreter module ("Interpreter", ...) mapped to oplet's unmodified classes."""
    return {
        "Delegate": Delegate,
        "Interpreter": Interpreter,
        "InterpreterWithCustomOps": InterpreterWithCustomOps,
        "OpResolverType": OpResolverType,
        "SignatureRunner": SignatureRunner,
        "load_delegate": load_delegate,
    }


def plugin_packages() -> set[str]:
    """Return the top-level packages of all installed plugins, whose imports of LiteRT are not intercepted."""
    import importlib_metadata

    return {point.value.partition(":")[0].partition(".")[0].strip() for point in importlib_metadata.entry_points(group=GROUP)}
