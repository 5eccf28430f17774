"""LiteRT's interpreter to compare with: which kernels it takes, and what happens where it is missing."""

from __future__ import annotations

import doctest
import sys
import unittest
from types import ModuleType
from typing import Any

import pytest

from oplet import OpResolverType
from oplet.errors import ModelError
from oplet_testing import litert, litert_interpreter


class Theirs:
    """Stands in for LiteRT's Interpreter."""

    def __init__(self, **arguments: Any) -> None:
        self.arguments = arguments


@pytest.fixture
def theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT is installed, as far as Python can tell."""
    module: Any = ModuleType("ai_edge_litert.interpreter")
    module.Interpreter, module.OpResolverType = Theirs, OpResolverType
    monkeypatch.setitem(sys.modules, "ai_edge_litert", ModuleType("ai_edge_litert"))
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", module)


@pytest.mark.usefixtures("theirs")
def test_the_class_is_litert_s_own_where_no_kernels_are_named() -> None:
    assert litert_interpreter() is Theirs


@pytest.mark.usefixtures("theirs")
def test_kernels_go_by_the_names_of_litert_s_resolvers() -> None:
    made = litert_interpreter("BUILTIN_REF")(model_content=b"")
    assert made.arguments == {"model_content": b"", "experimental_op_resolver_type": OpResolverType.BUILTIN_REF}
    with pytest.raises(ModelError, match="LiteRT has no OpResolverType 'REF'; it has AUTO, BUILTIN, BUILTIN_REF"):
        litert_interpreter("REF")


def test_the_test_is_skipped_where_litert_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(unittest.SkipTest, match="pip install ai-edge-litert"):
        litert_interpreter()


def test_the_examples_in_the_documentation_run() -> None:
    assert doctest.testmod(litert).failed == 0
