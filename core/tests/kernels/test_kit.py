"""oplet.kernels, the kit for authors of operators."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.children import run_child

import oplet.kernels
from oplet.errors import PrepareError
from oplet.kernels import axes, options, windows
from oplet.kernels.arrays import address_of, copier
from oplet.schema.enums import Padding

MODULES = sorted(module.name for module in pkgutil.iter_modules(oplet.kernels.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_the_kit_are_true(name: str) -> None:
    assert not doctest.testmod(importlib.import_module(f"oplet.kernels.{name}")).failed


@pytest.mark.parametrize("name", MODULES)
def test_the_kit_s_page_names_every_module_and_its_names_have_docstrings(name: str) -> None:
    assert f"\n    {name} " in (oplet.kernels.__doc__ or "")
    module = importlib.import_module(f"oplet.kernels.{name}")
    for public in module.__all__:
        thing = getattr(module, public)
        assert not callable(thing) or isinstance(thing, type(list[int])) or getattr(thing, "__doc__", None), public


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_kit_imports_neither_the_interpreter_nor_plugins(name: str) -> None:
    code = f"import sys, oplet.kernels.{name}; print(*sys.modules)"
    loaded = set(run_child([sys.executable, "-c", code]).stdout.split())
    loaded -= set(
        run_child([sys.executable, "-c", "import sys; print(*sys.modules)"]).stdout.split()
    )  # what each start of Python imports
    assert not {
        m for m in loaded if m.startswith(("oplet_", "oplet.runtime", "oplet.model", "oplet.plugins.manager", "oplet_tools"))
    }


numbers = st.integers(1, 12)


@given(st.integers(1, 60), numbers, numbers, st.sampled_from([Padding.SAME, Padding.VALID]), st.integers(1, 4))
def test_windows_fit_into_the_axis_with_its_padding(size: int, filter: int, stride: int, padding: Padding, dilation: int) -> None:
    span = (filter - 1) * dilation + 1
    out = windows.windows_in(size, filter, stride, padding, dilation)
    before, behind = windows.padding_around(size, filter, stride, padding, dilation)
    assert 0 <= behind - before <= 1
    padded = size + before + behind
    if padding == Padding.VALID:
        assert (before, behind) == (0, 0)
        fitting = len(range(0, padded - span + 1, stride)) if padded >= span else 0
        assert max(out, 0) == fitting
    else:
        assert out == len(range(0, size, stride))
        assert (out - 1) * stride + span <= max(padded, size)
        assert windows.padding_before(out, size, filter, stride, dilation) == before
    if out < 0:
        with pytest.raises(PrepareError, match="the padding is VALID"):
            windows.window_axis("height", padding, size, filter, stride, dilation)
    else:
        axis = windows.window_axis("height", padding, size, filter, stride, dilation)
        assert (axis.out, axis.span) == (out, span)
        assert axis.before == before or not out  # where there is no window, there is nothing to pad


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "'n' is missing; it must be an integer from 1 to 9"),
        (0, "'n' is 0;"),
        (10, "'n' is 10;"),
        (True, "'n' is True;"),
        (1.5, r"'n' is 1\.5;"),
        ("3", "'n' is '3';"),
        (float("nan"), "'n' is nan;"),
        ([1], r"'n' is \[1\];"),
    ],
)
def test_an_integer_option_is_refused_with_its_bounds(value: Any, reason: str) -> None:
    with pytest.raises(PrepareError, match=reason):
        options.integer({} if value is None else {"n": value}, "n", least=1, most=9)


def test_whole_floats_are_integers() -> None:
    assert options.integer({"n": 3.0}, "n") == 3
    assert options.integers({"n": [1, 2.0]}, "n", count=2) == [1, 2]


@pytest.mark.parametrize("value", [None, [], [1], [1, 2, 3], [1, "2"], [1, -1], [1, 2**31], 5])
def test_a_list_of_another_length_or_kind_is_refused(value: Any) -> None:
    with pytest.raises(PrepareError, match="the option 'n'"):
        options.integers({"n": value}, "n", count=2)


@pytest.mark.parametrize("value", [None, True, "1", float("inf"), float("nan")])
def test_a_number_is_finite(value: Any) -> None:
    with pytest.raises(PrepareError, match="it must be a finite number"):
        options.number({"x": value}, "x")


@pytest.mark.parametrize("value", [None, "yes", 1.0])
def test_a_flag_is_true_or_false(value: Any) -> None:
    with pytest.raises(PrepareError, match="it must be true or false"):
        options.flag({"on": value}, "on")


@given(st.integers(-8, 8), st.integers(0, 8))
def test_an_axis_is_counted_as_python_counts(axis: int, rank: int) -> None:
    if -rank <= axis < rank:
        assert axes.resolve_axis(axis, rank) == range(rank)[axis]
    else:
        with pytest.raises(PrepareError, match=f"axis is {axis}, which a tensor of rank {rank} does not have"):
            axes.resolve_axis(axis, rank)


def test_a_copy_onto_itself_does_nothing_and_another_follows_its_source() -> None:
    import numpy as np

    source = np.arange(4.0)
    target = np.zeros(4)
    copier(source, source)()
    run = copier(target, source)
    source += 1
    run()
    assert target.tolist() == [1, 2, 3, 4]


def test_the_address_of_an_array_is_that_which_numpy_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = np.arange(24, dtype=np.int16).reshape(4, 6)
    frozen = whole[1:].copy()
    frozen.flags.writeable = False
    whole.tofile(tmp_path / "values")
    mapped = np.memmap(tmp_path / "values", np.int16, "r")
    arrays = [
        whole,
        whole[1:, 2:],
        whole[::-1, ::2],
        whole.T,
        frozen,
        mapped,
        mapped[3:],
        np.zeros(()),
        np.zeros((0, 3)),
        np.frombuffer(b"abc", "u1"),
    ]
    told = [int(array.__array_interface__["data"][0]) for array in arrays]
    assert [address_of(array) for array in arrays] == told
    monkeypatch.setattr("oplet.ops.shared_values._is_known", False)  # as with another Python
    assert [address_of(array) for array in arrays] == told
