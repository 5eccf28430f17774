"""Small models that would take long, or much memory, end in time and within 1 GB under the limits that docs/reliability.md shows."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.places import ROOT

from .limited_child import CASES

_ROOT = ROOT
#: Those that take a second.
_QUICK = ("add_n_of_many_operands", "unique_of_many_values", "n_grams_of_a_long_sentence", "n_grams_of_many_nodes")
#: How one may end; one that is not named here may end in any of these ways.
_ENDS = ("ran", "DeadlineError", "LimitError")
_OWN = {
    "unique_of_many_values": ("LimitError",),
    "n_grams_of_many_nodes": ("LimitError", "DeadlineError"),  # whichever a busy machine reaches first; it must not run
    "pack_of_very_many_operands": ("LimitError",),
    "hash_of_a_long_item": ("DeadlineError",),
}


def ends(name: str, *plugins: str) -> str:
    """How the case ended in its process; memory, time and exceptions of no class of oplet's end the process."""
    command = [sys.executable, "-m", "tests.hostile.limited_child", name, *plugins]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{name} ended with {done.returncode}: {done.stderr[-2000:]}"
    return str(json.loads(done.stdout))


@pytest.mark.parametrize("name", _QUICK)
def test_a_small_model_ends_within_its_limits(name: str) -> None:
    assert ends(name, "builtin_ops") in _OWN.get(name, _ENDS)


@pytest.mark.sweep
@pytest.mark.parametrize("name", [name for name in CASES if name not in _QUICK])
def test_any_small_model_ends_within_its_limits(name: str) -> None:
    assert ends(name, "builtin_ops") in _OWN.get(name, _ENDS)


@pytest.mark.sweep
@pytest.mark.parametrize("name", CASES)
def test_any_small_model_ends_within_its_limits_beside_compiled_kernels(name: str) -> None:
    pytest.importorskip("oplet_compiled_ops")
    assert ends(name, "builtin_ops", "compiled_ops") in _OWN.get(name, _ENDS)
