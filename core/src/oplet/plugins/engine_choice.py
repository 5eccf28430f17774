"""Automatic choice of engines ("auto"), which another package implements: its entry-point group, and protocols of what it
returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from functools import partial

    from oplet.delegates.delegate import Delegate
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference

__all__ = ["AUTO", "GROUP", "Choice", "Chooser", "Configuration", "installed_chooser", "is_auto"]

#: The entry-point group of choosers: `auto = "oplet_tools.tuning.choice:choose_for_interpreter"`. Not a hook of plugins, so that
#: `plugins=` chooses between kernels and never takes away who chooses between engines.
GROUP = "oplet.choosers"
#: The specifier that lets oplet choose the delegates.
AUTO = "auto"


class Configuration(Protocol):
    """A configuration in which a model can run: kernels, preferences and delegates.

    Attributes:
        kernels: the plugin whose kernels replace built-in ones where possible, "" for none.
        prefer: the plugins that are preferred where several serve an op, the most preferred first.
        delegates: the delegates that are applied first, in order.
    """

    @property
    def kernels(self) -> str: ...

    @property
    def prefer(self) -> tuple[str, ...]: ...

    @property
    def delegates(self) -> tuple[str, ...]: ...


class Choice(Protocol):
    """The result of choosing the engines (kernels, delegates) of a model; `str` summarizes it.

    Attributes:
        candidate: the configuration that was chosen.
        trials: the measurements of all configurations, in order.
        remembered: whether it was measured earlier, in another interpreter or process, and read from the cache.
        path: the cache file, "" if there is none.
    """

    @property
    def candidate(self) -> Configuration: ...

    @property
    def trials(self) -> tuple[Any, ...]: ...

    @property
    def remembered(self) -> bool: ...

    @property
    def path(self) -> str: ...


class Chooser(Protocol):
    """A function that chooses the configuration (kernels, delegates) in which to run a model."""

    def __call__(
        self,
        text: str,
        model: Model,
        manager: PluginManager,
        interpreter: partial[Any],
        prefer: str | Iterable[str] | Mapping[str, str] | Preference | None,
    ) -> tuple[Choice, Sequence[Delegate], Preference]:
        """Choose the configuration of a model; return the choice, its delegates, and the preference among plugins.

        Args:
            text: the delegate specifier: "auto", possibly with options.
            model: the model.
            manager: the plugins.
            interpreter: creates an interpreter of the model; takes delegates and preferences.
            prefer: the user's preferences, which take precedence over those of the choice.

        Raises:
            DelegateLoadError: the text is another specifier.
        """


def is_auto(text: str) -> bool:
    """Return whether a delegate specifier is "auto", with or without options, so that oplet chooses the delegates."""
    return text == AUTO or text.startswith(f"{AUTO}:")


def installed_chooser(text: str) -> Chooser:
    """Return the installed function that chooses the engines for a delegate specifier.

    Args:
        text: the specifier: "auto", possibly with options.

    Raises:
        DelegateLoadError: no installed package has one, or it cannot be imported.
    """
    from oplet.errors import DelegateLoadError, failures, text_of
    from oplet.installed import entry_points
    from oplet.plugins.install_commands import install_command

    if not is_auto(text):
        raise DelegateLoadError(
            f"experimental_delegates is {text!r}; give a list of delegates (`load_delegate` makes them), or 'auto', with options if need be."
        )
    for entry in entry_points(GROUP):
        if entry.name == AUTO:
            try:
                chooser: Chooser = entry.load()
            except failures() as error:
                raise DelegateLoadError(
                    f"The chooser '{AUTO}' of {entry.value} cannot be imported: {text_of(error, named=True)}."
                ) from error
            return chooser
    raise DelegateLoadError(
        f"experimental_delegates={text!r} asks for a choice between engines, which a package of its own makes: "
        f"{install_command('oplet-tools')}; or give a list of delegates (`load_delegate` makes them)."
    )
