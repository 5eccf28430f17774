"""The job of a child process that measures a model, as JSON and never as code or pickles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from oplet import Limits, OpResolverType, PluginManager
from oplet.toolkit import Preference
from oplet_tools.processes import can_start_python

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oplet import Delegate, Interpreter

__all__ = ["Job", "job_of"]

#: The setting that is an enumeration; a job has its name.
_KERNELS = "experimental_op_resolver_type"


@dataclass(frozen=True)
class Job:
    """The arguments and plugins of an interpreter in a form that can be sent to another process, which opens an equal one."""

    path: str  #: The model's file; "" where the model was given as bytes.
    #: The interpreter's keyword arguments that are numbers, booleans or names of enumeration members.
    settings: Mapping[str, Any]
    limits: Mapping[str, Any] | None  #: The fields of its `Limits`, None where it has none.
    prefer: Preference  #: The plugins whose kernels the user prefers; they precede those that a candidate prefers.
    plugins: Mapping[str, Any]  #: Data from which another process makes an equal plugin manager, see `PluginManager.recipe`.

    def to_json(self) -> dict[str, Any]:
        """Convert the job to a JSON object, which `from_json` reads."""
        return {**asdict(self), "prefer": self.prefer._asdict()}  # of a named tuple, JSON would make a list

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Job:
        """Restore a job from the JSON object that `to_json` made."""
        prefer = content["prefer"]
        preference = Preference(tuple(prefer["names"]), tuple((op, name) for op, name in prefer["by_op"]))
        return cls(content["path"], content["settings"], content["limits"], preference, content["plugins"])

    def manager(self) -> PluginManager:
        """Make a plugin manager, in this process, with the plugins of the process that made the job."""
        return PluginManager.from_recipe(self.plugins)

    def open(self, manager: PluginManager, path: str, prefer: Sequence[str], delegates: Sequence[Delegate]) -> Interpreter:
        """Open the model at `path` with the job's settings, and these preferred plugins and delegates (a candidate's)."""
        from oplet import Interpreter

        settings = dict(self.settings)
        if _KERNELS in settings:
            settings[_KERNELS] = OpResolverType[settings[_KERNELS]]
        return Interpreter(
            path,
            None,
            delegates,
            **settings,
            limits=None if self.limits is None else Limits(**self.limits),
            plugins=manager,
            prefer=self.prefer.before(Preference.read(prefer)),
        )


def job_of(interpreter: partial[Any], manager: PluginManager, prefer: Preference) -> Job | str:
    """Make the job of an interpreter; or return why no other process can open it, in words that may follow "since".

    Args:
        interpreter: makes an interpreter of the model from its path and content, with keywords.
        manager: the interpreter's plugins.
        prefer: the plugins that the user prefers.
    """
    if not can_start_python():
        return "this program brings its own Python, which cannot be started by itself"
    told = dict(interpreter.keywords)
    told.pop("plugins", None)
    if told.pop("op_resolver", None) is not None:
        return "it has operators that are objects of this program (op_resolver=)"
    kernels = told.pop(_KERNELS, OpResolverType.AUTO)
    if kernels is not OpResolverType.AUTO:
        told[_KERNELS] = kernels.name  # JSON has no enumerations
    recipe = manager.recipe()
    if recipe is None:
        return "its plugins are objects of this program"
    limits = told.pop("limits", None)
    path, *_ = interpreter.args
    path = "" if path is None else os.path.abspath(os.fsdecode(path))
    return Job(path, told, None if limits is None else asdict(limits), prefer, recipe)
