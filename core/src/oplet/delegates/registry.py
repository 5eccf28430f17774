"""Registry of delegates, in which `load_delegate` finds those of installed packages by name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from oplet.errors import DelegateError, DelegateLoadError, failures, text_of
from oplet.ops.serving.provenance import Provenance, import_registered, matches
from oplet.records import Record

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate

__all__ = ["HARDWARE", "DelegateEntry", "DelegateRegistry", "LibraryEntry", "is_library"]

#: The kinds of hardware that a delegate may be for.
HARDWARE = ("cpu", "gpu", "npu")

#: Names of shared libraries on Linux (also `libfoo.so.1`), macOS and Windows.
_LIBRARY = re.compile(r".*(\.so(\.\d+)*|\.dylib|\.dll)\Z", re.DOTALL)


def is_library(name: str) -> bool:
    """Return whether a delegate's name denotes a shared library: it has a path separator, or ends in `.so`, `.dylib` or `.dll`."""
    return os.sep in name or "/" in name or bool(_LIBRARY.match(name))


class DelegateEntry(Record):
    """A registered delegate.

    Attributes:
        name: its name.
        factory: a function that takes the options and returns the delegate, or its "module:NAME".
        provenance: the package that it comes from.
        serves: the custom ops that it is meant to run: names, or "Flex*" for all whose names begin so.
        accelerates: the hardware that it runs nodes on, each "cpu", "gpu" or "npu", with the options that choose it.
    """

    name: str
    factory: Callable[..., Delegate] | str
    provenance: Provenance
    serves: tuple[str, ...] = ()
    accelerates: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    def serves_op(self, name: str) -> bool:
        """Return whether the delegate was registered to run the custom op `name`, see `serves`."""
        return any(matches(each, name) for each in self.serves)

    def create(self, options: Mapping[str, Any] | None = None) -> Delegate:
        """Create the delegate.

        Raises:
            PluginError: its module or factory cannot be imported.
            DelegateLoadError: the factory refuses the options.
        """
        from oplet.delegates.delegate import Delegate  # here, as importing every package imports this module

        factory = self._imported()
        try:
            delegate = factory(dict(options or {}))
            if isinstance(delegate, Delegate):
                delegate.name = self.name  # reports use the name by which it was loaded
                delegate.provenance = self.provenance
            return delegate
        except failures() as error:
            raise DelegateLoadError(
                f"Failed to load delegate from {self.name}: {self.provenance} refuses the options {dict(options or {})}: {text_of(error)}"
            ) from error

    def _imported(self) -> Callable[..., Delegate]:
        """Import the factory if it is a "module:NAME", and return it."""
        factory: Callable[..., Delegate] = import_registered(self.factory, f"delegate '{self.name}'", self.provenance)
        return factory


class LibraryEntry(DelegateEntry):
    """A delegate of a shared library.

    Attributes:
        name: the path or file name of the library.
        factory: a function of the library's path and the options that returns a Delegate, or its "module:NAME".
        provenance: which package loads libraries.
    """

    def create(self, options: Mapping[str, Any] | None = None) -> Delegate:
        """Create a delegate from the shared library.

        Raises:
            PluginError: the module or function that loads libraries cannot be imported.
            DelegateLoadError: the library cannot be loaded, or does not create a delegate with these options.
        """
        load = self._imported()
        try:
            delegate = load(self.name, dict(options or {}))
        except failures() as error:
            raise DelegateLoadError(f"Failed to load delegate from {self.name}: {text_of(error)}") from error
        delegate.provenance = self.provenance
        return delegate


def _no_option(name: str, option: str, delegate: str) -> DelegateLoadError:
    return DelegateLoadError(
        f"Failed to load delegate from {name}: '{option}' behind the delegate '{delegate}' is no option; options have a value, as in "
        f"{delegate}:{option or 'key'}=VALUE."
    )


class DelegateRegistry:
    """Registry of delegates by name, to which `register_delegates` of a plugin adds its own.

    Examples:
        >>> from oplet import Delegate, DelegateRegistry
        >>> registry = DelegateRegistry()
        >>> registry.add("mine", Delegate)
        >>> [entry.name for entry in registry.entries()]
        ['mine']
    """

    def __init__(
        self,
        provenance: Provenance | None = None,
        no_loader: Callable[[], str] | None = None,
        advice: Callable[[str], str] | None = None,
    ) -> None:
        """
        Args:
            provenance: the package whose delegates are registered.
            no_loader: returns the reason why no package loads shared libraries, for error messages; None for no reason.
            advice: returns which package brings the delegate of a name that is not here, "" if none is known; None for no advice.
        """
        self.provenance = provenance or Provenance()
        self._entries: dict[str, list[DelegateEntry]] = {}
        self._why = no_loader
        self._advice = advice
        self._loaders: list[tuple[Callable[..., Delegate] | str, Provenance]] = []

    def add(
        self,
        name: str,
        factory: Callable[[Mapping[str, Any]], Delegate] | str,
        *,
        serves: Sequence[str] = (),
        accelerates: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Register a delegate.

        Args:
            name: the name by which `load_delegate` finds it.
            factory: a function that takes a mapping of options and returns a Delegate, such as a Delegate class; or its
                "module:NAME".
            serves: the custom ops that the delegate exists for: names, or "Flex*" for all whose names begin so. Where a model
                has one of them that no kernel serves, interpreters apply the delegate without being asked, before all others.
            accelerates: the hardware that the delegate runs nodes on: "cpu", "gpu" or "npu", each with the options that choose it, as
                in `{"gpu": {"device": "GPU"}}`. Programs that ask for hardware, and not for a delegate by its name, find it by these.

        Raises:
            DelegateError: the name is empty, the factory is neither callable nor a "module:NAME", `serves` has other than names, or
                `accelerates` other hardware.
        """
        if not isinstance(name, str) or not name:
            raise DelegateError(f"A delegate is registered under {name!r}, which is not a name.")
        if not callable(factory) and not (isinstance(factory, str) and ":" in factory):
            raise DelegateError(f"The delegate '{name}' is registered with {factory!r}, neither a callable nor 'module:NAME'.")
        if isinstance(serves, str) or not all(isinstance(op, str) and op not in ("", "*") for op in serves):
            raise DelegateError(
                f"The delegate '{name}' serves {serves!r}; give a list of custom ops' names, with * after a prefix."
            )
        hardware = dict(accelerates or {})
        if unknown := [kind for kind in hardware if kind not in HARDWARE]:
            raise DelegateError(
                f"The delegate '{name}' accelerates {unknown[0]!r}; the hardware is one of {', '.join(HARDWARE)}."
            )
        self._entries.setdefault(name, []).append(DelegateEntry(name, factory, self.provenance, tuple(serves), hardware))

    def add_loader(self, factory: Callable[[str, Mapping[str, Any]], Delegate] | str) -> None:
        """Register the function that makes a delegate where `load_delegate` gets a library: a path, or a name like `foo.so`.

        Args:
            factory: a function that takes the library, as the user names it, and a mapping of options, and returns a Delegate; or its
                "module:NAME".

        Raises:
            DelegateError: the factory is neither callable nor a "module:NAME".
        """
        if not callable(factory) and not (isinstance(factory, str) and ":" in factory):
            raise DelegateError(f"Delegate libraries are to be loaded by {factory!r}, neither a callable nor 'module:NAME'.")
        self._loaders.append((factory, self.provenance))

    def merge(self, other: DelegateRegistry) -> None:
        """Add every entry of another registry, with its provenance."""
        for entry in other.entries():
            self._entries.setdefault(entry.name, []).append(entry)
        self._loaders.extend(other._loaders)

    def entries(self) -> Iterator[DelegateEntry]:
        """Return all entries, sorted by name."""
        return (entry for name in sorted(self._entries) for entry in self._entries[name])

    def serving(self, op: str) -> list[DelegateEntry]:
        """Return the registered delegates that serve a custom op, sorted by name."""
        return [entry for entry in self.entries() if entry.serves_op(op)]

    def accelerating(self, hardware: str) -> list[DelegateEntry]:
        """Return the registered delegates that run nodes on this hardware ("cpu", "gpu" or "npu"), sorted by name."""
        return [entry for entry in self.entries() if hardware in entry.accelerates]

    def find(self, name: str) -> DelegateEntry:
        """Return the entry of a delegate, by its name or by "distribution:name" where several packages have one of that name; of
        a shared library by its path or file name.

        Raises:
            DelegateLoadError: there is none, or more than one.
        """
        distribution, _, short = name.rpartition(":")
        if name not in self._entries:
            if is_library(short):
                return self._library(name)
            if is_library(distribution):
                raise _no_option(name, short, distribution)
        found = [
            e
            for e in self._entries.get(short, [])
            if name == short or (distribution and e.provenance.distribution == distribution)
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            if distribution and (distribution.rpartition(":")[2] in self._entries):
                raise _no_option(name, short, distribution)
            if advice := "" if self._advice is None else self._advice(name):
                raise DelegateLoadError(f"Failed to load delegate from {name}: {advice}.")
            known = ", ".join(sorted(self._entries))
            raise DelegateLoadError(
                f"Failed to load delegate from {name}: no installed package brings a delegate of that name; give "
                f"{f'one of {known}' if known else 'the name of one after installing its package'}, or the path of a delegate library (.so)."
            )
        packages = " and ".join(str(entry.provenance) for entry in found)
        raise DelegateLoadError(
            f"Failed to load delegate from {name}: {packages} both bring it; name one as '{found[0].provenance.distribution}:{short}'."
        )

    def _library(self, name: str) -> LibraryEntry:
        """Return an entry for a shared library; "distribution:path" chooses where two packages load libraries."""
        chosen = [(factory, by, name) for factory, by in self._loaders]
        for factory, by in self._loaders:
            if name.startswith(f"{by.distribution}:"):
                chosen = [(factory, by, name[len(by.distribution) + 1 :])]
        if not chosen:
            raise DelegateLoadError(
                f"Failed to load delegate from {name}: {'no package here loads delegate libraries' if self._why is None else self._why()}."
            )
        if len(chosen) > 1:
            packages = " and ".join(str(by) for _, by, _ in chosen)
            raise DelegateLoadError(
                f"Failed to load delegate from {name}: {packages} both load libraries; name one as '{chosen[0][1].distribution}:{name}'."
            )
        factory, by, path = chosen[0]
        return LibraryEntry(path, factory, by)
