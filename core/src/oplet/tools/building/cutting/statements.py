"""A module as the statements of its top level, each with the names that it binds and uses."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oplet.tools.building.cutting.purity import HARMLESS_MODULES, Purity
from oplet.tools.building.error import BuildError
from oplet.tools.selection.needs import Use

__all__ = ["SPECIAL_ANNOTATIONS", "Chain", "Import", "Module", "Statement", "Variant", "imported_module", "read_module"]

#: What follows a name: ("a", "b") of `name.a.b`, () where the name stands alone.
Chain = tuple[str, ...]
#: With these a module looks itself up by names that no reader can tell, so that it stays whole.
_REFLECTION = frozenset(("globals", "locals", "vars", "eval", "exec"))
#: Annotations of class bodies that dataclasses look at, though they are never computed.
SPECIAL_ANNOTATIONS = ("typing", "typing_extensions", "dataclasses")
#: The constant in which a module says which nodes need the modules that it imports in functions.
VARIANTS = "VARIANTS"


@dataclass(frozen=True)
class Variant:
    """Which nodes need a module.

    Attributes:
        inputs: the names of the types that each of its first inputs may have.
        sparse: whether only nodes with a sparse input need it.
    """

    inputs: tuple[frozenset[str], ...] = ()
    sparse: bool = False

    def serves(self, use: Use) -> bool:
        """Whether a node that is like this needs the module."""
        types = [None if type is None else type.name for type in use.inputs]
        typed = len(types) >= len(self.inputs) and all(type in group for type, group in zip(types, self.inputs))
        return typed and (use.sparse or not self.sparse)


@dataclass(frozen=True)
class Import:
    """One name that an import statement binds.

    Attributes:
        local: the name that is bound.
        module: the module imported, by its full name.
        name: what is taken out of the module; "" where the module itself is bound.
        bound: the module that `local` stands for, where it stands for the module itself.
    """

    local: str
    module: str
    name: str = ""
    bound: str = ""


@dataclass(eq=False)
class Statement:
    """One statement, or one name of an import.

    Attributes:
        node: the statement; of an import with several names, one that imports this name alone.
        origin: the statement as it stands in the file.
        binds: the names that it binds in the module.
        uses: the names that it uses, with what is looked up in them.
        imports: what it imports, inside functions too.
        strings: its texts.
        effect: it does something besides binding names.
    """

    node: ast.stmt
    origin: ast.stmt
    binds: set[str] = field(default_factory=set)
    uses: dict[str, set[Chain]] = field(default_factory=dict)
    imports: list[Import] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    effect: bool = False

    @property
    def is_import(self) -> bool:
        """Whether it is an import at the top level."""
        return isinstance(self.node, (ast.Import, ast.ImportFrom))


@dataclass(eq=False)
class Module:
    """A module that is read, not imported.

    Attributes:
        name: its full name.
        is_package: it is the `__init__.py` of a package.
        text: its source.
        items: its statements; those for type checkers are left out.
        by_name: the items that bind a name.
        whole: why nothing of it may be left out, "" if something may.
        late_annotations: its annotations are never computed.
        postponed_annotations: its annotations are not computed until something asks for them.
        variants: its `VARIANTS`: which nodes need the modules that it imports in functions, by these modules' names.
    """

    name: str
    is_package: bool
    text: str
    tree: ast.Module
    items: list[Statement]
    by_name: dict[str, list[Statement]]
    whole: str
    late_annotations: bool
    postponed_annotations: bool
    variants: dict[str, Variant]


def read_module(
    name: str, path: Path | None, is_package: bool, sources: set[str], plain_classes: bool, annotations: bool
) -> Module:
    """Read a module.

    Args:
        name: its full name.
        path: its file, None for a folder that is a package without one.
        is_package: it is a package's `__init__.py`.
        sources: the top-level packages that are being cut.
        plain_classes: subclassing their classes has no effect.
        annotations: something reads annotations at run time, so that the names in them count.

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
    statements = [s for s in _statements(tree.body) if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    reader = _Reader(name, is_package, late)
    items = [item for statement in statements for item in reader.items(statement)]
    by_name: dict[str, list[Statement]] = {}
    for item in items:
        for bound in item.binds:
            by_name.setdefault(bound, []).append(item)
    origins = {
        i.local: i.bound or f"{i.module}.{i.name}" for item in items if item.is_import for i in item.imports if i.local != "*"
    }
    reader.origins.update(origins)
    purity = Purity(origins, set(by_name) - set(origins), sources, plain_classes)
    for item in items:
        if not item.is_import:
            item.uses, item.strings = reader.uses(item.node, purity)
            item.effect = not purity.quiet(item.node) and not _is_dunder_all(item.node)
            if VARIANTS in item.binds:
                item.strings = []
    _mark_bare_imports(items, is_package, set(_mentioned(tree)), sources)
    return Module(name, is_package, text, tree, items, by_name, _whole(items, by_name), late, postponed, _variants(name, items))


def imported_module(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    """The full name of the module that `from ... import` in a module names."""
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *(node.module or "").split(".")]).rstrip(".")


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported, without those for type checkers, scripts and readers."""
    for node in body:
        if isinstance(node, ast.If):
            test, negated = node.test, False
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, negated = test.operand, True
            if (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
                isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
            ):
                yield from _statements(node.body if negated else node.orelse)
                continue
            if ast.unparse(node.test) == "__name__ == '__main__'" and not node.orelse:
                continue
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield node


def _variants(module: str, items: Iterable[Statement]) -> dict[str, Variant]:
    """The module's `VARIANTS`."""
    found: dict[str, Variant] = {}
    for item in items:
        if VARIANTS in item.binds and isinstance(item.node, (ast.Assign, ast.AnnAssign)):
            try:
                found.update((ast.literal_eval(k), _variant(v)) for k, v in _pairs(item.node.value))
            except (TypeError, ValueError):
                raise BuildError(
                    f"{VARIANTS} of {module} must be written out, as in "
                    f'{VARIANTS} = {{"package.module": {{"inputs": ((TensorType.FLOAT32,), (TensorType.INT8,)), "sparse": True}}}}.'
                ) from None
    return found


def _pairs(node: ast.expr | None) -> Iterator[tuple[ast.expr, ast.expr]]:
    if not isinstance(node, ast.Dict):
        raise ValueError
    for key, value in zip(node.keys, node.values):
        if key is None:
            raise ValueError
        yield key, value


def _variant(node: ast.expr) -> Variant:
    parts = {ast.literal_eval(key): value for key, value in _pairs(node)}
    inputs, sparse = parts.pop("inputs", None), parts.pop("sparse", None)
    if parts or (inputs is None and sparse is None):
        raise ValueError
    groups = [] if inputs is None else _members(inputs)
    names = (frozenset(e.attr for e in _members(group) if isinstance(e, ast.Attribute)) for group in groups)
    return Variant(tuple(names), sparse is not None and ast.literal_eval(sparse) is True)


def _members(node: ast.expr) -> list[ast.expr]:
    """What is in a tuple of tuples, or of members of an enum."""
    if not isinstance(node, ast.Tuple) or not all(isinstance(e, (ast.Tuple, ast.Attribute)) for e in node.elts) or not node.elts:
        raise ValueError
    return node.elts


def _is_dunder_all(node: ast.stmt) -> bool:
    """Whether it sets `__all__`, which matters for star imports only; these keep modules whole."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _mark_bare_imports(items: Iterable[Statement], is_package: bool, used: set[str], sources: set[str]) -> None:
    """An import whose name nothing uses is there for what it does, unless it hands the name on or does nothing.

    What imports of the packages that are cut do is found out by reading these.
    """
    for item in items:
        if not item.is_import or item.binds & used or (is_package and isinstance(item.node, ast.ImportFrom)):
            continue
        modules = {imported.module for imported in item.imports}
        item.effect = not any(module.partition(".")[0] in sources or module in HARMLESS_MODULES for module in modules)


def _mentioned(tree: ast.Module) -> Iterator[str]:
    """The names that are used anywhere in a module, in annotations and for type checkers too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if part is not None:
                for text in ast.walk(part):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield from re.findall(r"\w+", text.value)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and _is_dunder_all(node):
            yield from (e.value for e in ast.walk(node.value) if isinstance(e, ast.Constant) and isinstance(e.value, str))


def _whole(items: Iterable[Statement], by_name: dict[str, list[Statement]]) -> str:
    for name in ("__getattr__", "__dir__"):
        if name in by_name:
            return f"it defines {name}"
    for item in items:
        if any(i.local == "*" for i in item.imports):
            return "it imports everything of another module"
        if any((i.module, i.name) == ("sys", "modules") for i in item.imports):
            return "it looks modules up in sys.modules"
        for name, chains in item.uses.items():
            if name in _REFLECTION and () in chains:
                return f"it calls {name}()"
            if any("modules" in chain[:1] for chain in chains) and name == "sys":
                return "it looks modules up in sys.modules"
    return ""


class _Reader:
    """Collects names; `origins` says what imported names stand for."""

    def __init__(self, module: str, is_package: bool, late_annotations: bool) -> None:
        self._module = module
        self._is_package = is_package
        self._late = late_annotations
        self.origins: dict[str, str] = {}

    def items(self, node: ast.stmt) -> Iterator[Statement]:
        """The items of a statement, without what they use."""
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                if isinstance(node, ast.Import):
                    single: ast.stmt = ast.Import([alias])
                else:
                    single = ast.ImportFrom(node.module, [alias], node.level)
                imports = list(self._imports(single))
                yield Statement(single, node, {i.local for i in imports}, imports=imports)
            return
        imports = [i for inner in ast.walk(node) if isinstance(inner, (ast.Import, ast.ImportFrom)) for i in self._imports(inner)]
        yield Statement(node, node, set(_bound(node)), imports=imports)

    def _imports(self, node: ast.AST) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield Import(alias.asname or top, alias.name, "", alias.name if alias.asname else top)
        elif isinstance(node, ast.ImportFrom):
            module = imported_module(node, self._module, self._is_package)
            for alias in node.names:
                yield Import(alias.asname or alias.name, module, alias.name)

    def uses(self, node: ast.stmt, purity: Purity) -> tuple[dict[str, set[Chain]], list[str]]:
        """The names that a statement uses, and its texts."""
        found: dict[str, set[Chain]] = {}
        strings: list[str] = []
        for part in self._parts(node, purity):
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

    def _parts(self, node: ast.AST, purity: Purity) -> Iterator[ast.AST]:
        """The nodes below a node that count; a chain of attributes is one."""
        yield node
        if isinstance(node, ast.Attribute):
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute):
                inner = inner.value
            if not isinstance(inner, ast.Name):
                yield from self._parts(inner, purity)
            return
        skipped: list[ast.AST | None] = []
        if self._late:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and purity.known_decorators(node):
                skipped.append(node.returns)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for argument in ast.walk(node.args):
                    if isinstance(argument, ast.arg) and argument.annotation is not None:
                        yield from self._parts(argument.annotation, purity)
            elif isinstance(node, (ast.arg, ast.AnnAssign)):
                skipped.append(node.annotation)
            elif isinstance(node, ast.ClassDef):
                yield from self._class_annotations(node, purity)
        for child in ast.iter_child_nodes(node):
            if not any(child is skip for skip in skipped):
                yield from self._parts(child, purity)

    def _class_annotations(self, node: ast.ClassDef, purity: Purity) -> Iterator[ast.AST]:
        plain = purity.known_class(node)
        for member in node.body:
            if isinstance(member, ast.AnnAssign):
                for part in ast.walk(member.annotation):
                    if isinstance(part, ast.Name):
                        origin = self.origins.get(part.id, "")
                        if not plain or origin.partition(".")[0] in SPECIAL_ANNOTATIONS:
                            yield part


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a statement binds at the level where it stands."""
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
