"""Fake distributions for tests of plugins: dist-info folders on sys.path, as pip would have installed them."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from oplet import write_atomically
from oplet.toolkit import default_manager

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

__all__ = ["fake_distribution", "installed"]


def fake_distribution(
    site: Path,
    name: str,
    version: str = "1.0",
    entry_points: Mapping[str, str] | None = None,
    modules: Mapping[str, str] | None = None,
    *,
    group: str = "oplet",
) -> Path:
    """Write a package into the folder `site` as pip would have installed it.

    Args:
        site: the folder in place of site-packages; created if it does not exist.
        name: the distribution's name, as pip knows it.
        version: the distribution's version.
        entry_points: the values of entry points ("module" or "module:object"), by name.
        modules: source texts by dotted module name; "a.b" creates the package "a" too.
        group: the entry points' group.

    Returns:
        `site`, to be put on sys.path: see `installed`.

    Examples:
        >>> site = getfixture("tmp_path")
        >>> source = "from oplet import hookimpl, Registration"
        >>> _ = fake_distribution(site, "oplet-twice", "1.0", {"twice": "oplet_twice"}, {"oplet_twice": source})
        >>> with installed(site) as entry_points:
        ...     [(entry.name, entry.dist.version) for entry in entry_points]
        [('twice', '1.0')]
    """
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    write_atomically(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{key} = {value}" for key, value in (entry_points or {}).items()]
    write_atomically(info / "entry_points.txt", "\n".join([f"[{group}]", *lines, ""]))
    for module, source in (modules or {}).items():
        *parents, last = module.split(".")
        folder = site.joinpath(*parents)
        folder.mkdir(parents=True, exist_ok=True)
        for depth in range(len(parents)):
            site.joinpath(*parents[: depth + 1], "__init__.py").touch()
        write_atomically(folder / f"{last}.py", textwrap.dedent(source))
    return site


@contextmanager
def installed(*sites: Path) -> Iterator[list[EntryPoint]]:
    """Put folders on sys.path while the block runs, and yield the entry points of group `oplet` in them; modules and path are
    restored.

    Pass the entry points as `PluginManager(entry_points=...)`, so that the test sees no plugins that are really installed. The
    cached search for plugins is repeated inside the block, and again after it.
    """
    import importlib_metadata

    paths = [os.fspath(site) for site in sites]
    roots = {path.stem for site in sites for path in Path(site).glob("*")}
    before_path = list(sys.path)
    hidden = _drop_modules(roots)
    sys.path[:0] = paths
    importlib.invalidate_caches()
    default_manager.cache_clear()
    try:
        found = importlib_metadata.distributions(path=paths)
        yield [entry for dist in found for entry in dist.entry_points if entry.group == "oplet"]
    finally:
        sys.path[:] = before_path
        _drop_modules(roots)
        sys.modules.update(hidden)
        importlib.invalidate_caches()
        default_manager.cache_clear()


def _drop_modules(roots: set[str]) -> dict[str, ModuleType]:
    """Remove the packages `roots` and their modules from sys.modules; return what was removed."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] in roots}
