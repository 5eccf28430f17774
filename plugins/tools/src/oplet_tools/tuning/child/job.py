"""The job of a child process that measures a model, as JSON and never as code or pickles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from oplet import Limits, PluginManager
from oplet.processes import can_start_python
from oplet.toolkit import Preference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oplet import Delegate, Interpreter

__all__ = ["Job", "job_of"]


@dataclass(frozen=True)
class Job:
    """An interpreter's arguments, with its plugins, in a form that another process can open it from.

    Attributes:
        path: the model's file; "" where the model was given as bytes.
        settings: arguments of the interpreter whose values are numbers and truth values.
        limits: the fields of its `Limits`, None where it has none.
        prefer: the user's preference, which goes before that of a candidate.
        plugins: the recipe of its plugin manager, see `PluginManager.recipe`.
    """

    path: str
    settings: Mapping[str, Any]
    limits: Mapping[str, Any] | None
    prefer: Preference
    plugins: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Convert the job to a JSON object."""
        return {**asdict(self), "prefer": self.prefer._asdict()}  # of a named tuple, JSON would make a list

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Job:
        """Make the job that `to_json` wrote."""
        prefer = content["prefer"]
        preference = Preference(tuple(prefer["names"]), tuple((op, name) for op, name in prefer["by_op"]))
        return cls(content["path"], content["settings"], content["limits"], preference, content["plugins"])

    def manager(self) -> PluginManager:
        """Make a manager of the same plugins."""
        return PluginManager.from_recipe(self.plugins)

    def open(self, manager: PluginManager, path: str, prefer: Sequence[str], delegates: Sequence[Delegate]) -> Interpreter:
        """Open the interpreter on the model of a path, with a candidate's plugins and delegates."""
        from oplet import Interpreter

        return Interpreter(
            path,
            None,
            delegates,
            **self.settings,
            limits=None if self.limits is None else Limits(**self.limits),
            plugins=manager,
            prefer=self.prefer.before(Preference.read(prefer)),
        )


def job_of(interpreter: partial[Any], manager: PluginManager, prefer: Preference) -> Job | str:
    """Make the job of measuring an interpreter; or return the reason, in words that follow "since", why no other process can open
    it.

    Args:
        interpreter: makes an interpreter of the model from its path and content, with keywords.
        manager: its plugins.
        prefer: the user's preference.
    """
    if not can_start_python():
        return "this program brings its own Python, which cannot be started by itself"
    told = dict(interpreter.keywords)
    told.pop("plugins", None)
    if told.pop("op_resolver", None) is not None:
        return "it has operators that are objects of this program (op_resolver=)"
    recipe = manager.recipe()
    if recipe is None:
        return "its plugins are objects of this program"
    limits = told.pop("limits", None)
    path, *_ = interpreter.args
    path = "" if path is None else os.path.abspath(os.fsdecode(path))
    return Job(path, told, None if limits is None else asdict(limits), prefer, recipe)
