"""`oplet build --with-core`: programs of one file, and what their command line promises."""

from __future__ import annotations

import io
import json
import marshal
import os
import shutil
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from importlib_metadata import distribution
from PIL import Image
from tests.places import EXAMPLES, REAL

from oplet import Interpreter, Model, PluginManager
from oplet_build.building.build_program import BuiltProgram, build_program
from oplet_build.building.cutting.cut_core import cut_core
from oplet_build.building.cutting.cut_kernels import CutPackage, cut_kernels
from oplet_build.building.error import BuildError
from oplet_build.building.packing.payload import Payload, make_payload, write_pyz
from oplet_build.selection.needs import needs_of
from oplet_build.standalone.contents import AppContents, AppModel
from oplet_build.standalone.main import main

DIGITS = EXAMPLES / "digits"
ATAN = EXAMPLES / "atan" / "atan.tflite"


@pytest.fixture(scope="module")
def digits() -> Path:
    return DIGITS / "digits_int8.tflite"


@pytest.fixture(scope="module")
def kernels(digits: Path) -> CutPackage:
    return cut_kernels(needs_of([digits]), "digits_app", PluginManager())


@pytest.fixture(scope="module")
def payload(kernels: CutPackage, digits: Path) -> Payload:
    return make_payload(kernels, "1.2", models=[Model.open(digits)], with_models=True)


@pytest.fixture(scope="module")
def pyz(payload: Payload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pyz(payload, tmp_path_factory.mktemp("program") / "digits.pyz")


@pytest.fixture
def contents(tmp_path: Path, digits: Path) -> AppContents:
    """A program as a folder, with two models."""
    (tmp_path / "digits.tflite").write_bytes(digits.read_bytes())
    (tmp_path / "atan.tflite").write_bytes(ATAN.read_bytes())
    models = tuple(AppModel(name, f"{name}.tflite", (tmp_path / f"{name}.tflite").stat().st_size) for name in ("digits", "atan"))
    return AppContents("two", "3.4", models, root=str(tmp_path))


def run(*command: object, code: int = 0) -> str:
    """Run a command away from this repository, with nothing of it on the path; what it printed, errors included."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    environment = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("OPLET_")}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def inside(pyz: Path, code: str) -> str:
    """What Python code prints that finds the program first."""
    return run(sys.executable, "-c", f"import sys; sys.path.insert(0, {str(pyz)!r})\n{code}")


# What is in it ---------------------------------------------------------------------------------------------------------


def test_a_program_holds_the_part_of_the_core_that_runs_models(pyz: Path) -> None:
    names = zipfile.ZipFile(pyz).namelist()
    modules = {name for name in names if name.endswith(".py")}
    assert {
        "__main__.py",
        "oplet/app.py",
        "oplet/runtime/interpreter.py",
        "oplet/schema/decode.py",
        "oplet/schema/table_decoder.py",
        "oplet_build/bundle.py",
        "oplet_build/standalone/main.py",
        "oplet_tools/running/run.py",
        "digits_app/__init__.py",
    } <= modules
    assert "oplet/models/digits_int8.tflite" in names
    dropped = (
        "oplet_tools/cli",
        "oplet_tools/comparing",
        "oplet_tools/tuning/choice",
        "oplet_testing",
        "oplet_predictor",
        "oplet/versions",
        "oplet_build/building",
        "oplet_build/commands",
        "oplet_build/selection",
        "oplet/schema/encode",
    )
    stubs = {"oplet/versions/__init__.py", "oplet/versions/runtime_version.py"}
    assert not [
        name for name in {*names} - stubs if name.startswith(dropped) or "scaffold" in name or name.endswith((".in", ".csv"))
    ]
    assert "oplet/model/builders/model_builder.py" not in names
    assert not [name for name in names if name.startswith(("pluggy", "importlib_metadata", "flatbuffers", "zipp"))]


def test_a_program_holds_the_licences_and_says_what_it_is_made_of(pyz: Path) -> None:
    archive = zipfile.ZipFile(pyz)
    assert "oplet-core 0.1.0: Apache-2.0, oplet-builtin-ops/LICENSE" in archive.read("licenses/SOURCES").decode()
    assert "Apache License" in archive.read("licenses/oplet-builtin-ops/LICENSE").decode()
    sources = archive.read("licenses/SOURCES").decode()
    assert "\noplet-core " in sources
    assert "\noplet-builtin-ops " in sources
    for carried, licence in (("oplet-build", "Apache-2.0"), ("oplet-tools", "Apache-2.0 AND MIT")):
        assert f"\n{carried} 0.1.0: {licence}, oplet-builtin-ops/LICENSE" in sources
    assert "flatbuffers" not in sources  # of which these kernels need nothing
    assert not [name for name in archive.namelist() if "flatbuffers" in name]


def test_every_module_is_there_as_source_and_compiled(pyz: Path) -> None:
    with zipfile.ZipFile(pyz) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".bin")]
        compiled = {path for path, _, _ in marshal.loads(archive.read(name)).values()}
        sources = {name for name in archive.namelist() if name.endswith(".py")}
    assert sources - compiled == {"__main__.py", "_oplet_compiled.py"}
    printed = inside(
        pyz, "import oplet.app\nimport oplet.errors\nprint(type(oplet.errors.__loader__).__name__, oplet.errors.__file__)"
    )
    assert printed.split() == ["Compiled", str(pyz / "oplet" / "errors.py")]


def test_another_python_takes_the_sources(pyz: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pyz"
    with zipfile.ZipFile(pyz) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            new.writestr("modules-1.bin" if name.endswith(".bin") else name, old.read(name))
    printed = inside(other, "import oplet.app\nimport oplet.errors\nprint(type(oplet.errors.__loader__).__name__)")
    assert printed.split() == ["zipimporter"]
    assert "outputs" in run(sys.executable, other)


def test_compiled_modules_can_be_left_out(payload: Payload, tmp_path: Path) -> None:
    pyz = write_pyz(payload, tmp_path / "a.pyz", bytecode=False, interpreter="")
    assert not [name for name in zipfile.ZipFile(pyz).namelist() if name.endswith((".bin", ".pyc"))]
    assert pyz.read_bytes()[:2] == b"PK"
    assert "digits_int8" in run(sys.executable, pyz, "--list")


def test_two_builds_are_the_same_bytes(payload: Payload, kernels: CutPackage, digits: Path, pyz: Path, tmp_path: Path) -> None:
    again = make_payload(kernels, "1.2", models=[Model.open(digits)], with_models=True)
    assert write_pyz(again, tmp_path / "again.pyz").read_bytes() == pyz.read_bytes()


def test_numpy_is_all_that_a_program_requires(payload: Payload) -> None:
    assert [module for module, _ in payload.requires] == ["numpy"]
    assert dict(payload.requires)["numpy"].startswith("numpy>=")


def test_models_of_one_name_are_told_apart_by_their_folders(kernels: CutPackage, digits: Path, tmp_path: Path) -> None:
    paths = [tmp_path / folder / "model.tflite" for folder in ("a", "b")]
    for number, path in enumerate(paths):
        path.parent.mkdir()
        path.write_bytes(digits.read_bytes() + bytes(16 * number))
    payload = make_payload(kernels, "1", models=list(map(Model.open, paths)), with_models=True, command=False)
    assert sorted(payload.models) == ["a-model", "b-model"]


def test_a_model_with_constants_in_other_files_is_refused(kernels: CutPackage, digits: Path) -> None:
    model = Model.open(digits)
    model.root.external_buffer_groups = [object()]
    with pytest.raises(BuildError, match="keeps constants in other files"):
        make_payload(kernels, "1", models=[model], with_models=True)


def test_what_reads_custom_options_is_there_when_kernels_read_some() -> None:
    kernels = cut_kernels(needs_of([], ops=["TransformTensorBilinear"]), "bilinear", PluginManager())
    payload = make_payload(kernels, "1")
    assert "oplet/schema/flexbuffers.py" in payload.core
    assert b"from oplet.schema.flexbuffers import flexbuffer_map" in payload.core["oplet/ops/node.py"]
    assert "oplet/vendored/flatbuffers/flexbuffers.py" not in payload.core  # the reader is oplet's own


def test_a_wheel_without_a_command_holds_nothing_of_the_tools(kernels: CutPackage) -> None:
    payload = make_payload(kernels, "1", command=False)
    packages = {path.partition("/")[0] for path in payload.core}
    assert packages == {"oplet", "oplet_build"}
    assert {path for path in payload.core if path.startswith("oplet_build/")} == {
        "oplet_build/__init__.py",
        "oplet_build/bundle.py",
    }
    assert {source.name for source in payload.sources} == {"oplet-core", "oplet-build", "oplet-builtin-ops"}


def test_kernels_may_use_packages_beside_the_core() -> None:
    kernels = {"own/__init__.py": b"def kernel():\n    from oplet_predictor.columns import Columns\n"}
    given = {"package": "own", "distribution": "own", "version": "1", "program": False, "custom_options": False}
    assert "oplet_predictor/columns.py" in cut_core(kernels, **given)
    kernels = {"own/__init__.py": b"from oplet_predictor.no_such import Name\n"}
    with pytest.raises(
        BuildError, match=r"own/__init__\.py imports oplet_predictor\.no_such\.Name, which oplet-predictor .* not have"
    ):
        cut_core(kernels, **given)


# Running it ------------------------------------------------------------------------------------------------------------


def test_a_program_runs_like_oplet_run(pyz: Path, digits: Path, oplet, tmp_path: Path) -> None:
    given = ["--input", sorted((DIGITS / "pictures").glob("*.png"))[0]]
    printed = run(sys.executable, pyz, *given, "--output", tmp_path / "a.npz", "--top", "2")
    assert oplet("run", digits, *given, "--output", tmp_path / "b.npz").code == 0
    ours, theirs = np.load(tmp_path / "a.npz"), np.load(tmp_path / "b.npz")
    assert ours.files == theirs.files
    for name in ours.files:
        np.testing.assert_array_equal(ours[name], theirs[name])
    assert "the highest" in printed
    assert f"written to {tmp_path / 'a.npz'}" in printed


def test_code_can_import_oplet_from_the_archive(pyz: Path) -> None:
    code = """
import oplet
from oplet import Interpreter, TensorType
from oplet.app import CONTENTS
content = CONTENTS.read(CONTENTS.models[0])
interpreter = Interpreter(model_content=content)
interpreter.allocate_tensors()
interpreter.invoke()
print(oplet.__file__, interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape)
print({report.distribution for report in interpreter.explain()})
"""
    printed = inside(pyz, code)
    for expected in (f"{pyz}{os.sep}oplet", "(1, 10)", "{'digits-app'}"):
        assert expected in printed


def test_starting_costs_no_plugin_framework_and_no_search_of_the_environment(pyz: Path) -> None:
    printed = inside(pyz, "import oplet.app\noplet.app.main([])\nprint('MODULES', *sys.modules)")
    loaded = set(printed.partition("MODULES ")[2].split())
    assert not loaded & {"pluggy", "importlib_metadata", "flatbuffers", "email", "zipfile", "ml_dtypes", "PIL", "json", "logging"}


def test_an_op_that_is_not_in_the_build_is_refused_by_name(pyz: Path, tmp_path: Path) -> None:
    printed = run(sys.executable, pyz, "--model", ATAN, code=1)
    assert "Encountered unresolved custom op: Atan" in printed
    assert "The build 'digits-app' holds no Atan" in printed
    assert "--op Atan" in printed


def test_what_was_left_out_of_the_core_says_so(pyz: Path) -> None:
    code = """
from oplet import Model
from oplet.app import CONTENTS
try:
    Model.from_bytes(CONTENTS.read(CONTENTS.models[0])).to_bytes()
except ImportError as error:
    print(error)
import oplet
print(hasattr(oplet, "ModelBuilder"), hasattr(oplet, "load_delegate"), "Interpreter" in dir(oplet))
"""
    printed = inside(pyz, code)
    assert "oplet.model.save.writing is not in the build 'digits-app'" in printed
    assert "False False True" in printed


def test_plugins_cannot_be_chosen_in_a_build(pyz: Path) -> None:
    code = """
from oplet import PluginManager
from oplet.errors import PluginError
for attempt in (lambda: PluginManager(load=["x"]), lambda: PluginManager().resolver(prefer="x"), PluginManager().registry):
    try:
        attempt()
    except PluginError as error:
        print("refused", error)
"""
    assert inside(pyz, code).count("refused") == 3


def test_a_choice_between_engines_is_refused_in_a_build(pyz: Path) -> None:
    code = """
from oplet import Interpreter
from oplet.app import CONTENTS
from oplet.errors import DelegateLoadError
try:
    Interpreter(model_content=CONTENTS.read(CONTENTS.models[0]), experimental_delegates="auto")
except DelegateLoadError as error:
    print(error)
"""
    assert inside(pyz, code) == (
        "experimental_delegates='auto' asks for a choice between engines, and the build 'digits-app' has no delegates; leave it out, or "
        "use the package oplet.\n"
    )


def test_without_numpy_one_line_says_what_to_install(pyz: Path) -> None:
    printed = run(sys.executable, "-I", "-S", pyz, code=1)
    assert printed.count("\n") == 1
    assert 'digits-app: numpy is needed; install it: pip install "numpy>=' in printed


@pytest.mark.parametrize("line", [b"", b"#!/usr/bin/env python3\n", b"#!" + b" " * 29 + b"\n"])
def test_a_model_that_is_not_where_the_program_says_is_read_by_its_name(line: bytes, tmp_path: Path) -> None:
    names = ["first_eighteen.tfl", "other_eighteen.tfl", "one_of_seventeen."]  # 30 bytes of a header and 18 of a name: 3 times 16
    archive = tmp_path / "program.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        for name in names:
            file.writestr(name, name[:16])
        first, other, odd = (info.header_offset for info in file.infolist())
    archive.write_bytes(line + archive.read_bytes())
    contents = AppContents("moved", root=str(archive), loader=zipimport.zipimporter(str(archive)))

    def read(name: str, header: int, size: int = 16) -> tuple[bytes, bool]:
        model = AppModel("m", name, size, header)
        return bytes(contents.read(model)), contents._mapped(model) is not None

    aligned = not len(line) % 16
    assert [read(names[0], first), read(names[1], other)] == [(name[:16].encode(), aligned) for name in names[:2]]
    assert read(names[0], other) == (names[0][:16].encode(), False), "another file is there"
    assert read(names[2], odd) == (names[2][:16].encode(), False), "it is not aligned"
    assert read(names[0], first, size=1 << 20) == (names[0][:16].encode(), False), "the archive is shorter"
    for nowhere in (-1, first + 1, 1 << 20):
        assert read(names[0], nowhere) == (names[0][:16].encode(), False)


def test_a_model_in_the_archive_is_mapped_and_aligned(pyz: Path, digits: Path, tmp_path: Path) -> None:
    report = """
import numpy as np
from oplet.app import CONTENTS
model = CONTENTS.models[0]
view = CONTENTS._mapped(model)
print(view is not None, np.frombuffer(CONTENTS.read(model), np.uint8).ctypes.data % 16, len(CONTENTS.read(model)))
"""
    size = digits.stat().st_size
    assert inside(pyz, report).split() == ["True", "0", str(size)]
    # An archive that somebody packed again is read instead.
    again = tmp_path / "again.pyz"
    with zipfile.ZipFile(pyz) as old, zipfile.ZipFile(again, "w", zipfile.ZIP_DEFLATED) as new:
        for name in sorted(old.namelist()):
            new.writestr(name, old.read(name))
    assert inside(again, report).split() == ["False", "0", str(size)]
    assert "outputs" in run(sys.executable, os.path.relpath(again))


def test_a_program_without_models_takes_a_file(kernels: CutPackage, digits: Path, tmp_path: Path) -> None:
    pyz = write_pyz(make_payload(kernels, "1"), tmp_path / "any.pyz")
    assert "outputs" in run(sys.executable, pyz, digits)
    assert "required: MODEL" in run(sys.executable, pyz, code=2)


# The command line ------------------------------------------------------------------------------------------------------


def test_models_are_listed(contents: AppContents, capsys) -> None:
    assert main(contents, ["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["digits", "atan"]


def test_one_of_several_models_is_chosen_by_name(contents: AppContents, tmp_path: Path, capsys) -> None:
    (tmp_path / "x.json").write_text(json.dumps([-8, 0.5, 2, 2.2, 201]))
    assert main(contents, ["--model", "atan", "-i", str(tmp_path / "x.json"), "-o", str(tmp_path / "y.json")]) == 0
    np.testing.assert_allclose(json.loads((tmp_path / "y.json").read_text())["y"][1], 0.98279375, atol=1e-6)
    assert "-1.4289" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "choose a model with --model NAME; there are digits, atan"),
        (["--model", "cats"], "there is no model 'cats'; there are digits, atan"),
        (["--model", "atan", "--top", "0"], "0 is not in the range x>=1"),
        (["--model", "atan", "--inp", "x"], "unrecognized arguments"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(contents: AppContents, arguments: list[str], complaint: str, capsys) -> None:
    with pytest.raises(SystemExit) as exit:
        main(contents, arguments)
    assert exit.value.code == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-i", "missing.npy"], "missing.npy: No such file or directory"),
        (["-i", "y=x.npy"], "The model has no input 'y'"),
        (["-o", "y.txt"], "'y.txt' must end in"),
        (["--labels", "none.txt"], "none.txt: No such file or directory"),
        (["--signature", "run"], "run"),
    ],
)
def test_an_error_is_one_line(contents: AppContents, arguments: list[str], complaint: str, capsys) -> None:
    small = AppContents("one", models=(contents.models[1],), root=contents.root)
    assert main(small, arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("one: ")
    assert err.count("\n") == 1
    assert complaint in err


def test_packages_that_are_missing_are_named_with_pip_s_command(contents: AppContents, capsys) -> None:
    needy = AppContents(
        "needy", models=contents.models[:1], requires=(("no_such_module", "no-such-package>=1"),), root=contents.root
    )
    assert main(needy, []) == 1
    assert 'needy: this program needs more packages; install them: pip install "no-such-package>=1"' in capsys.readouterr().err


def test_labels_name_the_scores(contents: AppContents, tmp_path: Path, capsys) -> None:
    (tmp_path / "labels.txt").write_text("\n".join(f"digit {n}" for n in range(10)))
    assert main(contents, ["--model", "digits", "--labels", str(tmp_path / "labels.txt"), "--top", "2"]) == 0
    assert capsys.readouterr().out.count("digit ") == 2


def test_the_version_is_told(contents: AppContents, capsys) -> None:
    with pytest.raises(SystemExit):
        main(contents, ["--version"])
    assert capsys.readouterr().out == "two 3.4\n"


def test_a_model_s_bytes_run_as_its_file_does(digits: Path) -> None:
    content = memoryview(digits.read_bytes())
    shapes = [
        Interpreter(**given).get_input_details()[0]["shape"].tolist()
        for given in ({"model_path": digits}, {"model_content": content})
    ]
    assert shapes[0] == shapes[1]


# The command that builds ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--with-model"], "goes with --with-core or --pyz"),
        (["--no-bytecode"], "goes with --pyz"),
        (["--with-core", "--python", "python3"], "goes with --pyz"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    oplet, digits: Path, tmp_path: Path, options: list[str], complaint: str
) -> None:
    built = oplet("build", digits, "--name", "digits_app", "-o", tmp_path / "dist", *options)
    assert built.code == 2
    assert complaint in built.err
    assert not (tmp_path / "dist").exists()


def test_a_model_can_only_be_taken_along_where_one_is_named(oplet, tmp_path: Path) -> None:
    built = oplet("build", "--op", "ABS", "--name", "abs_app", "-o", tmp_path / "abs.pyz", "--with-model")
    assert built.code == 2
    assert "no model to take along" in built.err


def test_the_report_counts_what_was_kept_and_left_out(
    oplet, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second command tells what the first one built.
    made: list[BuiltProgram] = []

    def build_once(*arguments: Any, **options: Any) -> BuiltProgram:
        if not made:
            made.append(build_program(*arguments, **options))
        return made[0]

    monkeypatch.setattr("oplet_build.building.build_program.build_program", build_once)
    command = ["build", digits, "--name", "digits_app", "-o", tmp_path / "digits.pyz", "--with-model", "--no-timing"]
    told = json.loads(oplet(*command, "--json").out)
    assert told["program"] == str(tmp_path / "digits.pyz")
    assert told["requires"][0].startswith("numpy>=")
    assert told["models"] == [{"name": "digits_int8", "bytes": digits.stat().st_size}]
    report = told["report"]
    assert report["kept"] == sorted({kernel["op"] for kernel in told["ops"]})
    assert not set(report["kept"]) & set(report["dropped"])
    assert {"ABS", "WHILE"} <= set(report["dropped"])
    for measure in ("kernels_modules", "kernels_bytes", "core_modules", "core_bytes"):
        assert 0 < report[measure]["after"] < report[measure]["before"]
    assert "import_seconds" not in report
    printed = oplet(*command).out
    assert "bytes of the core" in printed
    assert "left out: " in printed


# In environments of their own ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a fresh virtual environment that has this one's numpy and Pillow, and nothing else."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for name in ("numpy", "pillow"):
        found = distribution(name)
        for top in {Path(file).parts[0] for file in found.files or () if ".." not in Path(file).parts}:
            shutil.copytree(str(found.locate_file(top)), site / top)
    assert "ModuleNotFoundError" in run(python, "-c", "import oplet", code=1)
    return python


class Case(NamedTuple):
    """A recorded case."""

    model: Path
    inputs: dict[str, np.ndarray]
    outputs: list[list[np.ndarray]]  # of each output what the reference and the other kernels gave

    def check(self, results: Path) -> None:
        with np.load(results) as given:
            assert len(given.files) == len(self.outputs)
            for name, accepted in zip(given.files, self.outputs):
                if given[name].dtype.kind == "f":
                    np.testing.assert_allclose(given[name], accepted[0], rtol=1e-4, atol=1e-6)
                else:
                    assert any(np.array_equal(given[name], each) for each in accepted), name


def recorded(file: str, name: str, folder: Path) -> Case:
    if not (REAL / file).exists():
        pytest.skip(f"{REAL / file} is not here")
    with zipfile.ZipFile(REAL / file) as archive:
        model = folder / f"{name}.tflite"
        model.write_bytes(archive.read(f"{name}/model.tflite"))
        [step] = json.loads(archive.read(f"{name}/case.json"))["steps"]
        with np.load(io.BytesIO(archive.read(f"{name}/io.npz"))) as arrays:
            inputs = {each["name"]: arrays[each["key"]] for each in step["inputs"]}
            outputs = [[arrays[key] for key in each["keys"].values() if key in arrays] for each in step["outputs"]]
    return Case(model, inputs, outputs)


@pytest.mark.environment
def test_hello_world_runs_where_only_numpy_is_installed(python: Path, oplet, tmp_path: Path) -> None:
    case = recorded("tflm_models.zip", "tflm_hello_world_float", tmp_path)
    pyz = tmp_path / "hello.pyz"
    built = oplet("build", case.model, "--name", "hello_ops", "-o", pyz, "--with-model", "--json")
    assert built.code == 0, built.err
    report = json.loads(built.out)["report"]
    assert report["kept"] == ["FULLY_CONNECTED"]
    assert "CONV_2D" in report["dropped"]
    assert report["core_bytes"]["ratio"] < 0.5
    assert report["import_seconds"]["after"] > 0
    assert report["answer_seconds"]["after"] > 0
    np.savez(tmp_path / "x.npz", **case.inputs)
    run(python, pyz, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
    case.check(tmp_path / "y.npz")
    if os.name == "posix":
        assert os.access(pyz, os.X_OK)
    digits = run(python, pyz, "--model", DIGITS / "digits_float32.tflite", code=1)
    assert "Didn't find op for builtin opcode 'CONV_2D'" in digits
    assert "The build 'hello-ops' holds no CONV_2D" in digits


@pytest.mark.environment
def test_a_picture_model_answers_for_a_png_file(python: Path, oplet, tmp_path: Path) -> None:
    case = recorded("tflm_models.zip", "tflm_mobilenet_v2_quantized_1x3x224x224", tmp_path)
    built = oplet("build", case.model, "--name", "mobilenet", "-o", tmp_path, "--pyz", "--with-model", "--types", "--no-timing")
    assert built.code == 0, built.err
    [values] = case.inputs.values()
    pixels = (values[0].astype(np.int16) + 128).astype(np.uint8).transpose(1, 2, 0)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    run(python, tmp_path / "mobilenet.pyz", "--raw", "--input", tmp_path / "photo.png", "--output", tmp_path / "y.npz")
    case.check(tmp_path / "y.npz")


@pytest.mark.environment
def test_a_wheel_with_the_core_runs_models_alone(python: Path, oplet, tmp_path: Path) -> None:
    case = recorded("tflm_models.zip", "tflm_hello_world_int8", tmp_path)
    build = ["build", case.model, "--name", "hello_alone", "--with-core", "--with-model", "--no-timing"]
    for folder in ("one", "two"):
        assert oplet(*build, "-o", tmp_path / folder).code == 0
    [wheel], [again] = (sorted((tmp_path / folder).glob("*.whl")) for folder in ("one", "two"))
    assert wheel.read_bytes() == again.read_bytes()
    run(sys.executable, "-m", "twine", "check", "--strict", wheel)
    target = tmp_path / "installed"
    run(sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--target", target, wheel)
    np.savez(tmp_path / "x.npz", **case.inputs)
    code = f"""
import sys
sys.path.insert(0, {str(target)!r})
import numpy
from oplet import Interpreter
interpreter = Interpreter(model_path={str(case.model)!r})
[(index, value)] = [(d["index"], numpy.load({str(tmp_path / "x.npz")!r})[d["name"]]) for d in interpreter.get_input_details()]
interpreter.resize_tensor_input(index, value.shape)
interpreter.allocate_tensors()
interpreter.set_tensor(index, value)
interpreter.invoke()
numpy.savez({str(tmp_path / "y.npz")!r}, *(interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()))
from oplet.app import main
sys.exit(main(["--raw", "--input", {str(tmp_path / "x.npz")!r}, "--output", {str(tmp_path / "z.npz")!r}]))
"""
    run(python, "-c", code)
    case.check(tmp_path / "y.npz")
    case.check(tmp_path / "z.npz")
