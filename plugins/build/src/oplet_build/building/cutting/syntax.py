"""Walks through syntax trees and copies of them, which take most of a build's time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeVar

__all__ = ["copied", "statement_lists", "syntax_nodes"]

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
