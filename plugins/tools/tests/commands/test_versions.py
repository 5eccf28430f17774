"""`oplet versions`: what versions a model has, what it needs, and which runtimes run it."""

from __future__ import annotations

import json

import pytest
from tests.places import ROOT

from oplet import ModelBuilder
from oplet.schema.options import AddOptions
from oplet_tools.describing.option_fields import options_page
from oplet_tools.describing.versions import describe_versions, problems_with


@pytest.fixture
def too_new(tmp_path):
    """An ADD of two float tensors that says version 4, which nothing in it needs."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(name, "float32", [2]) for name in "xyz"]
    main.add_operator("ADD", tensors[:2], tensors[2:], AddOptions(), version=4)
    main.set_inputs(*tensors[:2])
    main.set_outputs(tensors[2])
    path = tmp_path / "new.tflite"
    path.write_bytes(builder.to_bytes())
    return path


def custom_model(path, *names):
    """A chain of custom ops."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(f"t{i}", "float32", [2]) for i in range(len(names) + 1)]
    for i, name in enumerate(names):
        main.add_operator(name, [tensors[i]], [tensors[i + 1]])
    main.set_inputs(tensors[0])
    main.set_outputs(tensors[-1])
    path.write_bytes(builder.to_bytes())
    return path


def test_versions_are_described_in_json(oplet, digits):
    described = json.loads(oplet("versions", digits, "--json", "--nodes").out)
    assert described == describe_versions(digits)
    assert described["minimum_runtime"] == described["minimum_runtime_lowest"] == described["minimum_runtime_noted"] == "1.14.0"
    assert {"op": "CONV_2D", "version": 3} in described["raised_by"]
    assert {"op": "RESHAPE", "version": 1} not in described["raised_by"]
    conv = next(op for op in described["ops"] if op["op"] == "CONV_2D")
    assert (conv["version"], conv["needed"], conv["nodes"], conv["first_runtime"]) == (3, 3, 2, "1.14.0")
    assert "int8" in conv["why"]
    assert [node["node"] for node in described["nodes"]] == list(range(9))
    assert "nodes" not in json.loads(oplet("versions", digits, "--json").out)


def test_versions_are_described_in_tables(oplet, digits):
    out = oplet("versions", digits).out
    for words in ("minimum runtime: 1.14.0", "noted in the file: 1.14.0", "raised by: AVERAGE_POOL_2D version 2", "int8 input"):
        assert words in out
    assert "subgraph" not in out
    assert "subgraph" in oplet("versions", digits, "--nodes").out


def test_a_version_that_nothing_needs_is_seen(oplet, too_new):
    described = describe_versions(too_new)
    [add] = described["ops"]
    assert add["version"] == 4
    assert add["needed"] == 1
    assert described["minimum_runtime_lowest"] == "1.5.0" != described["minimum_runtime"]
    assert described["minimum_runtime_noted"] == described["minimum_runtime"]
    ran = oplet("versions", too_new, "--against", "1.5.0")
    assert ran.code == 1
    assert f"first known in {described['minimum_runtime']}" in ran.out
    assert "oplet rewrite" in ran.out
    assert oplet("versions", too_new, "--against", described["minimum_runtime"]).code == 0


@pytest.mark.parametrize(
    ("release", "code"), [("1.13.1", 1), ("1.14", 0), ("1.14.0", 0), ("2.0.0", 0), ("1.9.0", 1), ("10.0", 0)]
)
def test_releases_compare_as_numbers(oplet, digits, release, code):
    ran = oplet("versions", digits, "--against", release)
    assert ran.code == code
    assert ("would run" in ran.out) == (code == 0)
    assert json.loads(oplet("versions", digits, "--against", release, "--json").out)["runs"] == (code == 0)


@pytest.mark.parametrize("release", ["x", "", "2", "2.5.", "2.5.0.1", "2.5.0rc1", "-1.0", "v2.5.0"])
def test_a_malformed_release_is_wrong_usage(oplet, digits, release):
    ran = oplet("versions", digits, f"--against={release}")
    assert ran.code == 2
    assert f"'{release}' is not a release" in ran.err


def test_custom_ops_that_are_not_litert_s_are_named(oplet, tmp_path):
    path = custom_model(tmp_path / "m.tflite", "TFLite_Detection_PostProcess", "Mine", "FlexRoll", "Mfcc")
    problems = problems_with(path, "2.17.0")
    assert [(p["node"], p["op"]) for p in problems] == [(1, "Mine"), (2, "FlexRoll")]
    assert "not part of LiteRT" in problems[0]["why"]
    assert "Flex delegate" in problems[1]["why"]
    assert oplet("versions", path, "--against", "2.17.0").code == 1
    assert "not known" in oplet("versions", path).out


def test_a_plugin_s_rows_say_since_when_its_ops_run(tmp_path):
    class Manager:
        def runtime_versions(self):
            return {("Mine", 1): "2.9.0"}

    path = custom_model(tmp_path / "m.tflite", "Mine")
    assert describe_versions(path, Manager())["minimum_runtime"] == "2.9.0"
    assert problems_with(path, "2.9.0", Manager()) == []
    assert problems_with(path, "2.8.0", Manager())[0]["why"] == "first known in 2.9.0"


def test_what_is_no_model_is_one_line(oplet, tmp_path):
    path = tmp_path / "bad.tflite"
    path.write_bytes(b"nonsense")
    for arguments in ((), ("--against", "2.5.0")):
        ran = oplet("versions", path, *arguments)
        assert ran.code == 1
        assert ran.err.startswith("oplet: ")
        assert ran.err.count("\n") == 1


def test_the_page_of_options_is_what_the_schema_says_today() -> None:
    page = options_page()
    assert "| FULLY_CONNECTED | 14 | `FullyConnectedOptions` |" in page
    assert "keep_num_dims: False (since 5)" in page
    assert (ROOT / "docs" / "options.md").read_text("utf-8") == page, (
        "run python -m oplet_tools.describing.printable > docs/options.md"
    )
