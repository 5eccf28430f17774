"""Parsed modules: their top-level statements, each with the names that it binds and uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from oplet_build.building.cutting.purity import HARMLESS_MODULES, Purity
from oplet_build.building.cutting.syntax import statement_lists, syntax_nodes
from oplet_build.building.cutting.variants import VARIANTS, Variant, read_variants
from oplet_build.building.error import BuildError

__all__ = ["SPECIAL_ANNOTATIONS", "Chain", "Import", "Module", "Statement", "imported_module", "read_module"]

#: The attributes looked up in a name: ("a", "b") for `name.a.b`, () for `name` alone.
Chain = tuple[str, ...]
#: Builtins that look names up at run time; a module that uses one is kept whole.
_REFLECTION = frozenset(("globals", "locals", "vars", "eval", "exec"))
#: Only a module whose text has one of these may have to be kept whole for what it uses.
_REASONS_TO_BE_WHOLE = re.compile(rf"import[\s\\]*\*|\b(modules|{'|'.join(sorted(_REFLECTION))})\b")
#: Modules whose names in annotations of class bodies matter to dataclasses, although annotations are not evaluated.
SPECIAL_ANNOTATIONS = ("typing", "typing_extensions", "dataclasses")


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds.

    Attributes:
        local: the name that is bound.
        module: the full name of the imported module.
        name: the name imported from the module; "" if the module itself is bound.
        bound: the module that `local` stands for, if it stands for a module.
    """

    local: str
    module: str
    name: str = ""
    bound: str = ""


@dataclass(eq=False)
class Statement:
    """A top-level statement; an import of several names counts as several statements. What is in it is read when it is asked for: most
    statements of most modules are not needed.

    Attributes:
        node: the statement's syntax tree; for an import of several names, an import of one of them.
        origin: the statement of the file that it comes from.
        binds: names that it binds in the module.
        reader: reads the statements of its module.
    """

    node: ast.stmt
    origin: ast.stmt
    binds: set[str]
    reader: _Reader

    @property
    def is_import(self) -> bool:
        """Whether the statement is an `import` or `from ... import`."""
        return isinstance(self.node, (ast.Import, ast.ImportFrom))

    @cached_property
    def imports(self) -> list[Import]:
        """What it imports, inside functions too."""
        inner = [self.node] if self.is_import else [node for _, body in statement_lists(self.node) for node in body]
        return [i for node in inner if isinstance(node, (ast.Import, ast.ImportFrom)) for i in self.reader.imports(node)]

    @property
    def uses(self) -> dict[str, set[Chain]]:
        """Names that it uses, each with the attribute chains that are looked up in it; none for imports."""
        return self._used[0]

    @property
    def strings(self) -> list[str]:
        """Its string constants; none for `VARIANTS`."""
        return [] if VARIANTS in self.binds else self._used[1]

    @cached_property
    def effect(self) -> bool:
        """Whether it has side effects besides binding names."""
        if self.is_import:
            return self.reader.is_bare_import(self)
        return not self.reader.purity.has_no_effect(self.node) and not _is_dunder_all(self.node)

    @cached_property
    def _used(self) -> tuple[dict[str, set[Chain]], list[str]]:
        return ({}, []) if self.is_import else self.reader.uses(self.node)


@dataclass(eq=False)
class Module:
    """A module that was parsed, not imported.

    Attributes:
        name: its full name.
        is_package: whether it is the `__init__.py` of a package.
        text: its source.
        tree: its syntax tree.
        statements: its top-level statements, without those for type checkers.
        statements_of: for each name, the statements that bind it.
        ignores_annotations: whether its annotations are never evaluated.
        postpones_annotations: whether its annotations are evaluated only on request (`from __future__ import annotations`).
        variants: its `VARIANTS`: by module that it imports inside functions, the condition on nodes that need this module.
    """

    name: str
    is_package: bool
    text: str
    tree: ast.Module
    statements: list[Statement]
    statements_of: dict[str, list[Statement]]
    ignores_annotations: bool
    postpones_annotations: bool
    variants: dict[str, Variant]

    @cached_property
    def whole(self) -> str:
        """Why the module must be kept whole, "" if statements may be left out."""
        return _whole(self)


def read_module(
    name: str, path: Path | None, is_package: bool, sources: set[str], plain_classes: bool, annotations: bool
) -> Module:
    """Parse a module into its top-level statements, without importing it.

    Args:
        name: its full name.
        path: its file, None for a package without `__init__.py`.
        is_package: whether it is a package's `__init__.py`.
        sources: the top-level packages from which code is extracted.
        plain_classes: whether subclassing the classes of `sources` has no side effects.
        annotations: whether annotations are read at run time, so that the names in them are used.

    Raises:
        BuildError: the file is not Python, or its `VARIANTS` cannot be read.
    """
    try:
        text = "" if path is None else path.read_bytes().decode("utf-8-sig")
        tree = ast.parse(text)
    except (SyntaxError, ValueError, OSError) as error:
        raise BuildError(f"The module {name} cannot be read: {error}.") from error
    postponed = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" and any(a.name == "annotations" for a in node.names)
        for node in tree.body
    )
    late = postponed and not annotations
    nodes = [s for s in _executed(tree.body) if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    reader = _Reader(name, is_package, late, tree, sources)
    statements = [statement for node in nodes for statement in reader.statements(node)]
    statements_of: dict[str, list[Statement]] = {}
    for statement in statements:
        for bound in statement.binds:
            statements_of.setdefault(bound, []).append(statement)
    reader.origins.update(
        (i.local, i.bound or f"{i.module}.{i.name}")
        for statement in statements
        if statement.is_import
        for i in statement.imports
        if i.local != "*"
    )
    reader.purity = Purity(reader.origins, statements_of.keys() - reader.origins.keys(), sources, plain_classes)
    return Module(
        name,
        is_package,
        text,
        tree,
        statements,
        statements_of,
        late,
        postponed,
        read_variants(name, [statement.node for statement in statements if VARIANTS in statement.binds]),
    )


def imported_module(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the full name of the module that a `from ... import` statement imports from; relative imports are resolved."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *(node.module or "").split(".")]).rstrip(".")


def _executed(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when the module is imported: without those under TYPE_CHECKING or `__name__ == "__main__"`,
    and docstrings.
    """
    for node in body:
        if isinstance(node, ast.If):
            test, negated = node.test, False
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, negated = test.operand, True
            if (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
                isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
            ):
                yield from _executed(node.body if negated else node.orelse)
                continue
            if ast.unparse(node.test) == "__name__ == '__main__'" and not node.orelse:
                continue
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _is_dunder_all(node: ast.stmt) -> bool:
    """Return whether a statement sets `__all__`, which matters for star imports alone; modules with these are kept whole."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _mentioned(tree: ast.Module) -> Iterator[str]:
    """Yield all names that occur in a module as uses, also in annotations and in type-checking code."""
    for node in syntax_nodes(tree):
        if isinstance(node, ast.Name):
            yield node.id
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                for text in ast.walk(part):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield from re.findall(r"\w+", text.value)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and _is_dunder_all(node):
            yield from (e.value for e in ast.walk(node.value) if isinstance(e, ast.Constant) and isinstance(e.value, str))


def _whole(module: Module) -> str:
    for name in ("__getattr__", "__dir__"):
        if name in module.statements_of:
            return f"it defines {name}"
    if module.text.isascii() and not _REASONS_TO_BE_WHOLE.search(module.text):
        return ""
    for statement in module.statements:
        if any(i.local == "*" for i in statement.imports):
            return "it imports everything of another module"
        if any((i.module, i.name) == ("sys", "modules") for i in statement.imports):
            return "it looks modules up in sys.modules"
        for name, chains in statement.uses.items():
            if name in _REFLECTION and () in chains:
                return f"it calls {name}()"
            if any("modules" in chain[:1] for chain in chains) and name == "sys":
                return "it looks modules up in sys.modules"
    return ""


class _Reader:
    """Reads the statements of a module: the names that they bind and use.

    Attributes:
        origins: the dotted names that imported names stand for.
        purity: tells which statements have side effects.
    """

    purity: Purity

    def __init__(self, module: str, is_package: bool, ignores_annotations: bool, tree: ast.Module, sources: set[str]) -> None:
        self._module = module
        self._is_package = is_package
        self._late = ignores_annotations
        self._sources = sources
        self._unseen = _mentioned(tree)
        self._seen: set[str] = set()
        self.origins: dict[str, str] = {}

    def statements(self, node: ast.stmt) -> Iterator[Statement]:
        """Yield the `Statement` objects of a syntax node: one for each imported name."""
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            yield Statement(node, node, set(_bound(node)), self)
            return
        for alias in node.names:
            if isinstance(node, ast.Import):
                single: ast.stmt = ast.Import([alias])
            else:
                single = ast.ImportFrom(node.module, [alias], node.level)
            yield Statement(single, node, {i.local for i in self.imports(single)}, self)

    def imports(self, node: ast.AST) -> Iterator[Import]:
        """Yield what an import statement imports."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield Import(alias.asname or top, alias.name, "", alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            module = imported_module(node, self._module, self._is_package)
            for alias in node.names:
                yield Import(alias.asname or alias.name, module, alias.name)

    def is_bare_import(self, statement: Statement) -> bool:
        """Return whether an import is there for its side effects, as far as is known: the module mentions none of its names.

        Exceptions are re-exports in packages, modules known to be harmless, and modules of the sources, which are analysed themselves.
        """
        if self._is_package and isinstance(statement.node, ast.ImportFrom):
            return False
        modules = {imported.module for imported in statement.imports}
        if any(module.partition(".")[0] in self._sources or module in HARMLESS_MODULES for module in modules):
            return False
        return not any(map(self._mentions, statement.binds))

    def _mentions(self, name: str) -> bool:
        """Return whether a name occurs in the module as a use; the module is searched no further than is needed."""
        while name not in self._seen:
            found = next(self._unseen, None)
            if found is None:
                return False
            self._seen.add(found)
        return True

    def uses(self, node: ast.stmt) -> tuple[dict[str, set[Chain]], list[str]]:
        """Return the names that a statement uses, with the attribute chains looked up in each, and its string constants."""
        found: dict[str, set[Chain]] = {}
        strings: list[str] = []
        for part in self._parts(node):
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                strings.append(part.value)
            elif isinstance(part, (ast.Name, ast.Attribute)):
                chain: list[str] = []
                while isinstance(part, ast.Attribute):
                    chain.append(part.attr)
                    part = part.value
                if isinstance(part, ast.Name):
                    found.setdefault(part.id, set()).add(tuple(reversed(chain)))
            elif isinstance(part, (ast.Global, ast.Nonlocal)):
                for name in part.names:
                    found.setdefault(name, set()).add(())
        return found, strings

    def _parts(self, node: ast.AST) -> list[ast.AST]:
        """Return the node and those below it that are evaluated when it runs; a chain of attributes counts as one node."""
        found: list[ast.AST] = []
        self._add_parts(node, found)
        return found

    def _add_parts(self, node: ast.AST, found: list[ast.AST]) -> None:
        found.append(node)
        if isinstance(node, ast.Attribute):
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            if not isinstance(inner, ast.Name):
                self._add_parts(inner, found)
            return
        skipped: ast.AST | None = None
        if self._late:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and self.purity.has_harmless_decorators(node):
                skipped = node.returns
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg) and argument.annotation is not None:
                        self._add_parts(argument.annotation, found)
            elif isinstance(node, (ast.arg, ast.AnnAssign)):
                skipped = node.annotation
            elif isinstance(node, ast.ClassDef):
                found.extend(self._class_annotations(node))
        for value in vars(node).values():
            if isinstance(value, ast.AST):
                if value is not skipped:
                    self._add_parts(value, found)
            elif isinstance(value, list):
                for child in value:
                    if isinstance(child, ast.AST):
                        self._add_parts(child, found)

    def _class_annotations(self, node: ast.ClassDef) -> Iterator[ast.AST]:
        plain = self.purity.is_harmless_class(node)
        for member in node.body:
            if isinstance(member, ast.AnnAssign):
                for part in ast.walk(member.annotation):
                    if isinstance(part, ast.Name):
                        origin = self.origins.get(part.id, "")
                        if not plain or origin.partition(".")[0] in SPECIAL_ANNOTATIONS:
                            yield part


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its own scope."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.ExceptHandler) and node.name:
        yield node.name
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            yield alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)
    elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)
