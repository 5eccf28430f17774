"""Static analysis of kernels' dependencies within their packages: modules, top-level statements, and data files.

Nothing is imported. Where the source is ambiguous, more is kept, or the build is refused.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from oplet_build.building.cutting.statements import Chain, Import, Module, Statement, read_module
from oplet_build.building.cutting.syntax import syntax_nodes
from oplet_build.building.distributions import Package
from oplet_build.building.error import BuildError
from oplet_build.selection.needs import Use

__all__ = ["DependencyClosure", "ReachedModule", "ReadModules"]

#: Modules by name, for each set of packages and what is known of their sources: whether classes are plain, whether annotations are read.
ReadModules = dict[tuple[frozenset[str], bool, bool], dict[str, Module]]

#: Functions that import a module by its name.
_IMPORTERS = ("import_module", "__import__")
#: A statement with such a pattern looks for modules, not for data files.
_SOURCE_PATTERN = "*.py"
#: Modules whose functions read data files of a package.
_RESOURCES = ("importlib.resources", "importlib_resources", "pkgutil")


@dataclass(eq=False)
class ReachedModule:
    """A module that extracted kernels depend on.

    Attributes:
        module: the parsed module.
        package: the top-level package that it belongs to.
        kept: its statements that are needed.
    """

    module: Module
    package: Package
    kept: set[Statement] = field(default_factory=set)


class DependencyClosure:
    """The modules and statements that kernels need, directly or not: the dependency closure of the roots that `require` adds.

    Args:
        packages: the packages to extract code from; imports from other packages become requirements.
        shake: leave out statements that are not needed (tree shaking); otherwise modules are kept whole.
        uses: how the models' nodes use their ops (input types, sparsity); None for any use.
        uses_of: uses by the nodes of single kernels, by the name of the kernel's module.
        read: modules that other closures of these very `Package` objects have read, which this one adds to.
    """

    def __init__(
        self,
        packages: Iterable[Package],
        shake: bool = True,
        uses: Collection[Use] | None = None,
        uses_of: Mapping[str, Collection[Use] | None] = MappingProxyType({}),
        read: ReadModules | None = None,
    ) -> None:
        self.packages = {package.name: package for package in packages}
        self.shake = shake
        self._uses = uses
        self._uses_of = uses_of
        #: The modules that are needed, by name.
        self.modules: dict[str, ReachedModule] = {}
        #: The data files that are needed, as pairs of package and path.
        self.data: set[tuple[str, str]] = set()
        #: The top-level modules that are imported from other packages.
        self.external: set[str] = set()
        #: The modules that other modules use, not only roots.
        self.shared: set[str] = set()
        self._current = ""
        how = frozenset(self.packages), self._plain_classes, self.reads_annotations
        self._read = ({} if read is None else read).setdefault(how, {})
        self._effects: dict[str, bool] = {}

    @cached_property
    def _plain_classes(self) -> bool:
        return all(package.plain_classes for package in self.packages.values())

    @cached_property
    def reads_annotations(self) -> bool:
        """Whether one of these modules reads annotations at run time, so that they must be kept."""
        return any(package.reads_annotations for package in self.packages.values())

    @cached_property
    def reads_docstrings(self) -> bool:
        """Whether one of these modules reads docstrings at run time, so that they must be kept."""
        return any("__doc__" in package.texts for package in self.packages.values())

    def require(self, name: str, attribute: str = "") -> None:
        """Add a root and its dependencies: the attribute ("NAME" or "NAME.part") of the module `name`, or "" for the whole module.

        Raises:
            BuildError: a dependency cannot be extracted: it is a compiled module, or it reads files that the source does not name.
        """
        self._reach(name)
        self._attribute(name, tuple(attribute.split(".")) if attribute else ())

    def _package(self, name: str) -> Package | None:
        return self.packages.get(name.partition(".")[0])

    def _exists(self, name: str) -> bool:
        package = self._package(name)
        return package is not None and name in package.modules

    def _module(self, name: str) -> Module:
        found = self._read.get(name)
        if found is None:
            package = self.packages[name.partition(".")[0]]
            path = package.modules[name]
            found = self._read[name] = read_module(
                name, path, name in package.packages, set(self.packages), self._plain_classes, self.reads_annotations
            )
        return found

    def _reach(self, name: str) -> None:
        """Add a module and its parent packages, with the statements of them that have side effects."""
        package = self._package(name)
        if package is None or name in self.modules:
            return
        if name not in package.modules:
            if name in package.native:
                raise BuildError(f"{name} is a compiled module, which cannot be cut out of its package.")
            return
        if "." in name:
            self._reach(name.rpartition(".")[0])
        module = self._module(name)
        reached = self.modules[name] = ReachedModule(module, package)
        whole = module.whole or not self.shake
        for statement in module.statements:
            if (
                whole
                or statement.effect
                or (statement.is_import and any(map(self._has_effect, map(self._target, statement.imports))))
            ):
                self._keep(reached, statement)

    def _has_effect(self, name: str) -> bool:
        """Return whether importing a module has side effects: its own, or those of modules that it imports."""
        if not self._exists(name):
            return False
        if name not in self._effects:
            seen: set[str] = set()
            waiting = [name]
            while waiting:
                current = waiting.pop()
                if current in seen or not self._exists(current):
                    continue
                seen.add(current)
                module = self._module(current)
                if any(statement.effect for statement in module.statements):
                    self._effects[name] = True
                    break
                waiting.append(current.rpartition(".")[0])
                waiting += [self._target(i) for statement in module.statements for i in statement.imports if statement.is_import]
            else:
                self._effects.update(dict.fromkeys(seen, False))
        return self._effects[name]

    def _target(self, imported: Import) -> str:
        """Return the module that an import loads: for `from a import b` the submodule a.b if there is one, else a."""
        inner = f"{imported.module}.{imported.name}"
        return inner if imported.name and self._exists(inner) else imported.module

    def _bound(self, imported: Import) -> str:
        """Return the module that the name bound by an import stands for; "" if it stands for no module of these packages."""
        if not imported.name:
            return imported.bound if self._package(imported.bound) else ""
        if not self._exists(imported.module):
            return ""
        for statement in self._module(imported.module).statements_of.get(imported.name, ()):
            for inner in statement.imports:
                if inner.local == imported.name and (found := self._bound(inner)):
                    return found
            return ""
        inner_name = f"{imported.module}.{imported.name}"
        return inner_name if self._exists(inner_name) else ""

    def _keep(self, reached: ReachedModule, statement: Statement) -> None:
        if statement in reached.kept:
            return
        reached.kept.add(statement)
        outer, self._current = self._current, reached.module.name
        left_out = set() if statement.is_import else self.left_out(reached.module)
        imports = [each for each in statement.imports if each.module not in left_out]
        for imported in imports:
            self._follow(imported)
        # Names may be imported by the statement itself, inside a function, or at the top level.
        inner = {} if statement.is_import else {imported.local: imported for imported in imports}
        for name, chains in statement.uses.items():
            self._use(reached, name, chains, inner.get(name))
        if not statement.is_import:
            self._follow_strings(reached, statement)
            self._follow_files(reached, statement)
        self._current = outer

    def left_out(self, module: Module) -> set[str]:
        """Return the modules that `module` imports inside functions for some nodes, and that no node of the models needs."""
        uses = self._uses_of.get(module.name, self._uses)
        if uses is None or module.whole or not self.shake:
            return set()
        return {name for name, variant in module.variants.items() if not any(map(variant.serves, uses))}

    def _use(self, reached: ReachedModule, name: str, chains: set[Chain], imported: Import | None) -> None:
        imports = [] if imported is None else [imported]
        for statement in reached.module.statements_of.get(name, ()):
            self._keep(reached, statement)
            imports += [i for i in statement.imports if i.local == name]
        for each in imports:
            if bound := self._bound(each):
                for chain in chains:
                    self._attribute(bound, chain)

    def _follow(self, imported: Import) -> None:
        if self._package(imported.module) is None:
            self.external.add(imported.module.partition(".")[0])
            return
        self._reach(imported.module)
        if not imported.name:
            return
        if imported.name == "*":
            self._keep_whole(imported.module)
        elif self._exists(imported.module):
            inner = f"{imported.module}.{imported.name}"
            if imported.name in self._module(imported.module).statements_of:
                self._attribute(imported.module, (imported.name,), follow_imports=False)
            else:
                self._reach(inner)

    def _attribute(self, name: str, chain: Chain, follow_imports: bool = True) -> None:
        """Keep the statements that define `chain` (a, b for module.a.b) of a module; all if it is empty or is `__dict__`."""
        if not self._exists(name):
            return
        self._reach(name)
        self._note_use(name)
        reached = self.modules[name]
        module = reached.module
        if not chain or chain[0] == "__dict__":
            self._keep_whole(name)
            return
        first, rest = chain[0], chain[1:]
        inner = f"{name}.{first}"
        statements = module.statements_of.get(first, ())
        for statement in statements:
            self._keep(reached, statement)
            if follow_imports:
                for imported in statement.imports:
                    if imported.local == first and (bound := self._bound(imported)):
                        self._attribute(bound, rest)
        if not statements and self._exists(inner):
            self._attribute(inner, rest)

    def _keep_whole(self, name: str) -> None:
        if not self._exists(name):
            return
        self._reach(name)
        self._note_use(name)
        reached = self.modules[name]
        for statement in reached.module.statements:
            self._keep(reached, statement)

    def _note_use(self, name: str) -> None:
        if self._current not in ("", name):
            self.shared.add(name)

    def _follow_strings(self, reached: ReachedModule, statement: Statement) -> None:
        """Keep the modules that strings in a statement name: "package.module:NAME", or the argument of `import_module`."""
        for text in statement.strings:
            package = self._package(text.partition(":")[0].rstrip("."))
            found = package.reference(text) if package is not None else None
            if found is not None and not text.endswith("."):
                self.require(*found)
        if any(name in reached.module.text for name in _IMPORTERS):
            for node in syntax_nodes(statement.node):
                if isinstance(node, ast.Call) and _called(node) in _IMPORTERS:
                    self._import_by_name(reached, node)

    def _import_by_name(self, reached: ReachedModule, node: ast.Call) -> None:
        text = _text_of(reached.module, node.args[0]) if node.args else None
        if text is not None:
            if text.startswith("."):
                parts = reached.module.name.split(".")
                dots = len(text) - len(text.lstrip("."))
                parts = parts[: len(parts) - dots + reached.module.is_package]
                self.require(".".join([*parts, text.lstrip(".")]))
            elif self._package(text) is None:
                self.external.add(text.partition(".")[0])
            return
        # The module's name is computed at run time: it may be any module of the package.
        for name in reached.package.modules:
            self._keep_whole(name)

    def _follow_files(self, reached: ReachedModule, statement: Statement) -> None:
        """Keep the data files of the package whose names a statement has as strings."""
        package = reached.package
        texts = {text.strip("/") for text in statement.strings}
        named = {
            path
            for path in package.data
            if any(path == t or path.endswith(f"/{t}") or t.endswith(f"/{path}") for t in texts if t)
        }
        self.data.update((package.name, path) for path in named)
        reads = (
            "__file__" in statement.uses
            or any(f"{i.module}.{i.name}".startswith(_RESOURCES) for i in statement.imports)
            or self._uses_resources(reached, statement)
        )
        if not reads or named or any(text.endswith(_SOURCE_PATTERN) for text in statement.strings):
            return
        # A path may be joined from constants of the module.
        constants = {text.strip("/") for other in reached.module.statements if _is_constant(other) for text in other.strings}
        found = {path for path in package.data if any(path == t or path.endswith(f"/{t}") for t in constants if t)}
        if not found:
            raise BuildError(
                f"The module {reached.module.name} reads files of its package in line {statement.origin.lineno}, and which ones "
                "cannot be told from the source: name the file in a text there, or leave the op out of the build."
            )
        self.data.update((package.name, path) for path in found)

    def _uses_resources(self, reached: ReachedModule, statement: Statement) -> bool:
        for name, chains in statement.uses.items():
            for other in reached.module.statements_of.get(name, ()):
                for i in other.imports if other.is_import else ():
                    if i.local == name:
                        paths = [".".join(filter(None, [i.bound or i.module, i.name, *chain])) for chain in chains]
                        if any(path.startswith(_RESOURCES) for path in paths):
                            return True
        return False


def _is_constant(statement: Statement) -> bool:
    return isinstance(statement.node, (ast.Assign, ast.AnnAssign))


def _text_of(module: Module, node: ast.expr) -> str | None:
    """Return the string value of an expression: a literal, or a name that the module binds to a literal and to nothing else."""
    if isinstance(node, ast.Name):
        statements = module.statements_of.get(node.id, ())
        assigned = statements[0].node if len(statements) == 1 else None
        if not isinstance(assigned, (ast.Assign, ast.AnnAssign)) or assigned.value is None or _rebinds(module, node.id):
            return None
        targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
        if not all(isinstance(target, ast.Name) for target in targets):
            return None
        node = assigned.value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _rebinds(module: Module, name: str) -> bool:
    """Return whether a name is bound more than once in a module; arguments and local variables of that name count too."""
    stored = 0
    for statement in module.statements:
        for node in syntax_nodes(statement.node):
            stored += isinstance(node, ast.arg) and node.arg == name
            stored += isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    return stored > 1


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
