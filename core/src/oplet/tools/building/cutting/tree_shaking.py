"""The source of a module with only those statements that are needed, without comments, docstrings and annotations."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Container, Iterator, Mapping, Sequence

from oplet.tools.building.cutting.statements import SPECIAL_ANNOTATIONS, Module, Statement, imported_module

__all__ = ["shaken_source"]

#: What takes the place of annotations that nobody reads.
_ANY_TYPE = "object"
_SENTENCE = "{build} has only the variants of this op that its models use; build it again with this model."
#: The name is one that the function does not use: an import makes it local to all of it.
_REFUSAL = """
from oplet import ensure as _ensure
_ensure(False, {sentence!r})
"""


def shaken_source(
    module: Module, kept: Container[Statement], docstrings: bool = False, left_out: Container[str] = (), build: str = "The build"
) -> str:
    """A module's source with only some of its statements; "" if nothing is left.

    Args:
        module: the module.
        kept: the items to keep.
        docstrings: keep the docstrings of functions and classes.
        left_out: modules that are not there; where a function imports one, it refuses the node.
        build: what the refusal calls the new package.
    """
    body: list[ast.stmt] = []
    last: ast.stmt | None = None
    for item in module.items:
        if item not in kept:
            continue
        node = copy.deepcopy(item.node)
        if isinstance(node, (ast.Import, ast.ImportFrom)) and item.origin is last:
            previous = body[-1]
            if isinstance(previous, (ast.Import, ast.ImportFrom)):
                previous.names += node.names
            continue
        last = item.origin
        body.append(node)
    if not body:
        return ""
    body = [_Refuser(module, left_out, build).visit(node) for node in body]
    origins = {i.local: i.module for item in module.items for i in item.imports if item.is_import}
    stripper = _Stripper(module.late_annotations, not docstrings, origins)
    tree = ast.Module([stripper.visit(node) for node in body], [])
    if module.postponed_annotations and any(map(_has_late_annotation, ast.walk(tree))):
        tree.body.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    # No text of the module has an empty line, so those that there are stand between statements.
    return re.sub(r"\n\n+", "\n", text) if not any("\n\n" in each for each in _texts(tree)) else text


def _texts(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _has_late_annotation(node: ast.AST) -> bool:
    found = [each for each in (getattr(node, "annotation", None), getattr(node, "returns", None)) if each is not None]
    return any(not (isinstance(each, ast.Name) and each.id == _ANY_TYPE) for each in found)


class _Refuser(ast.NodeTransformer):
    """Puts a refusal in the place of imports of modules that are left out."""

    def __init__(self, module: Module, left_out: Container[str], build: str) -> None:
        self._module = module
        self._left_out = left_out
        self._refusal = _REFUSAL.format(sentence=_SENTENCE.format(build=build))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if imported_module(node, self._module.name, self._module.is_package) not in self._left_out:
            return node
        return ast.parse(self._refusal).body


class _Stripper(ast.NodeTransformer):
    """Takes docstrings and annotations out of functions.

    Dataclasses look at the annotations of their fields, though but for `ClassVar` and the like they do not ask what they say;
    other classes keep theirs.
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
        # One without a value makes its name a local one, which has to stay so.
        if self._annotations and self._in_class and self._fields and not self._is_special(node.annotation):
            node.annotation = ast.Name(_ANY_TYPE)
        if self._annotations and not self._in_class and node.value is not None and node.simple:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        return node
