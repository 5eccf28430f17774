"""Tree shaking: reduces a module's source to the statements that are needed, without comments, docstrings and annotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence

from oplet_build.building.cutting.statements import SPECIAL_ANNOTATIONS, Module, Statement, imported_module
from oplet_build.building.cutting.syntax import copied, source_of, syntax_nodes

__all__ = ["shaken_source"]

#: Replaces annotations that are never read but may not be left out.
_ANY_TYPE = "object"
_SENTENCE = "{build} has only the variants of this op that its models use; build it again with this model."
#: The statement that replaces an import. It imports under a name of its own, as an import makes its name local to the whole function.
_REFUSAL = """
from oplet import ensure as _ensure
_ensure(False, {sentence!r})
"""


def shaken_source(
    module: Module, kept: Container[Statement], docstrings: bool = False, left_out: Collection[str] = (), build: str = "The build"
) -> str:
    """Return the source of some of a module's statements; "" if nothing is left.

    Args:
        module: the module.
        kept: the statements to keep.
        docstrings: keep the docstrings of functions and classes.
        left_out: modules that are missing from the build; where a function imports one, it raises an error: the node is refused.
        build: the name of the new package in that error's message.
    """
    body: list[ast.stmt] = []
    last: ast.stmt | None = None
    for statement in module.statements:
        if statement not in kept:
            continue
        node = copied(statement.node)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and statement.origin is last:
            previous = body[-1]
            if isinstance(previous, (ast.Import, ast.ImportFrom)):
                previous.names += node.names
            continue
        last = statement.origin
        body.append(node)
    if not body:
        return ""
    if left_out:
        body = [_Refuser(module, left_out, build).visit(node) for node in body]
    origins = {i.local: i.module for statement in module.statements for i in statement.imports if statement.is_import}
    stripper = _Stripper(module.ignores_annotations, not docstrings, origins)
    tree = ast.Module([stripper.visit(node) for node in body], [])
    if module.postpones_annotations and any(map(_has_late_annotation, syntax_nodes(tree))):
        tree.body.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
    text = source_of(tree) + "\n"
    # Empty lines between statements are dropped, unless a string of the module has an empty line, which must stay.
    return re.sub(r"\n\n+", "\n", text) if not any("\n\n" in each for each in _texts(tree)) else text


def _texts(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in syntax_nodes(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _has_late_annotation(node: ast.AST) -> bool:
    found = [each for each in (getattr(node, "annotation", None), getattr(node, "returns", None)) if each is not None]
    return any(not (isinstance(each, ast.Name) and each.id == _ANY_TYPE) for each in found)


class _Refuser(ast.NodeTransformer):
    """Replaces imports of modules that are missing from the build by a statement that raises an error."""

    def __init__(self, module: Module, left_out: Container[str], build: str) -> None:
        self._module = module
        self._left_out = left_out
        self._refusal = _REFUSAL.format(sentence=_SENTENCE.format(build=build))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if imported_module(node, self._module.name, self._module.is_package) not in self._left_out:
            return node
        return ast.parse(self._refusal).body


class _Stripper(ast.NodeTransformer):
    """Removes docstrings and annotations.

    The fields of a dataclass need an annotation, whose content matters only for `ClassVar` and the like; other classes keep theirs.
    """

    def __init__(self, annotations: bool, docstrings: bool, origins: Mapping[str, str]) -> None:
        self._annotations = annotations
        self._docstrings = docstrings
        self._origins = origins
        self._in_class = False
        self._fields = False

    def _body(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        left = [
            node
            for index, node in enumerate(body)
            if not (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
                and (index or self._docstrings)
            )
        ]
        return left or [ast.Pass()]

    def _is_dataclass(self, node: ast.ClassDef) -> bool:
        names = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
        known = [isinstance(name, ast.Name) and self._origins.get(name.id) == "dataclasses" for name in names]
        return bool(known) and all(known) and not node.bases and not node.keywords

    def _is_special(self, annotation: ast.expr) -> bool:
        parts = list(ast.walk(annotation))
        names = {self._origins.get(part.id, "").partition(".")[0] for part in parts if isinstance(part, ast.Name)}
        return not names.isdisjoint(SPECIAL_ANNOTATIONS) or any(isinstance(p, ast.Constant) and p.value for p in parts)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outer, self._in_class, self._fields = (self._in_class, self._fields), True, self._is_dataclass(node)
        node.body = self._body(node.body)
        self.generic_visit(node)
        self._in_class, self._fields = outer
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer, self._in_class = (self._in_class, self._fields), False
        node.body = self._body(node.body)
        if self._annotations and not node.decorator_list:
            node.returns = None
            arguments = node.args
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
                if argument is not None:
                    argument.annotation = None
        self.generic_visit(node)
        self._in_class, self._fields = outer
        return node

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        # An annotation without a value still makes its name local, so it is replaced rather than removed.
        if self._annotations and self._in_class and self._fields and not self._is_special(node.annotation):
            node.annotation = ast.Name(_ANY_TYPE)
        if self._annotations and not self._in_class and node.value is not None and node.simple:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        return node
