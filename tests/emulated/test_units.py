"""The units of arithmetic pass on another architecture: what computes, and what processors do in different ways."""

from __future__ import annotations

import os
import re

import pytest
from scripts.emulated.environment import imported_from
from tests import wheelhouse
from tests.children import run_child
from tests.emulated.ways import EMULATED, Way
from tests.places import ROOT

pytestmark = pytest.mark.environment

PACKAGES = ("builtin_ops", "testing", "predictor")
#: The rooms and files whose truth depends on a processor: fixed-point and half-precision arithmetic, tables, conversions of floats
#: to integers and integers that wrap around. Left out is what moves values and checks models, which the recorded cases go through there, as an
#: emulated processor is twenty times slower; EMULATED_UNITS names others. What compares with LiteRT skips itself, since LiteRT is not installed there.
UNITS = (
    "core/tests/kernels",
    "plugins/builtin_ops/tests/arithmetic",
    "plugins/builtin_ops/tests/elementwise/test_binary_arithmetic.py",
    "plugins/builtin_ops/tests/elementwise/test_cast.py",
    "plugins/builtin_ops/tests/elementwise/test_pairwise.py",
    "plugins/builtin_ops/tests/elementwise/test_quantize.py",
    "plugins/builtin_ops/tests/elementwise/test_stablehlo_elementwise.py",
    "plugins/builtin_ops/tests/layers/test_pool.py",
    "plugins/builtin_ops/tests/recurrent/test_gate_arithmetic.py",
    "plugins/builtin_ops/tests/test_few_values.py",
)


@pytest.mark.parametrize("way", EMULATED[:1], ids=str)
def test_units_of_arithmetic_pass_on_another_architecture(way: Way) -> None:
    asked = os.environ.get("EMULATED_UNITS", "").split() or UNITS
    with imported_from(wheelhouse.needed(*PACKAGES)) as paths:
        command, variables = way.start(paths)
        program = [*command, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--part", "all", *asked]
        done = run_child(program, env=variables, cwd=ROOT)
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed, done.stdout[-2000:]
    assert asked is not UNITS or int(passed[1]) >= 450
    print(f"{way}: {passed.string[passed.start() :].splitlines()[0]}")
