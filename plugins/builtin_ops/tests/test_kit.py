"""The kit: what packages of compiled kernels may hold on to, in one documented place."""

from __future__ import annotations

import importlib
import inspect
import re

import pytest

from oplet_builtin_ops import kit

ROWS = [re.split(" {2,}", line.strip()) for line in (kit.__doc__ or "").splitlines() if line.startswith("    ")][1:]


@pytest.mark.parametrize(("module", "names", "meaning"), ROWS, ids=[row[0] for row in ROWS])
def test_the_kit_s_page_names_what_there_is(module: str, names: str, meaning: str) -> None:
    home = importlib.import_module(f"oplet_builtin_ops.{module}")
    assert meaning
    for name in names.split(", "):
        thing = getattr(home, name)
        assert thing.__doc__ or not (inspect.isclass(thing) or inspect.isfunction(thing)), name
