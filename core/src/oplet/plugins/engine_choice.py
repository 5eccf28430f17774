"""The choice between engines, as those see it who only ask for it; `registered_chooser` says who chooses."""

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
    """One way of running a model.

    Attributes:
        kernels: the plugin whose kernels take the place of the built-in ones where they can, "" for none.
        prefer: the plugins whose kernels are taken where several could serve, the most preferred first.
        delegates: the delegates that claim nodes before, in order.
    """

    @property
    def kernels(self) -> str: ...

    @property
    def prefer(self) -> tuple[str, ...]: ...

    @property
    def delegates(self) -> tuple[str, ...]: ...


class Choice(Protocol):
    """What was chosen, and from what; its text says so in a few words.

    Attributes:
        candidate: the way that was chosen.
        trials: what came out for each way, in the order in which they were measured.
        remembered: whether it was measured before, in another interpreter or process.
        path: the file that remembers it, "" if none does.
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
    """Chooses how to run a model."""

    def __call__(
        self,
        text: str,
        model: Model,
        manager: PluginManager,
        interpreter: partial[Any],
        prefer: str | Iterable[str] | Mapping[str, str] | Preference | None,
    ) -> tuple[Choice, Sequence[Delegate], Preference]:
        """The choice, its delegates, and which plugins to prefer.

        Args:
            text: what stands in the place of delegates: "auto", or with options.
            model: the model.
            manager: the plugins that there are.
            interpreter: makes an interpreter of the model; delegates and preferences are still open.
            prefer: the user's preferences, which go before those of the choice.

        Raises:
            DelegateLoadError: the text is something else.
        """
