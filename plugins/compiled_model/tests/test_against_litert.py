"""Names, arguments, defaults and numbers are those of the installed ai-edge-litert, or of a newer one where the page says so."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import re
from typing import Any

import pytest
from tests.places import ROOT

litert = pytest.importorskip("ai_edge_litert.compiled_model")

#: By module, what a newer LiteRT has and this one may not.
NEWER = {"environment": {"compiler_cache_dir"}}
#: What oplet adds.
OWN = {"CompiledModelError", "interpreter", "reset_all_variables"}


def entry_points() -> dict[str, str]:
    text = (ROOT / "plugins/compiled_model/pyproject.toml").read_text()
    section = text.partition('[project.entry-points."oplet.modules"]\n')[2].partition("\n\n")[0]
    return dict(re.findall(r'^(\w+) = "(.+)"$', section, re.MULTILINE))


@pytest.mark.parametrize("module", sorted(entry_points()))
def test_each_module_has_the_public_names_of_litert_s(module: str) -> None:
    mine, its = importlib.import_module(entry_points()[module]), importlib.import_module(f"ai_edge_litert.{module}")
    public = [
        name for name, value in vars(its).items() if isinstance(value, type | type(public_names)) and not name.startswith("_")
    ]
    named = [name for name in public if getattr(getattr(its, name), "__module__", "").startswith("ai_edge_litert")]
    assert named, module
    assert not [name for name in named if not hasattr(mine, name)]


def public_names(cls: type) -> list[str]:
    return [name for name in dir(cls) if not name.startswith("_")]


@pytest.mark.parametrize("name", ["CompiledModel", "TensorBuffer", "Environment", "Options"])
def test_each_method_takes_the_same_arguments_with_the_same_defaults(name: str) -> None:
    mine: Any = getattr(importlib.import_module("oplet_compiled_model"), name)
    its = getattr(litert, name)
    for method in public_names(its):
        theirs = getattr(its, method)
        assert hasattr(mine, method), method
        if not callable(theirs):
            continue
        newer = NEWER.get("environment", set()) if name == "Environment" else set()
        found = [(p.name, p.default) for p in inspect.signature(getattr(mine, method)).parameters.values() if p.name not in newer]
        assert found == [(p.name, p.default) for p in inspect.signature(theirs).parameters.values()], method
    assert set(public_names(mine)) - set(public_names(its)) <= OWN


@pytest.mark.parametrize(
    "name", ["CpuOptions", "GpuOptions", "QualcommOptions", "IntelOpenVinoOptions", "EnvironmentOptions", "Options"]
)
def test_options_have_the_same_fields_defaults_and_flat_form(name: str) -> None:
    mine: Any = getattr(importlib.import_module("oplet_compiled_model"), name)
    its = getattr(litert, name)
    newer = NEWER.get("environment", set()) if name == "EnvironmentOptions" else set()
    ours = {key: value for key, value in dataclasses.asdict(mine()).items() if key not in newer}
    assert ours == dataclasses.asdict(its())
    if hasattr(its, "_as_flat_kwargs"):
        assert mine()._as_flat_kwargs() == its()._as_flat_kwargs()
        assert list(mine()._as_flat_kwargs()) == list(its()._as_flat_kwargs())


def test_options_that_are_set_have_the_same_flat_form_too() -> None:
    def flat(package: str) -> dict[str, Any]:
        made = importlib.import_module(package)
        quick = made.QualcommOptions
        options = made.Options(
            made.HardwareAccelerator.GPU | made.HardwareAccelerator.NPU,
            made.CpuOptions(3, made.CpuKernelMode.BUILTIN, True, 7, "cache"),
            made.GpuOptions(enforce_f32=True, constant_tensor_sharing=True),
            quick(log_level=quick.LOG_LEVEL.INFO, use_conv_hmx=False, dump_tensor_ids=[1, 2], vtcm_size=4, dlc_dir="d"),
        )
        options.intel_openvino_options.configs_map["a"] = "b"
        flat: dict[str, Any] = options._as_flat_kwargs()
        return flat

    assert flat("oplet_compiled_model") == flat("ai_edge_litert.compiled_model")


@pytest.mark.parametrize("module", ["hardware_accelerator", "cpu_kernel_mode", "qualcomm_options", "intel_openvino_options"])
def test_numbers_of_enumerations_are_the_same(module: str) -> None:
    mine, its = (
        importlib.import_module(f"oplet_compiled_model.options.{module}"),
        importlib.import_module(f"ai_edge_litert.{module}"),
    )
    enums = {name: value for name, value in vars(its).items() if isinstance(value, type) and issubclass(value, enum.Enum)}
    assert enums
    for name, theirs in enums.items():
        assert {key: int(value) for key, value in getattr(mine, name).__members__.items()} == {
            key: int(value) for key, value in theirs.__members__.items()
        }
