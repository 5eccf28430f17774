"""`oplet build` and `oplet select` where several installed packages serve an op: which one is taken, what is said, what runs."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from oplet import BuiltinOperator, Interpreter, MutableOpResolver, PluginManager, Registration
from oplet.errors import PrepareError
from oplet_build.building.build_program import build_program
from oplet_build.building.build_wheel import BuiltWheel, build_wheel
from oplet_build.building.error import BuildError
from oplet_build.building.providers import passed_over_sentences
from oplet_build.selection.check import check_installed
from oplet_build.selection.declining_kernels import may_decline
from oplet_build.selection.lock import Lock, lock_of
from oplet_build.selection.needs import needs_of
from oplet_build.selection.providers import find_providers
from oplet_build.selection.resolver_code import resolver_code
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

#: A package's module, whose kernel multiplies.
KERNEL = """
import numpy as np
from oplet import Registration, TensorType, ensure, hookimpl{imports}


def prepare(context, node):
    {check}
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def invoke(context, node):
    np.multiply(node.inputs[0].data, {factor}, out=node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, invoke=invoke)


@hookimpl
def register_ops(resolver):
    resolver.add_{kind}("{op}", "{package}:REGISTRATION")
"""

Install = Callable[..., str]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package that serves an op, as far as Python can tell; returns its name as pip has it."""
    made = []

    def make(package: str, op: str, factor: str = "2", check: str = "pass", imports: str = "", requires: str = "") -> str:
        site = tmp_path / f"site_{package}"
        (site / package).mkdir(parents=True)
        kind = "builtin" if op in BuiltinOperator.__members__ else "custom"
        text = KERNEL.format(check=check, imports=imports, factor=factor, kind=kind, op=op, package=package)
        (site / package / "__init__.py").write_text(text)
        info, name = site / f"{package}-3.0.dist-info", package.replace("_", "-")
        info.mkdir()
        requirement = f"Requires-Dist: {requires}\n" if requires else ""
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 3.0\nRequires-Dist: oplet\n{requirement}")
        (info / "entry_points.txt").write_text(f"[oplet]\n{package} = {package}\n")
        (info / "RECORD").write_text(f"{package}/__init__.py,sha256=AAAA,1\n")
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        made.append(package)
        return name

    yield make
    for package in made:
        sys.modules.pop(package, None)


@pytest.fixture
def model(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a model of one unary op."""

    def write(op: str, dtype: str = "float32") -> Path:
        path = tmp_path / f"{op}_{dtype}.tflite"
        path.write_bytes(one_op_model(op, [Spec(dtype, [2])], [Spec(dtype, [2])]))
        return path

    return write


def built(path: Path, tmp_path: Path, **options: object) -> BuiltWheel:
    return build_wheel([path], "own_ops", tmp_path / "dist", **options)  # type: ignore[arg-type]


def origins(wheel: BuiltWheel) -> list[tuple[str, bool]]:
    return [(kernel.distribution, kernel.fallback) for kernel in wheel.cut.kernels]


def answer(wheel: BuiltWheel, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: np.ndarray) -> np.ndarray:
    """What a model gives with the wheel's kernels alone."""
    site = tmp_path / "wheel"
    zipfile.ZipFile(wheel.path).extractall(site)
    monkeypatch.syspath_prepend(str(site))
    try:
        resolver = MutableOpResolver()
        importlib.import_module("own_ops").register_ops(resolver=resolver)
        interpreter = Interpreter(str(path), op_resolver=resolver, plugins=[])
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], value)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "own_ops"]:
            del sys.modules[name]


def test_one_that_cannot_be_cut_gives_way_to_the_next_and_the_report_says_so(install, model, tmp_path, oplet) -> None:
    name = install("reading_ops", "ABS", check="open(__file__ + node.op_name)")
    ran = oplet("build", model("ABS"), "--name", "own_ops", "-o", tmp_path / "dist", "--no-timing")
    assert ran.code == 0, ran.err
    assert "Cut from oplet-builtin-ops" in ran.out
    assert f"{name} 3.0" in ran.out
    assert "reads files of its package" in ran.out
    wheel = built(model("ABS"), tmp_path)
    assert origins(wheel) == [("oplet-builtin-ops", False)]
    # Compiled kernels, where they are installed, cannot be cut either.
    passed_over = [each.provider for each in wheel.cut.passed_over if "cannot be cut" in each.reason]
    assert [provider for provider in passed_over if not provider.startswith("oplet-compiled-ops ")] == [f"{name} 3.0"]


def test_where_no_provider_can_be_cut_one_sentence_says_why(install, model, tmp_path, oplet) -> None:
    install("reading_ops", "Reads", check="open(__file__ + node.op_name)")
    with pytest.raises(BuildError, match=r"reading_ops reads files of its package in line \d+"):
        built(model("Reads"), tmp_path)
    ran = oplet("build", model("Reads"), "--name", "own_ops", "-o", tmp_path / "dist", "--no-timing")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


def test_one_whose_package_requires_more_gives_way_unless_it_is_preferred(install, model, tmp_path, monkeypatch) -> None:
    name = install("heavy_ops", "ABS", factor="3", requires="heavy-library>=2")
    wheel = built(model("ABS"), tmp_path)
    assert origins(wheel) == [("oplet-builtin-ops", False)]
    assert not any("heavy" in each for each in wheel.requires)
    assert any(
        "requires heavy-library; --prefer heavy-ops takes" in each for each in passed_over_sentences(wheel.cut.passed_over)
    )

    preferred = built(model("ABS"), tmp_path, prefer=[name])
    assert origins(preferred) == [("heavy-ops", False)]
    assert "heavy-library>=2" in preferred.requires
    assert preferred.cut.passed_over == []
    np.testing.assert_array_equal(answer(preferred, model("ABS"), tmp_path, monkeypatch, np.float32([1, -2])), [3, -6])


def test_one_that_requires_nothing_more_is_taken_as_an_interpreter_takes_it(install, model, tmp_path, monkeypatch) -> None:
    install("plain_ops", "ABS", factor="3")
    wheel = built(model("ABS"), tmp_path)
    assert origins(wheel) == [("plain-ops", False)]
    np.testing.assert_array_equal(answer(wheel, model("ABS"), tmp_path, monkeypatch, np.float32([1, -2])), [3, -6])


def test_a_costlier_one_is_taken_for_a_node_that_the_spared_one_refuses(install, model, tmp_path) -> None:
    install("heavy_ops", "ABS", requires="heavy-library")
    with pytest.raises(PrepareError):
        run_op(model("ABS", "uint32").read_bytes(), np.uint32([1, 2]), interpreter=_numpy_alone)
    wheel = built(model("ABS", "uint32"), tmp_path)
    assert origins(wheel) == [("heavy-ops", False)]


def _numpy_alone(**arguments: object) -> Interpreter:
    return Interpreter(plugins=["oplet-builtin-ops"], **arguments)  # type: ignore[arg-type]


DECLINES = {
    "check": 'decline("it knows floats only.") if node.inputs[0].type is not TensorType.FLOAT32 else None',
    "imports": ", decline",
}


def test_behind_one_that_may_decline_the_next_is_in_the_build(install, model, tmp_path, monkeypatch) -> None:
    install("choosy_ops", "ABS", factor="3", **DECLINES)
    wheel = built(model("ABS", "int32"), tmp_path)
    assert origins(wheel) == [("choosy-ops", False), ("oplet-builtin-ops", True)]
    np.testing.assert_array_equal(answer(wheel, model("ABS", "int32"), tmp_path, monkeypatch, np.int32([1, -2])), [1, 2])
    np.testing.assert_array_equal(answer(wheel, model("ABS"), tmp_path, monkeypatch, np.float32([1, -2])), [3, -6])
    program = build_program([model("ABS", "int32")], "own_ops", tmp_path / "own.pyz", with_models=True)
    assert origins(program) == origins(wheel)


def test_no_costlier_one_is_behind_the_one_that_was_taken(install, model, tmp_path) -> None:
    install("choosy_ops", "ABS", factor="3", **DECLINES)
    install("heavy_ops", "ABS", requires="heavy-library")
    wheel = built(model("ABS"), tmp_path, prefer=["choosy-ops"])
    assert origins(wheel) == [("choosy-ops", False), ("oplet-builtin-ops", True)]


def test_behind_one_that_may_decline_the_next_is_selected_and_locked(install, model, tmp_path) -> None:
    install("choosy_ops", "ABS", factor="3", **DECLINES)
    path = model("ABS", "int32")
    served = find_providers(needs_of([path]), PluginManager())
    made = importlib.util.module_from_spec(importlib.util.spec_from_loader("made_for_choosy", loader=None))
    exec(resolver_code(served), made.__dict__)
    interpreter = Interpreter(str(path), op_resolver=made.resolver(), plugins=[])
    interpreter.allocate_tensors()
    lock = lock_of(served, [])
    assert Lock.to_json(lock) == Lock.read(_written(tmp_path / "lock.json", lock.to_json())).to_json()
    assert [(op.distribution, op.fallback) for op in lock.ops if not op.fallback] == [("choosy-ops", False)]
    assert "oplet-builtin-ops" in {op.distribution for op in lock.ops if op.fallback}
    assert [problem.kind for problem in check_installed(lock, PluginManager())] == []


@pytest.mark.sweep
def test_every_compiled_kernel_that_has_limits_is_known_to_decline() -> None:
    """The source says so, some of it in modules that a kernel's own module imports, one statement after the other."""
    compiled = [
        entry
        for op in BuiltinOperator
        for entry in PluginManager().resolver().entries(op)
        if entry.provenance.distribution == "oplet-compiled-ops"
    ]
    if not compiled:
        pytest.skip("oplet-compiled-ops is not installed")
    wrong = [entry.target for entry in compiled if entry.load(entry.min_version).limits is not None and not may_decline(entry)]
    assert not wrong


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_package_that_has_nothing_to_do_with_the_ops_cannot_stop_a_build(install, model, tmp_path) -> None:
    install("odd_ops", "Odd")
    (Path(sys.path[0]) / "odd_ops" / "broken.py").write_text("this is not Python")
    wheel = built(model("ABS"), tmp_path)
    assert ("oplet-builtin-ops", False) in origins(wheel)


def test_a_fallback_replaces_nothing_and_is_asked_last() -> None:
    first, second, third = (Registration(invoke=lambda context, node: None, differences=name) for name in "abc")
    resolver = MutableOpResolver()
    resolver.add_builtin("ABS", first, 1, 2)
    resolver.add_builtin("ABS", second, 1, 3, fallback=True)

    def asked(source: MutableOpResolver, version: int) -> str:
        return "".join(each.differences for each in source.candidates(BuiltinOperator.ABS, version))

    assert [asked(resolver, version) for version in (1, 2, 3)] == ["ab", "ab", "b"]
    copy = MutableOpResolver()
    copy.add_all(resolver)
    assert [asked(copy, version) for version in (1, 2, 3)] == ["ab", "ab", "b"]
    resolver.add_builtin("ABS", third, 2)
    assert [asked(resolver, version) for version in (1, 2, 3)] == ["ab", "c", "b"]


@pytest.mark.sweep
def test_builds_hold_the_numpy_kernels_of_ops_that_have_compiled_ones_even_where_these_are_preferred(examples, tmp_path) -> None:
    pytest.importorskip("oplet_compiled_ops")
    digits = examples / "digits" / "digits_int8.tflite"
    wheel = build_wheel([digits], "own_ops", tmp_path)
    assert {name for name, _ in origins(wheel)} == {"oplet-builtin-ops"}
    assert {each.reason.partition(":")[0] for each in wheel.cut.passed_over} == {"cannot be cut"}
    preferred = build_wheel([digits], "own_ops", tmp_path, prefer=["oplet-compiled-ops"])
    assert {name for name, _ in origins(preferred)} == {"oplet-builtin-ops"}
    assert any("oplet_compiled_ops.library.opening reads files" in each.reason for each in preferred.cut.passed_over)
    told = json.loads(json.dumps(preferred.as_dict()))
    assert told["requires"] == preferred.requires
