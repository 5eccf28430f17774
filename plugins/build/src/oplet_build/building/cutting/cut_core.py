"""Extraction of the part of oplet that running a model needs: whole modules, without comments, docstrings and type-checking code.

They come from the core and from those packages beside it that a program needs, each under its own name. Writing models and delegates
are left out. Functions that would need these import them when they are called; stubs stand in their place
and raise an error that says what is missing.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping

import oplet
from oplet_build.building.cutting.syntax import source_of, statement_lists, strip
from oplet_build.building.distributions import Package, find_package
from oplet_build.building.error import BuildError

__all__ = ["FLATBUFFERS", "PACKAGES", "core_packages", "cut_core", "strip_source"]

#: The packages of this project that a build takes modules of, and the distributions that bring them.
PACKAGES = {
    "oplet": "oplet-core",
    "oplet_build": "oplet-build",
    "oplet_predictor": "oplet-predictor",
    "oplet_tools": "oplet-tools",
}

#: The new name of the used part of the flatbuffers package: a wheel must not install a second `flatbuffers`.
FLATBUFFERS = "oplet.vendored.flatbuffers"

#: Modules whose tables say where their names live; of each name only that module is taken.
_TABLES = ("oplet", "oplet.toolkit")

#: Modules that every build needs, whatever its kernels import.
_ROOTS = (
    "oplet.runtime.interpreter",
    "oplet.ops.serving.registration",
    "oplet.ops.serving.resolver",
    "oplet_build.bundle",
    "oplet.companions",  # `oplet` lets imports find them
)
_PROGRAM_ROOTS = (
    "oplet_build.standalone.main",
    "oplet_build.standalone.contents",
    "oplet_tools.running.run",
    "oplet_tools.running.formatting",
)
_LEFT_OUT = frozenset(
    (
        "oplet.model.save.writing",
        "oplet.runtime.delegation.delegation",
        "oplet.runtime.delegation.load",
        "oplet.runtime.memory.stored_plan",
        "oplet.versions.runtime_version",
    )
)

_MANAGER = '''\
"""The plugin manager of the build {distribution}."""

import functools

from oplet_build.bundle import Bundle


class PluginManager(Bundle):
    package = {package!r}
    distribution = {distribution!r}
    version = {version!r}


@functools.cache
def default_manager():
    return PluginManager()
'''

_CHOOSER = '''\
"""No choice between engines: a build has one."""

from oplet.errors import DelegateLoadError


def installed_chooser(text):
    raise DelegateLoadError(
        f"experimental_delegates={{text!r}} asks for a choice between engines, and the build {distribution!r} has no delegates; "
        "leave it out, or use the package oplet."
    )
'''

_STUB = """\
raise ImportError("{module} is not in the build '{distribution}', which has what running models needs; the package oplet has it.")
"""


def cut_core(
    kernels: Mapping[str, bytes], *, package: str, distribution: str, version: str, program: bool, custom_options: bool
) -> dict[str, bytes]:
    """Return the source files, by path, of the core reduced to what these kernels need.

    Args:
        kernels: files of the kernels' package by path; what their modules import from oplet is kept.
        package: the name of the kernels' package.
        distribution: the build's name.
        version: the build's version.
        program: whether to include the command line.
        custom_options: whether kernels read FlexBuffers, the encoding of most custom options.

    Raises:
        BuildError: a module imports something that the installed packages of oplet do not have.
    """
    cut = _Cut(distribution, custom_options)
    roots = [*_ROOTS, *(_PROGRAM_ROOTS if program else ())]
    for path, content in kernels.items():
        if path.endswith(".py"):
            tree = ast.parse(content, path)
            strip(tree)
            roots += [cut.module(name, path) for name in _oplet_names(tree)]
    generated = {
        "oplet.plugins.manager": _MANAGER.format(package=package, distribution=distribution, version=version),
        "oplet.plugins.engine_choice": _CHOOSER.format(distribution=distribution),
    }
    kept = cut.closure([*roots, *generated], generated)
    files: dict[str, bytes] = {}
    for module in sorted(kept):
        if module in _TABLES:
            text = _source(_public(module, cut.tree(module), kept))
        elif module in generated:
            text = strip_source(ast.parse(generated[module]))
        elif module in _LEFT_OUT:
            text = _STUB.format(module=module, distribution=distribution)
        else:
            text = _source(cut.tree(module))
        files[cut.path(module)] = f"{text.rstrip()}\n".encode() if text.strip() else b""
        files.update(cut.data(module))
    return {**files, **_flatbuffers(cut.flatbuffers)}


def core_packages(files: Iterable[str]) -> list[str]:
    """Return the top-level packages, `oplet` first, that the files (paths) of a trimmed core belong to."""
    return sorted({path.partition("/")[0] for path in files} & PACKAGES.keys())


def strip_source(tree: ast.Module) -> str:
    """Return a module's source without docstrings, comments and type-checking code, with the copy of flatbuffers in `FLATBUFFERS`."""
    strip(tree)
    return _source(tree)


class _Cut:
    """The modules that some modules import, directly or not, from the installed oplet and this project's packages beside it."""

    def __init__(self, distribution: str, custom_options: bool) -> None:
        self._sources: dict[str, Package] = {}
        self._trees: dict[str, ast.Module] = {}
        self._distribution = distribution
        self._homes = {name: home for module in _TABLES for name, home in _homes(module, self.tree(module)).items()}
        self.flatbuffers = {"flexbuffers"} if custom_options else set()

    def tree(self, module: str) -> ast.Module:
        """Return a module's syntax tree without docstrings and type-checking code; it is read once."""
        if module not in self._trees:
            path = self._source(module).modules.get(module)
            self._trees[module] = ast.parse(path.read_bytes() if path is not None else b"")
            strip(self._trees[module])
        return self._trees[module]

    def path(self, module: str) -> str:
        file = module.replace(".", "/")
        return f"{file}/__init__.py" if module in self._source(module).packages else f"{file}.py"

    def module(self, name: str, importer: str) -> str:
        """Return the module to keep for an imported name: the one that defines it if it is a public name, the module of that
        name, or the module that it is an attribute of. Errors name the `importer`.
        """
        name = self._homes.get(name, name)
        for module in (name, name.rpartition(".")[0]):
            if module and module in self._source(module).modules:
                return module
        owner = PACKAGES[name.partition(".")[0]]
        raise BuildError(f"{importer} imports {name}, which {owner} {oplet.__version__} does not have.")

    def closure(self, roots: Iterable[str], generated: Mapping[str, str]) -> set[str]:
        kept: set[str] = set()
        waiting = list(roots)
        while waiting:
            module = waiting.pop()
            if module in kept:
                continue
            kept.add(module)
            waiting.extend(".".join(module.split(".")[:length]) for length in range(1, module.count(".") + 1))
            if module in _TABLES or module in _LEFT_OUT:
                continue
            tree = ast.parse(generated[module]) if module in generated else self.tree(module)
            for name in _oplet_names(tree):
                waiting.append(self.module(name, module))
                waiting.extend(table for table in _TABLES if name in self._homes and name.rpartition(".")[0] == table)
        return kept

    def data(self, module: str) -> dict[str, bytes]:
        """Return the data files, by path, in a module's folder whose names occur in its source."""
        source = self._source(module)
        path = source.modules.get(module)
        if path is None or module in _LEFT_OUT:
            return {}
        text = path.read_text(encoding="utf-8")
        folder = "/".join(module.split(".")[1:-1])
        found = {}
        for name, file in source.data.items():
            parent, _, base = name.rpartition("/")
            if parent == folder and base in text:
                found[f"{source.name}/{name}"] = file.read_bytes()
        return found

    def _source(self, module: str) -> Package:
        """Return the installed package that a module belongs to; each package is searched for once.

        Raises:
            BuildError: it is not installed.
        """
        top = module.partition(".")[0]
        if top not in self._sources:
            self._sources[top] = find_package(top)
        return self._sources[top]


def _source(tree: ast.Module) -> str:
    """Return a module's source, in which imports of flatbuffers are imports of the copy in `FLATBUFFERS`."""
    for _, body in statement_lists(tree):
        for node in body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "flatbuffers" and not node.level:
                node.module = FLATBUFFERS + (node.module or "").removeprefix("flatbuffers")
    return source_of(tree)


def _oplet_names(tree: ast.Module) -> Iterator[str]:
    """Yield what a stripped module imports from `PACKAGES`, in functions too: "oplet.errors.ModelError", "oplet.Name" if it is public."""
    for _, body in statement_lists(tree):
        for node in body:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in PACKAGES)
            elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in PACKAGES:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _homes(module: str, tree: ast.Module) -> dict[str, str]:
    """Return the defining modules of public names by `_HOMES` in a module's source: {"oplet.Limits": "oplet.runtime.memory.accounting"}."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "_HOMES":
            return {f"{module}.{name}": home for name, home in ast.literal_eval(node.value).items()}
    raise BuildError(f"{module} of oplet {oplet.__version__} does not say where its public names live.")


def _public(module: str, tree: ast.Module, kept: set[str]) -> ast.Module:
    """Return the syntax tree of a module that has a table `_HOMES`, reduced to names whose defining modules are in `kept`."""
    homes = {name.rpartition(".")[2]: home for name, home in _homes(module, tree).items() if home in kept - _LEFT_OUT}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            if node.targets[0].id == "_HOMES":
                node.value = ast.parse(repr(homes), mode="eval").body
            elif node.targets[0].id == "__all__":
                node.value = ast.parse(repr(sorted({*homes, "__version__"} if module == "oplet" else homes)), mode="eval").body
    return tree


def _flatbuffers(wanted: Collection[str]) -> dict[str, bytes]:
    """Return the wanted modules of the flatbuffers package, and the modules that they import, unchanged; nothing if none is
    wanted.
    """
    if not wanted:
        return {}
    source = find_package("flatbuffers")
    folder = FLATBUFFERS.replace(".", "/")
    files = {f"{folder.rpartition('/')[0]}/__init__.py": b"", f"{folder}/__init__.py": b""}
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        path = source.modules.get(f"flatbuffers.{name}")
        if f"{folder}/{name}.py" in files or path is None:
            continue
        content = files[f"{folder}/{name}.py"] = path.read_bytes()
        for node in ast.walk(ast.parse(content)):
            if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("flatbuffers")):
                base = (node.module or "").removeprefix("flatbuffers").strip(".")
                waiting.extend([base.partition(".")[0]] if base else [alias.name for alias in node.names])
    return files
