"""The kit: what packages of compiled kernels may hold on to, in one documented place."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import pytest

from oplet_builtin_ops import kit

MODULES = sorted(module.name for module in pkgutil.iter_modules(kit.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_kit_s_page_has_each_module_with_its_names(name: str) -> None:
    module = importlib.import_module(f"oplet_builtin_ops.kit.{name}")
    [told] = [line for line in (kit.__doc__ or "").splitlines() if line.startswith(f"    {name} ")]
    names = re.split(" {2,}", told.strip())[1].split(", ")
    assert sorted(names) == sorted(module.__all__)
    for public in module.__all__:
        thing = getattr(module, public)
        assert thing.__doc__ or not (inspect.isclass(thing) or inspect.isfunction(thing)), public


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_kit_has_no_code_of_its_own(name: str) -> None:
    module = importlib.import_module(f"oplet_builtin_ops.kit.{name}")
    tree = ast.parse(inspect.getsource(module))
    docstring, _, *imports, public = tree.body
    assert isinstance(docstring, ast.Expr)
    assert ast.unparse(public).startswith("__all__ = ")
    assert all(isinstance(node, ast.ImportFrom) for node in imports)
    assert sorted(alias.name for node in imports if isinstance(node, ast.ImportFrom) for alias in node.names) == sorted(
        module.__all__
    )
