"""Protocols of the choice between engines, for code that cannot import the chooser (see `registered_chooser`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from functools import partial

    from oplet.delegates.delegate import Delegate
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference

__all__ = ["Choice", "Chooser", "Configuration"]


class Configuration(Protocol):
    """A configuration in which a model can run.

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
    """The result of a choice; `str` summarizes it.

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
    """A function that chooses the configuration in which to run a model."""

    def __call__(
        self,
        text: str,
        model: Model,
        manager: PluginManager,
        interpreter: partial[Any],
        prefer: str | Iterable[str] | Mapping[str, str] | Preference | None,
    ) -> tuple[Choice, Sequence[Delegate], Preference]:
        """The choice, its delegates, and the preference among plugins.

        Args:
            text: the delegate specifier: "auto", possibly with options.
            model: the model.
            manager: the plugins.
            interpreter: creates an interpreter of the model; takes delegates and preferences.
            prefer: the user's preferences, which take precedence over those of the choice.

        Raises:
            DelegateLoadError: the text is another specifier.
        """
