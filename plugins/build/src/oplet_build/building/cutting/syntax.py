"""Walks through syntax trees and copies of them, which take most of a build's time; their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, TypeVar

__all__ = ["copied", "source_of", "statement_lists", "syntax_nodes"]

_Node = TypeVar("_Node", bound=ast.AST)


def syntax_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a syntax node and all below it: what `ast.walk` yields, in the same order, in less time."""
    nodes = [node]
    for current in nodes:
        yield current
        for value in vars(current).values():
            if isinstance(value, list):
                nodes += [each for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST):
                nodes.append(value)


def statement_lists(tree: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """Yield all lists of statements below a syntax node, each with the node that holds it, outer ones first.

    The caller may change a list; the statements that are left in it are followed. Expressions hold no statements and are passed over.
    """
    holders = [tree]
    for holder in holders:
        for value in vars(holder).values():
            if isinstance(value, list) and value and isinstance(value[0], (ast.stmt, ast.ExceptHandler, ast.match_case)):
                if isinstance(value[0], ast.stmt):
                    yield holder, value
                holders += value


def copied(node: _Node) -> _Node:
    """Return a copy of a syntax node with copies of all below it."""
    new = type(node)()
    for name, value in vars(node).items():
        if isinstance(value, list):
            value = [copied(each) if isinstance(each, ast.AST) else each for each in value]
        elif isinstance(value, ast.AST):
            value = copied(value)
        setattr(new, name, value)
    return new


def source_of(tree: ast.Module) -> str:
    """Return the source of a module in words of the oldest Python that oplet runs on; its tree is changed."""
    return ast.unparse(_Formatted().visit(tree))


class _Formatted(ast.NodeTransformer):
    """Makes calls of `str.format` of f-strings with texts in their fields, whose quotes `ast.unparse` does not mind from Python 3.12 on."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        fields = (each.value for each in syntax_nodes(node) if isinstance(each, ast.FormattedValue))
        constants = (each for field in fields for each in syntax_nodes(field) if isinstance(each, ast.Constant))
        if not any(isinstance(each.value, (str, bytes)) for each in constants):
            return node
        values: list[ast.expr] = []
        return ast.Call(ast.Attribute(ast.Constant(self._template(node, values)), "format", ast.Load()), values, [])

    def _template(self, node: Any, values: list[ast.expr]) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value).replace("{", "{{").replace("}", "}}")
        if isinstance(node, ast.JoinedStr):
            return "".join(self._template(part, values) for part in node.values)
        values.append(self.visit(node.value))
        conversion = f"!{chr(node.conversion)}" if node.conversion > 0 else ""
        return f"{{{conversion}{':' + self._template(node.format_spec, values) if node.format_spec else ''}}}"
