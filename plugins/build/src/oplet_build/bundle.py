"""The plugin manager of programs that `oplet build --with-core` makes: it has one package of ops, and no discovery.

It replaces `oplet.plugins.manager` in such a build, which then starts without a search of the environment and without a plugin framework.
Nothing else uses it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from oplet import MutableOpResolver, Provenance
from oplet.errors import PluginError
from oplet.schema.enums import BuiltinOperator
from oplet.toolkit import Op, op_key, op_label

if TYPE_CHECKING:
    from oplet import DelegateRegistry

__all__ = ["Bundle"]


class Bundle:
    """The ops of a standalone build, in place of a PluginManager: it has the methods that interpreters call.

    A build's `oplet.plugins.manager` has a subclass `PluginManager` that sets the attributes; its constructor refuses all arguments.

    Attributes:
        package: the package of kernels.
        distribution: the build's name.
        version: the build's version.

    Raises:
        PluginError: an argument is given.
    """

    package = ""
    distribution = ""
    version = ""

    def __init__(self, load: object = None, block: object = (), entry_points: object = None) -> None:
        if load is not None or block or entry_points is not None:
            raise PluginError(self._fixed("load, block and entry_points"))
        self._resolver: MutableOpResolver | None = None

    @classmethod
    def named(cls, names: object, argument: str) -> Bundle:
        """Refuse to select plugins by name, as a build has none.

        Raises:
            PluginError: always.
        """
        raise PluginError(cls()._fixed(argument))

    def resolver(self, prefer: str | Iterable[str] | Mapping[str, str] | None = None) -> MutableOpResolver:
        """Return a resolver of all ops of the build.

        Raises:
            PluginError: a preference is given.
        """
        if prefer:
            raise PluginError(self._fixed("prefer"))
        if self._resolver is None:
            resolver = MutableOpResolver(Provenance(self.package, self.distribution, self.version, self.package))
            importlib.import_module(self.package).register_ops(resolver)
            self._resolver = resolver
        return self._resolver

    def recipe(self) -> None:
        """Return None: unlike a PluginManager, a build's cannot be recreated in another process, so its plans are not stored on disk."""

    def registry(self) -> DelegateRegistry:
        """Refuse to return delegates, as a build has none.

        Raises:
            PluginError: always.
        """
        raise PluginError(f"The build '{self.distribution}' has no delegates; the package oplet has them.")

    def delegate_for(self, op: str, prefer: object = None) -> None:
        """Return None, as a build has no delegates that could run a custom op."""

    def advice(self, op: Op | int) -> str:
        """Return advice, in one line, on what to do about an op that is not in the build."""
        known = isinstance(op, str) and op in BuiltinOperator.__members__
        key: Op = BuiltinOperator[str(op)] if known else op_key(op)
        label = op_label(key)
        served = self.resolver().versions(key)
        held = f" in version {', '.join(map(str, served))} only" if served else ""
        return (
            f"The build '{self.distribution}' holds {'' if served else 'no '}{label}{held}; it has the ops of the models that it was "
            f"made for. Make it again with this model or with --op {label}."
        )

    def _fixed(self, what: str) -> str:
        return f"The ops of the build '{self.distribution}' are fixed, so {what} cannot choose among plugins; pass op_resolver= to add some."
