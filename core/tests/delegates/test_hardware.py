"""Delegates say which hardware they run nodes on, and are found by it."""

from __future__ import annotations

import pytest

from oplet import Delegate, DelegateRegistry
from oplet.errors import DelegateError
from oplet.toolkit import default_manager


def test_a_delegate_is_found_by_its_hardware_with_the_options_that_choose_it() -> None:
    registry = DelegateRegistry()
    registry.add("zoom", Delegate, accelerates={"gpu": {"device": "1"}})
    registry.add("any", Delegate, accelerates={"gpu": {}, "npu": {"mode": "fast"}})
    registry.add("plain", Delegate)
    assert [entry.name for entry in registry.accelerating("gpu")] == ["any", "zoom"]
    [entry] = registry.accelerating("npu")
    assert entry.create(entry.accelerates["npu"]).options == {"mode": "fast"}
    assert registry.accelerating("cpu") == []


def test_other_hardware_is_refused_with_what_there_is() -> None:
    with pytest.raises(DelegateError, match="'tpu'; the hardware is one of cpu, gpu, npu"):
        DelegateRegistry().add("odd", Delegate, accelerates={"tpu": {}})


def test_the_delegates_of_this_repository_say_what_they_run_on() -> None:
    found = {entry.name: sorted(entry.accelerates) for entry in default_manager().registry().entries()}
    wanted = {"litert": ["cpu"], "openvino": ["cpu", "gpu", "npu"], "example": [], "flex": [], "xla": ["gpu"]}
    assert {name: kinds for name, kinds in found.items() if name in wanted} == {
        name: kinds for name, kinds in wanted.items() if name in found
    }
    assert "litert" in found
