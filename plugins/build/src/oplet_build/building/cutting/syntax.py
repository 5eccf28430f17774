"""Walks through syntax trees, which take most of a build's time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

__all__ = ["syntax_nodes"]


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
