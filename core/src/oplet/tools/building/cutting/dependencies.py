"""What kernels need of the packages that they come from: modules, statements of these, and data files.

Found by reading, not by importing. Where the source does not tell what it needs, more is kept, or the build is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from oplet.tools.building.cutting.statements import Chain, Import, Module, Statement, read_module
from oplet.tools.building.error import BuildError
from oplet.tools.building.packages import Package
from oplet.tools.selection.needs import Use

__all__ = ["DependencyClosure", "ReachedModule"]

#: Who mentions one of these reads annotations while it runs.
_ANNOTATION_READERS = re.compile(r"get_type_hints|__annotations__|singledispatch|get_annotations|\bsignature\(")
#: Functions that read the files of a package, and the module that has them.
#: Who looks for such files reads modules, which lie beside it in a build too.
_SOURCE_PATTERN = "*.py"
_RESOURCES = ("importlib.resources", "importlib_resources", "pkgutil")


@dataclass(eq=False)
class ReachedModule:
    """A module that is needed.

    Attributes:
        module: the module.
        package: the package that it belongs to.
        kept: its statements that are needed.
    """

    module: Module
    package: Package
    kept: set[Statement] = field(default_factory=set)


class DependencyClosure:
    """Gathers what is needed, from roots that are given one after the other.

    Args:
        packages: the packages to cut from; imports of anything else are left to pip.
        shake: leave out statements that nothing needs; otherwise modules are kept whole.
        uses: how the nodes that there are use their ops, None for any way.
        uses_of: the same of the nodes that a module is the kernel of, by the module's name.
    """

    def __init__(
        self,
        packages: Iterable[Package],
        shake: bool = True,
        uses: Collection[Use] | None = None,
        uses_of: Mapping[str, Collection[Use] | None] = MappingProxyType({}),
    ) -> None:
        self.packages = {package.name: package for package in packages}
        self.shake = shake
        self._uses = uses
        self._uses_of = uses_of
        #: The modules that are needed, by name.
        self.modules: dict[str, ReachedModule] = {}
        #: The files of each package that are needed, by package and path.
        self.data: set[tuple[str, str]] = set()
        #: The top-level modules that are imported from elsewhere.
        self.external: set[str] = set()
        #: The modules that others use too, besides whoever requires them.
        self.shared: set[str] = set()
        self._current = ""
        self._read: dict[str, Module] = {}
        self._impure: dict[str, bool] = {}

    @cached_property
    def _texts(self) -> str:
        return "\n".join(package.texts for package in self.packages.values())

    @cached_property
    def _plain_classes(self) -> bool:
        return "__init_subclass__" not in self._texts and "metaclass" not in self._texts

    @cached_property
    def reads_annotations(self) -> bool:
        """Whether some module reads annotations while it runs, so that they stay."""
        return _ANNOTATION_READERS.search(self._texts) is not None

    @cached_property
    def reads_docstrings(self) -> bool:
        """Whether some module reads docstrings while it runs, so that they stay."""
        return "__doc__" in self._texts

    def require(self, name: str, attribute: str = "") -> None:
        """Keep an attribute of a module ("NAME", "NAME.part") with all that it needs; the whole module if none is named.

        Raises:
            BuildError: there is no such module, or it needs what cannot be cut.
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
        """Import a module, as far as its effects go, and the packages around it."""
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
        for item in module.items:
            if whole or item.effect or (item.is_import and any(map(self._has_effect, map(self._target, item.imports)))):
                self._keep(reached, item)

    def _has_effect(self, name: str) -> bool:
        """Whether importing a module does something besides defining names, there or in what it imports."""
        if not self._exists(name):
            return False
        if name not in self._impure:
            seen: set[str] = set()
            waiting = [name]
            while waiting:
                current = waiting.pop()
                if current in seen or not self._exists(current):
                    continue
                seen.add(current)
                module = self._module(current)
                if any(item.effect for item in module.items):
                    self._impure[name] = True
                    break
                waiting.append(current.rpartition(".")[0])
                waiting += [self._target(i) for item in module.items for i in item.imports if item.is_import]
            else:
                self._impure.update(dict.fromkeys(seen, False))
        return self._impure[name]

    def _target(self, imported: Import) -> str:
        """The module that an import imports: the submodule, where it names one."""
        inner = f"{imported.module}.{imported.name}"
        return inner if imported.name and self._exists(inner) else imported.module

    def _bound(self, imported: Import) -> str:
        """The module that an import binds, "" if it binds something else."""
        if not imported.name:
            return imported.bound if self._package(imported.bound) else ""
        if not self._exists(imported.module):
            return ""
        for item in self._module(imported.module).by_name.get(imported.name, ()):
            for inner in item.imports:
                if inner.local == imported.name and (found := self._bound(inner)):
                    return found
            return ""
        inner_name = f"{imported.module}.{imported.name}"
        return inner_name if self._exists(inner_name) else ""

    def _keep(self, reached: ReachedModule, item: Statement) -> None:
        if item in reached.kept:
            return
        reached.kept.add(item)
        outer, self._current = self._current, reached.module.name
        left_out = set() if item.is_import else self.left_out(reached.module)
        imports = [each for each in item.imports if each.module not in left_out]
        for imported in imports:
            self._follow(imported)
        # Names that the statement itself imports, inside a function, and those that stand at the top level.
        inner = {} if item.is_import else {imported.local: imported for imported in imports}
        for name, chains in item.uses.items():
            self._use(reached, name, chains, inner.get(name))
        if not item.is_import:
            self._follow_strings(reached, item)
            self._follow_files(reached, item)
        self._current = outer

    def left_out(self, module: Module) -> set[str]:
        """The modules that `module` imports in functions and that none of the nodes that there are needs."""
        uses = self._uses_of.get(module.name, self._uses)
        if uses is None or module.whole or not self.shake:
            return set()
        return {name for name, variant in module.variants.items() if not any(map(variant.serves, uses))}

    def _use(self, reached: ReachedModule, name: str, chains: set[Chain], imported: Import | None) -> None:
        imports = [] if imported is None else [imported]
        for item in reached.module.by_name.get(name, ()):
            self._keep(reached, item)
            imports += [i for i in item.imports if i.local == name]
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
            if imported.name in self._module(imported.module).by_name:
                self._attribute(imported.module, (imported.name,), looked_into=False)
            else:
                self._reach(inner)

    def _attribute(self, name: str, chain: Chain, looked_into: bool = True) -> None:
        """Keep what `chain` finds in a module; the whole module where it finds nothing, or looks at the module itself."""
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
        items = module.by_name.get(first, ())
        for item in items:
            self._keep(reached, item)
            if looked_into:
                for imported in item.imports:
                    if imported.local == first and (bound := self._bound(imported)):
                        self._attribute(bound, rest)
        if not items and self._exists(inner):
            self._attribute(inner, rest)

    def _keep_whole(self, name: str) -> None:
        if not self._exists(name):
            return
        self._reach(name)
        self._note_use(name)
        reached = self.modules[name]
        for item in reached.module.items:
            self._keep(reached, item)

    def _note_use(self, name: str) -> None:
        if self._current not in ("", name):
            self.shared.add(name)

    def _follow_strings(self, reached: ReachedModule, item: Statement) -> None:
        """Keep the modules that texts name: "package.module:NAME", or what is imported by name."""
        for text in item.strings:
            package = self._package(text.partition(":")[0].rstrip("."))
            found = package.reference(text) if package is not None else None
            if found is not None and not text.endswith("."):
                self.require(*found)
        for node in ast.walk(item.node):
            if isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
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
        # Which module it is, only running tells: any of the package may be.
        for name in reached.package.modules:
            self._keep_whole(name)

    def _follow_files(self, reached: ReachedModule, item: Statement) -> None:
        """Keep the data files that a statement names."""
        package = reached.package
        texts = {text.strip("/") for text in item.strings}
        named = {
            path
            for path in package.data
            if any(path == t or path.endswith(f"/{t}") or t.endswith(f"/{path}") for t in texts if t)
        }
        self.data.update((package.name, path) for path in named)
        reads = (
            "__file__" in item.uses
            or any(f"{i.module}.{i.name}".startswith(_RESOURCES) for i in item.imports)
            or self._uses_resources(reached, item)
        )
        if not reads or named or any(text.endswith(_SOURCE_PATTERN) for text in item.strings):
            return
        # A path may be put together from the module's constants.
        constants = {text.strip("/") for other in reached.module.items if _is_constant(other) for text in other.strings}
        found = {path for path in package.data if any(path == t or path.endswith(f"/{t}") for t in constants if t)}
        if not found:
            raise BuildError(
                f"The module {reached.module.name} reads files of its package in line {item.origin.lineno}, and which ones "
                "cannot be told from the source: name the file in a text there, or leave the op out of the build."
            )
        self.data.update((package.name, path) for path in found)

    def _uses_resources(self, reached: ReachedModule, item: Statement) -> bool:
        for name, chains in item.uses.items():
            for other in reached.module.by_name.get(name, ()):
                for i in other.imports if other.is_import else ():
                    if i.local == name:
                        paths = [".".join(filter(None, [i.bound or i.module, i.name, *chain])) for chain in chains]
                        if any(path.startswith(_RESOURCES) for path in paths):
                            return True
        return False


def _is_constant(item: Statement) -> bool:
    return isinstance(item.node, (ast.Assign, ast.AnnAssign))


def _text_of(module: Module, node: ast.expr) -> str | None:
    """The text that an expression is: a literal, or a name of the module's that is bound to one and to nothing else."""
    if isinstance(node, ast.Name):
        items = module.by_name.get(node.id, ())
        assigned = items[0].node if len(items) == 1 else None
        if not isinstance(assigned, (ast.Assign, ast.AnnAssign)) or assigned.value is None or _rebinds(module, node.id):
            return None
        targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
        if not all(isinstance(target, ast.Name) for target in targets):
            return None
        node = assigned.value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _rebinds(module: Module, name: str) -> bool:
    """Whether something besides statements at the top level may bind a module's name: an argument or variable called so counts."""
    stored = 0
    for item in module.items:
        for node in ast.walk(item.node):
            stored += isinstance(node, ast.arg) and node.arg == name
            stored += isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
    return stored > 1


def _called(node: ast.Call) -> str:
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""
