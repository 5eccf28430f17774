"""Functions that register operators with LiteRT's C++ resolver register them here; those that cannot are refused."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, MutableOpResolver
from oplet.errors import PluginError
from oplet_native_ops import load_registerer
from oplet_native_ops.shim.elf import ElfError, bound_names
from oplet_native_ops.shim.library import library_path
from oplet_testing import Spec, one_op_model, run_op

SOURCE = "registerers.cc"
SPECS = [Spec("float32", [3])], [Spec("float32", [3])]
X = np.array([0, 1, -1], np.float32)


def give(resolver: MutableOpResolver, op: str, version: int = 1) -> Any:
    return run_op(one_op_model(op, *SPECS, version=version), X, op_resolver=resolver)[0]


@pytest.mark.parametrize("function", ["AddAtan", "AddAtanInCpp", "tflite::ops::AddAll"])
def test_what_a_function_registers_runs(build_once: Any, function: str) -> None:
    resolver = load_registerer(build_once(SOURCE), function)
    np.testing.assert_allclose(give(resolver, "Atan"), np.arctan(X), rtol=0, atol=1e-6)
    interpreter = Interpreter(model_content=one_op_model("Atan", *SPECS), op_resolver=resolver)
    assert [report.plugin for report in interpreter.explain()] == [Path(build_once(SOURCE)).name]


def test_each_operator_serves_the_versions_it_is_registered_for(build_once: Any) -> None:
    resolver = load_registerer(build_once(SOURCE), "tflite::ops::AddAll")
    for version in (2, 3):
        np.testing.assert_array_equal(give(resolver, "Tenfold", version), 10 * X)
    for op, versions in {"Tenfold": (1, 4), "Atan": (2,), BuiltinOperator.NEG: (2,), BuiltinOperator.ADD: (3,)}.items():
        assert [resolver.find_op(op, version) for version in versions] == [None] * len(versions)
    assert all(resolver.find_op(BuiltinOperator.ADD, version) for version in (1, 2))


def test_it_replaces_built_in_operators_and_leaves_out_what_is_null(build_once: Any) -> None:
    resolver = load_registerer(build_once(SOURCE), "tflite::ops::AddAll")
    np.testing.assert_array_equal(give(resolver, "NEG"), 10 * X)
    assert BuiltinOperator(60) is not None
    assert resolver.find_op(BuiltinOperator(60), 1) is None


def test_a_second_load_gives_the_same_operators(build_once: Any) -> None:
    first, second = (load_registerer(build_once(SOURCE), "AddAtan") for _ in range(2))
    np.testing.assert_array_equal(give(first, "Atan"), give(second, "Atan"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("AddMissing", "exports no function AddMissing"),
        ("AddNothing", "AddNothing of lib.* registers no operators"),
        ("AddNameless", "an operator without a name"),
        ("AddUnknown", "the builtin code 4711"),
        ("AddVersions", "version 1073741824; versions are numbers from 1 to 9999"),
        ("AddIdle", "has no invoke"),
        ("AddElsewhere", "fills a resolver of its own"),
    ],
)
def test_what_is_registered_wrongly_is_refused(build_once: Any, function: str, message: str) -> None:
    with pytest.raises(PluginError, match=message):
        load_registerer(build_once(SOURCE), function)


def test_a_library_that_keeps_its_resolver_for_itself_is_refused_before_it_is_called(build_once: Any) -> None:
    with pytest.raises(PluginError, match="keeps LiteRT's resolver for itself"):
        load_registerer(build_once(SOURCE, "-DRESOLVER_INSIDE"), "AddAtan")


def test_a_library_that_somebody_else_has_loaded_is_refused(build_once: Any, tmp_path: Path) -> None:
    path = shutil.copy(build_once(SOURCE), tmp_path / "libearlier.so")
    ctypes.CDLL(str(path), mode=os.RTLD_LAZY)
    with pytest.raises(PluginError, match="libearlier.so was loaded before"):
        load_registerer(path, "AddAtan")


def test_names_that_the_loader_looks_up_are_read(build_once: Any, tmp_path: Path) -> None:
    names = bound_names(build_once(SOURCE))
    assert {"_ZN6tflite17MutableOpResolver9AddCustomEPKcPK18TfLiteRegistrationi", "TfLiteIntArrayCopy"} <= names
    assert "TfLiteOperatorCreate" not in bound_names(str(library_path()))  # its own, by -Bsymbolic
    cut = tmp_path / "cut.so"
    cut.write_bytes(Path(build_once(SOURCE)).read_bytes()[:600])
    with pytest.raises(ElfError, match="damaged|outside"):
        bound_names(str(cut))
