"""Static analysis of kernels' dependencies within their packages: the modules that they import, directly or not, and data files.

Nothing is imported, and modules are kept whole. Where the source is ambiguous, more is kept, or the build is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from oplet_build.building.cutting.syntax import imported_module, source_of, statement_lists, strip, syntax_nodes
from oplet_build.building.cutting.variants import VARIANTS, Variant, read_variants
from oplet_build.building.distributions import Package
from oplet_build.building.error import BuildError
from oplet_build.selection.needs import Use

__all__ = ["DependencyClosure", "SourceModule"]

#: Functions that import a module by its name.
_IMPORTERS = ("import_module", "__import__")
#: A statement with such a pattern looks for modules, not for data files.
_SOURCE_PATTERN = "*.py"
#: Modules whose functions read data files of a package.
_RESOURCES = ("importlib.resources", "importlib_resources", "pkgutil")
#: The statement that replaces the import of a variant that is left out. It imports under a name of its own, as an import makes its name
#: local to the whole function.
_REFUSAL = """
from oplet import ensure as _ensure
_ensure(False, '{build} has only the variants of this op that its models use; build it again with this model.')
"""


@dataclass(eq=False)
class SourceModule:
    """A module that was parsed, not imported."""

    name: str  #: Its full name.
    package: Package  #: The top-level package that it belongs to.
    text: str

    @property
    def is_package(self) -> bool:
        """Whether it is the `__init__.py` of a package."""
        return self.name in self.package.packages

    @cached_property
    def body(self) -> list[ast.stmt]:
        """Its statements, without docstrings and type-checking code."""
        return self.parsed().body

    @cached_property
    def variants(self) -> dict[str, Variant]:
        """Its `VARIANTS`: by module that it imports inside functions, the condition on nodes that need this module."""
        return read_variants(self.name, filter(_is_variants, self.body))

    @cached_property
    def imports(self) -> list[tuple[str, str, str]]:
        """What it imports, inside functions too: the module, the name imported from it ("" for the module itself), the name bound."""
        return [each for _, body in statement_lists(ast.Module(self.body, [])) for each in self._imports(body)]

    @property
    def only_defines(self) -> bool:
        """Whether importing it has no effect but to bind names, and to import other packages."""
        plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
        own = any(module.partition(".")[0] == self.package.name for module, _, _ in self._imports(self.body))
        changed = (target for node in self.body for target in getattr(node, "targets", ()) if not isinstance(target, ast.Name))
        return not own and all(isinstance(node, plain) for node in self.body) and not any(changed)

    def _imports(self, body: Iterable[ast.stmt]) -> Iterator[tuple[str, str, str]]:
        for node in body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                module = imported_module(node, self.name, self.is_package) if isinstance(node, ast.ImportFrom) else ""
                for alias in node.names:
                    yield (
                        (module, alias.name, alias.asname or alias.name)
                        if module
                        else (alias.name, "", alias.asname or alias.name)
                    )

    def parsed(self) -> ast.Module:
        """Return a new syntax tree of it, without docstrings and type-checking code.

        Raises:
            BuildError: it is not Python.
        """
        try:
            tree = ast.parse(self.text)
        except (SyntaxError, ValueError) as error:
            raise BuildError(f"The module {self.name} cannot be read: {error}.") from error
        strip(tree)
        return tree


class DependencyClosure:
    """The modules that kernels need, directly or not: the dependency closure of the roots that `require` adds.

    Args:
        packages: the packages to extract code from; imports from other packages become requirements.
        uses: how the models' nodes use their ops (input types, sparsity); None for any use.
        uses_of: uses by the nodes of single kernels, by the name of the kernel's module.
        read: modules that other closures of these very `Package` objects have read, by name, which this one adds to.
    """

    def __init__(
        self,
        packages: Iterable[Package],
        uses: Collection[Use] | None = None,
        uses_of: Mapping[str, Collection[Use] | None] = MappingProxyType({}),
        read: dict[str, SourceModule] | None = None,
    ) -> None:
        self.packages = {package.name: package for package in packages}
        self._uses = uses
        self._uses_of = uses_of
        self._read = {} if read is None else read
        #: The modules that are needed, by name, and those of them that are kept; the others are packages that are empty in a build.
        self.modules: dict[str, SourceModule] = {}
        self.kept: set[str] = set()
        #: The data files that are needed, as pairs of package and path.
        self.data: set[tuple[str, str]] = set()
        #: The top-level modules that are imported from other packages.
        self.external: set[str] = set()
        #: The modules that other modules import, not only roots.
        self.shared: set[str] = set()

    def require(self, name: str) -> None:
        """Add a module and its dependencies.

        Raises:
            BuildError: a dependency cannot be extracted: it is a compiled module, or it reads files that the source does not name.
        """
        waiting = [name]
        while waiting:
            current = waiting.pop()
            package = self._package(current)
            if package is not None and current in package.native:
                raise BuildError(f"{current} is a compiled module, which cannot be cut out of its package.")
            if package is None or current not in package.modules or current in self.kept:
                continue
            self.kept.add(current)
            module = self.modules[current] = self._module(current)
            for end in range(1, current.count(".") + 1):
                parent = ".".join(current.split(".")[:end])
                self.modules[parent] = self._module(parent)
                if not self.modules[parent].only_defines:
                    waiting.append(parent)
            needed = [*self._imported(module), *self._named(module)]
            self.shared.update(each for each in needed if each != current)
            waiting += needed
            self._follow_files(module)

    def source(self, name: str, build: str = "The build") -> str:
        """Return a module's source without docstrings, comments and type-checking code.

        Where a function imports a module that is left out, it raises an error that names the `build`: the node is refused.
        """
        module = self.modules[name]
        if name not in self.kept:
            return ""
        if "__doc__" in module.text:
            return module.text
        tree, left_out = module.parsed(), self._left_out(module)
        for _, body in statement_lists(tree) if left_out else ():
            for node in body:
                if isinstance(node, ast.ImportFrom) and imported_module(node, name, module.is_package) in left_out:
                    index = body.index(node)
                    body[index : index + 1] = ast.parse(_REFUSAL.format(build=build)).body
        return source_of(tree)

    def _package(self, name: str) -> Package | None:
        return self.packages.get(name.partition(".")[0])

    def _module(self, name: str) -> SourceModule:
        if name not in self._read:
            package = self.packages[name.partition(".")[0]]
            path = package.modules[name]
            try:
                text = "" if path is None else path.read_bytes().decode("utf-8-sig")
            except (ValueError, OSError) as error:
                raise BuildError(f"The module {name} cannot be read: {error}.") from error
            self._read[name] = SourceModule(name, package, text)
        return self._read[name]

    def _left_out(self, module: SourceModule) -> set[str]:
        """Return the modules that `module` imports inside functions for some nodes, and that no node of the models needs."""
        variants, uses = module.variants, self._uses_of.get(module.name, self._uses)
        return set() if uses is None else {name for name, variant in variants.items() if not any(map(variant.serves, uses))}

    def _imported(self, module: SourceModule) -> Iterator[str]:
        """Yield the modules of the packages that a module's statements import; what is imported from others is noted."""
        left_out = self._left_out(module)
        for target, name, bound in module.imports:
            package = self._package(target)
            if package is None:
                self.external.add(target.partition(".")[0])
            elif target not in left_out:
                inner = f"{target}.{name}"
                yield inner if inner in package.modules or inner in package.native else target
                if not name and "." in bound:  # `import package.module` binds the package
                    yield target.partition(".")[0]

    def _named(self, module: SourceModule) -> Iterator[str]:
        """Yield the modules that a module's strings name: "package.module:NAME", or the argument of `import_module`."""
        for text in (text for node in module.body if not _is_variants(node) for text in _texts(node)):
            package = self._package(text.partition(":")[0].rstrip("."))
            found = package.reference(text) if package is not None else None
            if found is not None and not text.endswith("."):
                yield found[0]
        if any(name in module.text for name in _IMPORTERS):
            for node in syntax_nodes(ast.Module(module.body, [])):
                if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in _IMPORTERS:
                    yield from self._called_for(module, node.args[0] if node.args else None)

    def _called_for(self, module: SourceModule, name: ast.expr | None) -> Iterator[str]:
        """Yield the modules that may be meant by the argument of a function that imports by name."""
        text = name.value if isinstance(name, ast.Constant) else None
        if not isinstance(text, str):
            yield from module.package.modules  # it is computed at run time: any module of the package
        elif text.startswith("."):
            level = len(text) - len(text.lstrip("."))
            yield imported_module(ast.ImportFrom(text.lstrip("."), [], level), module.name, module.is_package)
        elif self._package(text) is None:
            self.external.add(text.partition(".")[0])

    def _follow_files(self, module: SourceModule) -> None:
        """Keep the data files of the package whose names a module has as strings."""
        data = module.package.data
        readers = [local for target, name, local in module.imports if f"{target}.{name}".rstrip(".").startswith(_RESOURCES)]
        reading = re.compile("|".join([r"\b__file__\b", *(rf"\b{re.escape(local)}\b" for local in readers)]))
        constants = {text for node in module.body if isinstance(node, (ast.Assign, ast.AnnAssign)) for text in _texts(node)}
        for node in module.body:
            texts = set(_texts(node))
            named = _files_named(data, texts)
            if not named and not isinstance(node, (ast.Import, ast.ImportFrom)) and reading.search(ast.unparse(node)):
                if any(text.endswith(_SOURCE_PATTERN) for text in texts):
                    continue
                named = _files_named(data, constants)  # a path may be joined from constants of the module
                if not named:
                    raise BuildError(
                        f"The module {module.name} reads files of its package in line {node.lineno}, and which ones "
                        "cannot be told from the source: name the file in a text there, or leave the op out of the build."
                    )
            self.data.update((module.package.name, path) for path in named)


def _is_variants(node: ast.stmt) -> bool:
    targets: Any = getattr(node, "targets", [getattr(node, "target", None)])
    return any(isinstance(target, ast.Name) and target.id == VARIANTS for target in targets)


def _texts(node: ast.AST) -> Iterator[str]:
    return (each.value for each in syntax_nodes(node) if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _files_named(data: Iterable[str], texts: Iterable[str]) -> set[str]:
    stripped = {text.strip("/") for text in texts} - {""}
    return {path for path in data for t in stripped if path == t or path.endswith(f"/{t}") or t.endswith(f"/{path}")}
