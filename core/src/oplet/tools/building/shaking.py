"""The source of a module with only those statements that are needed, without comments, docstrings and annotations."""

from __future__ import annotations

import ast
import copy
from collections.abc import Container, Sequence

from oplet.tools.building.items import Item, Module, imported_module

__all__ = ["shaken"]

#: The name is one that the function does not use: an import makes it local to all of it.
_REFUSAL = """
from oplet import ensure as _ensure
_ensure(False, "this build was made for other types of tensors; build it with a model that has this one.")
"""


def shaken(module: Module, kept: Container[Item], docstrings: bool = False, left_out: Container[str] = ()) -> str:
    """A module's source with only some of its statements; "" if nothing is left.

    Args:
        module: the module.
        kept: the items to keep.
        docstrings: keep the docstrings of functions and classes.
        left_out: modules that are not there; where a function imports one, it refuses the node.
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
    body = [_Refuser(module, left_out).visit(node) for node in body]
    stripper = _Stripper(annotations=module.late_annotations, docstrings=not docstrings)
    tree = ast.Module([stripper.visit(node) for node in body], [])
    if module.late_annotations and any(getattr(n, "annotation", None) or getattr(n, "returns", None) for n in ast.walk(tree)):
        tree.body.insert(0, ast.ImportFrom("__future__", [ast.alias("annotations")], 0))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Refuser(ast.NodeTransformer):
    """Puts a refusal in the place of imports of modules that are left out."""

    def __init__(self, module: Module, left_out: Container[str]) -> None:
        self._module = module
        self._left_out = left_out

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        if imported_module(node, self._module.name, self._module.is_package) not in self._left_out:
            return node
        return ast.parse(_REFUSAL).body


class _Stripper(ast.NodeTransformer):
    """Takes docstrings and annotations out of functions; those of class bodies may be read by dataclasses and stay."""

    def __init__(self, annotations: bool, docstrings: bool) -> None:
        self._annotations = annotations
        self._docstrings = docstrings
        self._in_class = False

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

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outer, self._in_class = self._in_class, True
        node.body = self._body(node.body)
        self.generic_visit(node)
        self._in_class = outer
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer, self._in_class = self._in_class, False
        node.body = self._body(node.body)
        if self._annotations and not node.decorator_list:
            node.returns = None
            arguments = node.args
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
                if argument is not None:
                    argument.annotation = None
        self.generic_visit(node)
        self._in_class = outer
        return node

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        # One without a value makes its name a local one, which has to stay so.
        if self._annotations and not self._in_class and node.value is not None and node.simple:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        return node
