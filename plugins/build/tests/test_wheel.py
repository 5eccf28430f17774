"""`oplet build`: what is kept of packages, and that the wheel runs its models without the packages that it was cut from."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import REAL, ROOT
from tests.wheelhouse import needed
from tests.wheelhouse import wheel as wheel_of

from oplet import Interpreter, MutableOpResolver, PluginManager, TensorType
from oplet.errors import OpletError, OpNotFoundError
from oplet.ops.context import EnsureError
from oplet_build.building.build_wheel import build_wheel
from oplet_build.building.cutting.dependencies import DependencyClosure
from oplet_build.building.cutting.import_rewriting import rewrite_imports
from oplet_build.building.cutting.syntax import source_of
from oplet_build.building.distributions import Package, find_package
from oplet_build.building.error import BuildError
from oplet_build.selection.needs import Use
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

Write = Callable[[dict[str, str]], Package]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the package `invented`, which is found but never imported."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(files: dict[str, str]) -> Package:
        for name, text in ({"__init__.py": ""} | files).items():
            file = tmp_path / "invented" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        return find_package("invented")

    yield make
    assert "invented" not in sys.modules


def kept(package: Package, *roots: str, uses: list[Use] | None = None) -> dict[str, str]:
    """The source of each module that is kept for the roots, by its name below the package."""
    closure = DependencyClosure([package], uses=uses)
    for root in roots:
        closure.require(f"invented.{root}")
    return {name.removeprefix("invented").lstrip("."): closure.source(name) for name in closure.modules}


HELPERS = "def used(): return 3\n"


@pytest.mark.parametrize(
    ("root", "modules"),
    [
        ("from invented.helpers import used\ndef f(): return used()", {"helpers"}),
        ("from .helpers import used\ndef f(): return used()", {"helpers"}),
        ("import invented.helpers as h\ndef f(): return h.used()", {"helpers"}),
        ("import invented.helpers\ndef f(): return invented.helpers.used()", {"helpers"}),
        ("from invented import helpers\ndef f(): return helpers.used()", {"helpers"}),
        ("from . import helpers as h\ndef f(): return h.used()", {"helpers"}),
        ("def f():\n    from invented.helpers import used\n    return used()", {"helpers"}),
        ("def f():\n    from invented import helpers\n    return helpers.used()", {"helpers"}),
        ("from invented.again import used\ndef f(): return used()", {"helpers", "again"}),
    ],
)
def test_only_what_is_reached_is_kept(write: Write, root: str, modules: set[str]) -> None:
    package = write({"root.py": root, "helpers.py": HELPERS, "again.py": "from .helpers import used", "no.py": "UNUSED = 1"})
    assert set(kept(package, "root")) == {"", "root"} | modules


@pytest.mark.parametrize(
    "nasty",
    [
        "from invented.helpers import *\ndef f(): return used()",
        "from invented import helpers\ndef f(name): return getattr(helpers, name)",
        "from invented import helpers\ndef f(name): return vars(helpers)[name]",
        "from invented import helpers\ndef f(name): return helpers.__dict__[name]",
        "import importlib\ndef f(): return importlib.import_module('invented.helpers')",
        "from importlib import import_module\ndef f(): return import_module('.helpers', __package__)",
        "from importlib import import_module\ndef f(name): return import_module(f'{__package__}.{name}')",
        "def f(): return 'invented.helpers'",
        "def f(): return 'invented.helpers:used'",
    ],
)
def test_a_module_that_is_looked_up_is_kept(write: Write, nasty: str) -> None:
    assert "def used" in kept(write({"root.py": nasty, "helpers.py": HELPERS}), "root")["helpers"]


@pytest.mark.parametrize(
    ("start", "stays"),
    [
        ("TABLE = {}\nTABLE['x'] = 1", True),
        ("register()", True),
        ("from .helpers import used", True),
        ("import invented.helpers", True),
        ("for x in (1, 2): print(x)", True),
        ("if not NAME: raise ImportError", True),
        (
            "from oplet import hookimpl\nNAMES = ['A']\n@hookimpl\ndef register_ops(resolver):\n    from .helpers import used",
            False,
        ),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .helpers import used", False),
    ],
)
def test_of_a_package_s_own_module_only_what_has_an_effect_or_is_imported_stays(write: Write, start: str, stays: bool) -> None:
    files = {"__init__.py": start, "helpers.py": HELPERS}
    assert bool(kept(write({**files, "root.py": "x = 1"}), "root")[""]) is stays
    assert kept(write({**files, "root.py": "from invented import NAMES"}), "root")[""]


def test_conditional_imports_are_kept_with_both_branches(write: Write) -> None:
    text = "try:\n    from .fast import g\nexcept ImportError:\n    from .slow import g\ndef f(): return g()\n"
    found = kept(write({"root.py": text, "fast.py": "def g(): pass", "slow.py": "def g(): pass"}), "root")
    assert set(found) == {"", "root", "fast", "slow"}
    assert "except ImportError" in found["root"]


def test_comments_docstrings_and_code_for_type_checkers_go(write: Write) -> None:
    text = '''
        """About this."""
        from __future__ import annotations
        import typing
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from .helpers import Unused
        if typing.TYPE_CHECKING:
            from .helpers import Unused

        class Point:
            """A point."""
            x: Unused

        def f(x: Unused) -> Unused:
            """Say so."""
            return Point(x)  # because
    '''
    found = kept(write({"root.py": text, "helpers.py": "class Unused: pass"}), "root")
    assert set(found) == {"", "root"}
    assert not any(word in found["root"] for word in ("About", "A point", "Say so", "because"))
    assert "class Point:\n    x: Unused" in found["root"]
    text = text.replace("Say so", "{__doc__}")
    assert "About" in kept(write({"root.py": text}), "root")["root"], "what reads docstrings keeps them"


def test_data_files_are_kept_by_name_and_refused_otherwise(write: Write) -> None:
    text = """
        from importlib.resources import files
        def f(): return files("invented").joinpath("data", "table.csv").read_text()
    """
    more = "\ndef g(name): return files(__package__).joinpath(name).read_text()\n"
    package = write({"root.py": text, "more.py": textwrap.dedent(text) + more, "data/table.csv": "1", "data/other.csv": "2"})
    closure = DependencyClosure([package])
    closure.require("invented.root")
    assert closure.data == {("invented", "data/table.csv")}
    with pytest.raises(BuildError, match=r"invented.more reads files of its package in line 5"):
        closure.require("invented.more")


INT8 = Use((TensorType.INT8, TensorType.INT4, None), False)
FLOAT = Use((TensorType.FLOAT32, TensorType.FLOAT32), False)
SPARSE = Use((TensorType.INT4, TensorType.FLOAT32), True)


@pytest.mark.parametrize(
    ("variant", "uses", "stays"),
    [
        ('{"inputs": ((TensorType.INT8, TensorType.INT4),)}', None, True),
        ('{"inputs": ((TensorType.INT8, TensorType.INT4),)}', [INT8], True),
        ('{"inputs": ((TensorType.INT8, TensorType.INT4),)}', [FLOAT], False),
        ('{"inputs": ((TensorType.INT8,), (TensorType.INT8,))}', [INT8], False),
        ('{"inputs": ((TensorType.INT8,), (TensorType.INT4,))}', [FLOAT, INT8], True),
        ('{"inputs": ((TensorType.FLOAT32,), (TensorType.INT4,))}', [FLOAT, INT8], False),
        ('{"inputs": ((TensorType.INT8,), (TensorType.INT4,), (TensorType.INT8,))}', [INT8], False),
        ('{"sparse": True}', [INT8, FLOAT], False),
        ('{"sparse": True}', [INT8, SPARSE], True),
        ('{"sparse": True, "inputs": ((TensorType.INT4,),)}', [SPARSE], True),
        ('{"sparse": True, "inputs": ((TensorType.INT8,),)}', [SPARSE, INT8], False),
    ],
)
def test_variants_that_no_node_uses_go(write: Write, variant: str, uses: list[Use] | None, stays: bool) -> None:
    text = f"""
        from oplet import TensorType
        VARIANTS = {{"invented.small": {variant}}}
        def f(x):
            if x:
                from invented.small import g
                return g()
            return 3
    """
    found = kept(write({"root.py": text, "small.py": "def g(): return 4"}), "root", uses=uses)
    assert ("small" in found) is stays
    if not stays:
        scope: dict[str, Callable[[bool], int]] = {}
        exec(found["root"], scope)
        assert scope["f"](False) == 3
        with pytest.raises(EnsureError, match="build it again with this model"):
            scope["f"](True)


@pytest.mark.parametrize("variant", ["{}", "{'input': ()}", "{'inputs': ()}", "{'inputs': (INT8,)}", "{'inputs': ((*TYPES,),)}"])
def test_variants_that_cannot_be_read_are_refused(write: Write, variant: str) -> None:
    package = write({"root.py": f"VARIANTS = {{'invented.small': {variant}}}\ndef f(): pass"})
    with pytest.raises(BuildError, match=r"VARIANTS of invented\.root must be written out"):
        kept(package, "root")


def test_a_kernel_that_others_use_is_noticed(write: Write) -> None:
    package = write({"a.py": "from .b import g\ndef f(): return g()", "b.py": "def g(): return h()\ndef h(): pass"})
    for root, shared in (("a", {"invented.b"}), ("b", set())):
        closure = DependencyClosure([package])
        closure.require(f"invented.{root}")
        assert closure.shared == shared


def float_and_int8(tmp_path: Path) -> tuple[Path, Path]:
    """Two models of one fully connected layer."""
    integer = tmp_path / "int8.tflite"
    specs = [Spec("int8", [1, 2], 0.5, 0), Spec("int8", [3, 2], 0.5, 0)]
    integer.write_bytes(one_op_model("FULLY_CONNECTED", specs, [Spec("int8", [1, 3], 0.5, 0)]))
    return fully_connected(tmp_path), integer


def test_a_variant_that_was_left_out_is_refused_with_the_build_s_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, integer = float_and_int8(tmp_path)
    for number, models in enumerate(([small], [small, integer])):
        name = f"variants_{number}"
        with zipfile.ZipFile(build_wheel(models, name, tmp_path / "dist").path) as archive:
            archive.extractall(tmp_path / name)
        monkeypatch.syspath_prepend(str(tmp_path / name))
        resolver = MutableOpResolver()
        resolver.add_builtin("FULLY_CONNECTED", f"{name}.ops.fully_connected:REGISTRATION", 1, 12)
        Interpreter(str(small), op_resolver=resolver, plugins=[]).allocate_tensors()
        interpreter = Interpreter(str(integer), op_resolver=resolver, plugins=[])
        if number:
            interpreter.allocate_tensors()
        else:
            with pytest.raises(OpletError, match="variants_0 has only the variants of this op"):
                interpreter.allocate_tensors()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import invented.a", "import app._invented.a; from app import _invented as invented"),
        ("import os, invented", "import os; from app import _invented as invented"),
        ("import invented.a as b", "import app._invented.a as b"),
        ("from invented.a import b as c, d", "from app._invented.a import b as c, d"),
        ("from .a import b", "from .a import b"),
        ("from inventedness import b", "from inventedness import b"),
        ("x = 'invented.a:NAME'  # why", "x = 'app._invented.a:NAME'  # why"),
        ("x = 'é', 'invented.a'", "x = 'é', 'app._invented.a'"),
        ("x = 'invented', 'invented.b', 'an invented.a'", "x = 'invented', 'invented.b', 'an invented.a'"),
        ("files('invented')", "files('app._invented')"),
        ("x = f'invented.{y}:Z'", "x = f'app._invented.{y}:Z'"),
        ("x = 'invented.' + y", "x = 'app._invented.' + y"),
    ],
)
def test_imports_and_texts_follow_the_package(write: Write, before: str, after: str) -> None:
    package = write({"a.py": ""})
    assert rewrite_imports(before, {"invented": package}, {"invented": "app._invented"}) == after
    alone = after.replace("from app import _invented as", "import app as").replace("app._invented", "app")
    assert rewrite_imports(before, {"invented": package}, {"invented": "app"}) == alone


def fully_connected(tmp_path: Path, name: str = "model.tflite") -> Path:
    path = tmp_path / name
    specs = [Spec("float32", [1, 2]), Spec("float32", [3, 2])]
    path.write_bytes(one_op_model("FULLY_CONNECTED", specs, [Spec("float32", [1, 3])]))
    return path


def test_the_same_build_gives_the_same_bytes(tmp_path: Path) -> None:
    model = fully_connected(tmp_path)
    first, second = (build_wheel([model], "my_app_ops", tmp_path / folder).path for folder in "ab")
    assert first.name == "my_app_ops-1.0-py3-none-any.whl"
    assert first.read_bytes() == second.read_bytes()


def test_the_wheel_says_where_it_comes_from(tmp_path: Path) -> None:
    built = build_wheel([fully_connected(tmp_path)], "my_app_ops", tmp_path, ops=["Atan"], version="2.1")
    archive = zipfile.ZipFile(built.path)
    metadata = archive.read("my_app_ops-2.1.dist-info/METADATA").decode()
    for line in (
        "Name: my-app-ops",
        "License-Expression: Apache-2.0",
        "Requires-Dist: oplet-core<0.2,>=0.1",
        "| Atan | 1 | oplet-atan-op |",
    ):
        assert line in metadata
    assert "oplet-builtin-ops" not in "".join(line for line in metadata.splitlines() if line.startswith("Requires-Dist"))
    assert "my_app_ops = my_app_ops" in archive.read("my_app_ops-2.1.dist-info/entry_points.txt").decode()
    sources = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".py")]
    assert not any("oplet_builtin_ops" in s.replace("_oplet_builtin_ops", "") for s in sources)
    assert 'add_builtin("FULLY_CONNECTED", f"{__name__}._oplet_builtin_ops.ops.fully_connected:REGISTRATION"' in sources[0]


def test_what_cannot_be_built_is_refused(tmp_path: Path) -> None:
    model = fully_connected(tmp_path)
    for name in ("my-app", "class", "json", "oplet", "oplet_builtin_ops"):
        with pytest.raises(BuildError, match=f"'{name}' cannot be the package's name"):
            build_wheel([model], name, tmp_path)
    with pytest.raises(BuildError, match="'one' is not a version"):
        build_wheel([model], "my_app_ops", tmp_path, version="one")
    with pytest.raises(OpNotFoundError, match=r"Nothing installed serves FULLY_CONNECTED version 1.*oplet-builtin-ops"):
        build_wheel([model], "my_app_ops", tmp_path, plugins=PluginManager(load=["oplet-atan-op"]))


def test_a_missing_hatchling_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hatchling.builders.wheel", None)
    with pytest.raises(BuildError, match=r"pip install oplet-build"):
        build_wheel([fully_connected(tmp_path)], "my_app_ops", tmp_path)


def test_the_command(tmp_path: Path, oplet: Callable[..., object]) -> None:
    ran = oplet("build", fully_connected(tmp_path), "--name", "my_app_ops", "-o", tmp_path / "dist", "--json")
    told = json.loads(ran.out)  # type: ignore[attr-defined]
    assert Path(told["wheel"]).stat().st_size == told["bytes"]
    assert [(op["op"], op["from"]) for op in told["ops"]] == [("FULLY_CONNECTED", "oplet-builtin-ops")]


@pytest.mark.skipif(not REAL.exists(), reason="the recorded cases lie outside the project and are not here")
def test_kernels_of_a_small_model_are_small(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    [whole] = WheelBuilder(str(ROOT / "plugins" / "builtin_ops")).build(directory=str(tmp_path), versions=["standard"])
    for case in ("tflm_hello_world_float", "tflm_hello_world_int8"):
        with zipfile.ZipFile(REAL / "tflm_models.zip") as archive:
            model = Path(archive.extract(f"{case}/model.tflite", tmp_path))
        built = build_wheel([model], "my_app_ops", tmp_path / case)
        with zipfile.ZipFile(built.path) as archive:
            licences = sum(i.compress_size for i in archive.infolist() if "/licenses/" in i.filename)
        assert (built.path.stat().st_size - licences) / Path(whole).stat().st_size < 0.065


# What follows makes environments for real.

#: Group and case of one model of each family; the last has a custom operator of a plugin.
CASES = (
    ("tflm_models", "tflm_hello_world_int8"),
    ("mediapipe", "mp_face_detection_short_range"),
    ("tflm_models", "tflm_mobilenet_v2_quantized_1x3x224x224"),
    ("litert_testdata", "while_op_with_forwarding_input"),
    ("mediapipe", "mp_selfie_segmentation"),
)

#: Feeds a recorded case and writes what comes out.
RUN = """
import json, sys
from pathlib import Path
import numpy as np
from oplet import Interpreter

case = Path(sys.argv[1])
interpreter = Interpreter(str(case / "model.tflite"))
recorded = np.load(case / "io.npz")
outputs = {}
for step in json.loads((case / "case.json").read_text())["steps"]:
    values = {i["index"]: recorded[i["key"]].astype(object) if i["string"] else recorded[i["key"]] for i in step["inputs"]}
    for item in step["inputs"]:
        if item["resize"]:
            interpreter.resize_tensor_input(item["index"], values[item["index"]].shape)
    interpreter.allocate_tensors()
    for index, value in values.items():
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    for item in step["outputs"]:
        value = interpreter.get_tensor(item["index"])
        outputs[next(iter(item["keys"].values())).rpartition("_")[0]] = value.astype(bytes) if item["string"] else value
np.savez(sys.argv[2], **outputs)
print(json.dumps([m for m in sys.modules if m.startswith("oplet_")]))
"""


def isolated() -> dict[str, str]:
    """The environment of somebody else: nothing of this one's is seen."""
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    kept_variables = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("OPLET_")}
    return kept_variables | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new virtual environment that has the core, and nothing else of oplet."""
    folder = tmp_path_factory.mktemp("user") / "environment"
    pip = [sys.executable, "-m", "pip"]
    run_child([sys.executable, "-m", "venv", "--without-pip", str(folder)], env=isolated())
    python = folder / "bin" / "python"
    run_child([*pip, "--python", str(python), "install", wheel_of("core")], env=isolated())
    return python


def install(python: Path, wheel: Path) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "--force-reinstall", "--no-deps", str(wheel)]
    run_child(command, env=isolated())


def run(python: Path | str, model: Path, output: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-c", RUN, str(model), str(output)]
    return run_child(command, code=None, env=environment, cwd=output.parent)


@pytest.mark.environment
@pytest.mark.skipif(not REAL.exists(), reason="the recorded cases lie outside the project and are not here")
@pytest.mark.parametrize("types", [False, True], ids=["all-types", "types"])
@pytest.mark.parametrize(("group", "case"), CASES, ids=[case for _, case in CASES])
def test_core_and_wheel_alone_run_the_model(user: Path, tmp_path: Path, group: str, case: str, types: bool) -> None:
    import numpy as np

    with zipfile.ZipFile(REAL / f"{group}.zip") as archive:
        for name in ("model.tflite", "io.npz", "case.json"):
            archive.extract(f"{case}/{name}", tmp_path)
    recorded = tmp_path / case
    built = build_wheel([recorded / "model.tflite"], "my_app_ops", tmp_path / "dist", types=types)
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", str(built.path)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout
    install(user, built.path)

    numpy_kernels = {**os.environ, "OPLET_PREFER": "oplet-builtin-ops,oplet-mediapipe-ops"}  # which the wheel has
    here = run(sys.executable, recorded, tmp_path / "here.npz", numpy_kernels)
    there = run(user, recorded, tmp_path / "there.npz", isolated())
    assert here.returncode == 0, here.stderr
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout) == []
    wanted, found = np.load(tmp_path / "here.npz"), np.load(tmp_path / "there.npz")
    assert wanted.files
    assert wanted.files == found.files
    recordings = np.load(recorded / "io.npz")
    for name in wanted.files:
        np.testing.assert_array_equal(wanted[name], found[name])
        litert = [recordings[key] for key in recordings.files if key.rpartition("_")[0] == name]
        close = [
            np.allclose(found[name], each, 1e-3, 1e-3) if each.dtype.kind == "f" else (found[name] == each).all()
            for each in litert
        ]
        assert any(close)

    other = tmp_path / "other" / "model.tflite"
    other.parent.mkdir()
    other.write_bytes(one_op_model("CEIL", [Spec("float32", [2])], [Spec("float32", [2])]))
    opening = "import sys; from oplet import Interpreter; Interpreter(sys.argv[1]).allocate_tensors()"
    refused = subprocess.run([str(user), "-c", opening, str(other)], capture_output=True, text=True, env=isolated())
    assert refused.returncode != 0
    assert "CEIL" in refused.stderr
    assert "builtin_ops" in refused.stderr


def cut_out(name: str, version: str, tmp_path: Path) -> Path:
    """A third party's plugin whose registration has no name: it is made inside the hook."""
    folder = tmp_path / name
    package = folder / f"src/{name}"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n[project]\nname = "{name}"\n'
        f'version = "{version}"\nlicense = "MIT"\ndependencies = ["oplet"]\nlicense-files = ["LICENSE"]\n'
        f'[project.entry-points.oplet]\n{name} = "{name}:PLUGIN"\n[tool.hatch.build.targets.wheel]\npackages = ["src/{name}"]\n'
    )
    (folder / "LICENSE").write_text("Do what you like.\n")
    (package / "table.txt").write_text("2")
    (package / "scale.py").write_text(
        f"from importlib.resources import files\n\ndef factor():\n    return float((files('{name}') / 'table.txt').read_text())\n"
    )
    (package / "unused.py").write_text("NOTHING = 0\n")
    (package / "__init__.py").write_text(
        "import numpy as np\nfrom oplet import Registration, hookimpl\nfrom .scale import factor\n\n"
        "class Plugin:\n    @hookimpl\n    def register_ops(self, resolver):\n"
        "        def prepare(context, node):\n            context.resize_tensor(node.outputs[0], node.inputs[0].shape)\n"
        "        def invoke(context, node):\n            np.multiply(node.inputs[0].data, factor(), out=node.outputs[0].data)\n"
        "        resolver.add_custom('Times', Registration(prepare=prepare, invoke=invoke))\n\nPLUGIN = Plugin()\n"
    )
    return folder


TWICE = """
import sys
import numpy as np
from oplet import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.array([3, 4], np.float32))
interpreter.invoke()
print(*interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
"""


@pytest.mark.environment
def test_a_third_party_s_plugin_is_cut_with_its_licence_and_data(user: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--python", str(user), "install"]
    run_child([*pip, *needed("build", "metapackage"), cut_out("times_op", "0.3", tmp_path)], env=isolated())
    model = tmp_path / "times.tflite"
    model.write_bytes(one_op_model("Times", [Spec("float32", [2])], [Spec("float32", [2])]))
    command = [str(user.parent / "oplet"), "build", str(model), "--name", "my_times", "-o", str(tmp_path / "dist")]
    run_child(command, env=isolated(), cwd=tmp_path)
    [wheel] = (tmp_path / "dist").glob("*.whl")
    inside = zipfile.ZipFile(wheel)
    assert "my_times-1.0.dist-info/licenses/times_op/LICENSE" in inside.namelist()
    metadata = inside.read("my_times-1.0.dist-info/METADATA").decode()
    assert "License-Expression: MIT" in metadata
    # It asks for `oplet`, the core with all built-in operators; what was cut out of it does with the core.
    assert re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE) == ["oplet-core"]
    assert "my_times/_times_op/unused.py" not in inside.namelist()
    uninstall = [sys.executable, "-m", "pip", "--python", str(user), "uninstall", "--yes", "times_op"]
    run_child(uninstall, env=isolated())
    install(user, wheel)
    there = run_child([str(user), "-c", TWICE, str(model)], env=isolated())
    assert there.stdout.split() == ["6.0", "8.0"], there.stderr


@pytest.mark.parametrize(
    "source",
    [
        """f"{', '.join(names)} and {names['a']!r:>{width}}, {{braces}}\\n" """,
        """f"{f'{names["a"]}' if names else ''}%s {width:04d}" """.replace('"a"', "chr(97)"),
        """f"{'' if width else b'x'!r}'" """,
        """f"'{width}'" """,
    ],
)
def test_a_build_s_source_is_read_by_the_oldest_python_whichever_made_it(source: str) -> None:
    """From Python 3.12 on `ast.unparse` has an f-string's quotes in its fields too, which older ones do not read."""
    given = {"names": {"a": "1"}, "width": 7}
    text = source_of(ast.parse(source.strip()))
    assert eval(text, dict(given)) == eval(source.strip(), dict(given))
    fields = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.FormattedValue)]
    assert not any(
        isinstance(each, ast.Constant) and isinstance(each.value, (str, bytes))
        for field in fields
        for each in ast.walk(field.value)
    )
