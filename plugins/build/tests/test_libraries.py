"""Compiled libraries of packages: a wheel takes them along, with the tag of the platform that they are for; a program says why not."""

from __future__ import annotations

import json
import sysconfig
import zipfile
from pathlib import Path

import pytest

from oplet import PluginManager
from oplet_build.building.build_wheel import build_wheel
from oplet_build.building.distributions import find_package
from oplet_build.building.error import BuildError
from oplet_testing import one_op_model
from oplet_testing.distributions import fake_distribution
from oplet_testing.one_op import Spec

HERE = sysconfig.get_platform().replace("-", "_").replace(".", "_")
MANY = ["manylinux2014_x86_64", "manylinux_2_17_x86_64"]
#: What compiled operators are run by: a package with a library of its own, which no build takes apart.
RUNNER = """
from pathlib import Path
import numpy as np
from oplet import MutableOpResolver, Registration, hookimpl
OWN = Path(__file__).with_name("librunner.so")

@hookimpl
def open_op_library(path, operators):
    if not path.endswith(".factor"):
        return None
    resolver = MutableOpResolver()
    register_library(resolver, Path(path), ["Twice"])
    return resolver

def register_library(resolver, path, operators):
    factor = float(path.read_text())
    def prepare(context, node):
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)
    def bind(context, node):
        x, y = node.inputs[0].data, node.outputs[0].data
        return lambda: np.multiply(x, factor, out=y)
    for op in operators:
        resolver.add_custom(op, Registration(prepare=prepare, bind=bind, library=str(path)))
"""
OP = """
from pathlib import Path
from oplet import hookimpl
from runner import register_library
LIBRARY = Path(__file__).with_name("lib{library}.so")

@hookimpl
def register_ops(resolver):
    register_library(resolver, LIBRARY, {{"{op}": "f"}})
"""
#: A model of each op.
MODELS = {op: one_op_model(op, [Spec("float32", [2])], [Spec("float32", [2])]) for op in ("Twice", "Thrice")}


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Installs a made-up package with a library."""

    def install(name, source, library, content="", requires=(), tags=()):
        path = tmp_path / "sites" / name
        fake_distribution(path, name, "1.0", {name: name}, {f"{name}.__init__": source})
        (path / name / library).write_text(content)
        info = path / f"{name}-1.0.dist-info"
        lines = "".join(f"Requires-Dist: {text}\n" for text in requires)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nLicense: MIT\n{lines}")
        if tags:
            (info / "WHEEL").write_text("Wheel-Version: 1.0\n" + "".join(f"Tag: py3-none-{tag}\n" for tag in tags))
        monkeypatch.syspath_prepend(str(path))
        return path

    return install


@pytest.fixture
def models(tmp_path, add, request):
    """The files of the models whose ops the packages `twice` and `thrice` bring, each with the tags that the test asks for."""
    tags = getattr(request, "param", {})
    add("runner", RUNNER, "librunner.so")
    files = []
    for op, factor in (("Twice", "2"), ("Thrice", "3")):
        name = op.lower()
        add(name, OP.format(library=name, op=op), f"lib{name}.so", factor, ["oplet>=0.1", "runner>=1"], tags.get(op, ()))
        file = tmp_path / f"{name}.tflite"
        file.write_bytes(MODELS[op])
        files.append(file)
    return files


@pytest.fixture(autouse=True)
def _forget():
    """No module of a made-up package outlives its test."""
    yield
    import sys

    for name in [name for name in sys.modules if name.split(".")[0] in ("runner", "twice", "thrice", "built")]:
        del sys.modules[name]


def test_a_wheel_takes_a_package_s_library_along_and_requires_who_runs_it(oplet, models, tmp_path):
    ran = oplet("build", models[0], "--name", "built", "-o", tmp_path / "dist", "--json", "--no-timing")
    assert ran.code == 0, ran.err
    told = json.loads(ran.out)
    assert Path(told["wheel"]).name == f"built-1.0-py3-none-{HERE}.whl"
    assert told["requires"] == ["oplet-core>=0.1", "runner>=1"]
    assert told["libraries"] == ["built/_twice/libtwice.so"]
    with zipfile.ZipFile(told["wheel"]) as wheel:
        names = set(wheel.namelist())
        assert wheel.read("built/_twice/libtwice.so") == b"2"
        metadata = wheel.read("built-1.0.dist-info/WHEEL").decode()
    assert "Root-Is-Purelib: false" in metadata
    assert not [name for name in names if "thrice" in name or "runner" in name or "hatch_build" in name]


def test_a_wheel_with_a_library_runs_its_model_in_place_of_the_package(oplet, models, tmp_path, monkeypatch):
    assert oplet("build", models[0], "--name", "built", "-o", tmp_path / "dist", "--no-timing").code == 0
    [file] = (tmp_path / "dist").iterdir()
    with zipfile.ZipFile(file) as wheel:
        wheel.extractall(tmp_path / "unpacked")
    monkeypatch.syspath_prepend(str(tmp_path / "unpacked"))
    ran = oplet("doctor", models[0], "-p", "no:twice", "--json")
    assert ran.code == 0, ran.err
    assert [op["provider"] for op in json.loads(ran.out)] == ["built 1.0 (libtwice.so)"]
    answer = json.loads(oplet("run", models[0], "-p", "no:twice", "--json").out)
    assert answer["nodes"] == {"built 1.0 (libtwice.so)": 1}
    before = json.loads(oplet("run", models[0], "--json").out)
    assert answer["outputs"] == before["outputs"]


@pytest.mark.parametrize(
    ("models", "platform"),
    [
        ({}, HERE),
        ({"Twice": ["any"], "Thrice": ["any"]}, HERE),
        ({"Twice": MANY, "Thrice": MANY}, ".".join(MANY)),
        ({"Twice": MANY, "Thrice": ["linux_x86_64"]}, HERE),
        ({"Twice": MANY}, HERE),
    ],
    indirect=["models"],
)
def test_the_tag_is_what_the_packages_wheels_promised_or_else_this_machine(oplet, models, platform, tmp_path):
    ran = oplet("build", *models, "--name", "built", "-o", tmp_path / "dist", "--no-timing", "--json")
    assert ran.code == 0, ran.err
    assert Path(json.loads(ran.out)["wheel"]).name == f"built-1.0-py3-none-{platform}.whl"


def test_a_file_that_is_in_no_package_is_refused_with_what_to_do(models, tmp_path):
    (tmp_path / "two.factor").write_text("2")
    plugins = PluginManager()
    plugins.add_op_library(tmp_path / "two.factor")
    with pytest.raises(
        BuildError, match=r"Twice is served by the file two\.factor, which no installed package brings.*`oplet native new-op`"
    ):
        build_wheel([models[0]], "built", tmp_path / "dist", plugins=plugins.without(["twice"]))
    # With the package behind it, the build is cut from that.
    assert build_wheel([models[0]], "built", tmp_path / "dist", plugins=plugins).cut.libraries == {
        "built/_twice/libtwice.so": "twice"
    }


@pytest.mark.parametrize("how", [["--pyz"], ["--with-core"], ["--with-core", "--with-model"]])
def test_a_program_says_that_it_cannot_carry_a_library(oplet, models, tmp_path, how):
    ran = oplet("build", models[0], "--name", "built", "-o", tmp_path / "dist", "--no-timing", *how)
    assert ran.code == 1
    assert ran.err == (
        "oplet: Twice of twice runs in the compiled library libtwice.so, which a program cannot carry: what opens it needs the whole of "
        "oplet; build a wheel without --with-core.\n"
    )
    assert not (tmp_path / "dist").exists()


def test_a_lock_pins_a_package_s_library(oplet, models, tmp_path, add):
    lock = tmp_path / "oplet.lock.json"
    assert oplet("select", models[0], "--lock", lock).code == 0
    [op] = json.loads(lock.read_text())["ops"]
    assert (op["distribution"], op["library"]) == ("twice", "libtwice.so")
    assert oplet("select", models[0], "--check", lock).code == 0
    (tmp_path / "sites" / "twice" / "twice" / "libtwice.so").write_text("2.5")
    ran = oplet("select", models[0], "--check", lock)
    assert ran.code == 1
    assert "The library libtwice.so has the hash sha256:" in ran.out
    assert "The code of twice 1.0 has the hash sha256:" in ran.out


@pytest.mark.parametrize(
    ("name", "content", "native", "data"),
    [
        ("libplain.so", b"\x7fELF no module", set(), {"libplain.so"}),
        ("fast.so", b"\x7fELF\0PyInit_fast\0", {"held.fast"}, set()),
        ("fast.so", b"\x7fELF\0PyInit_other\0", set(), {"fast.so"}),
        ("fast.abi3.so", b"\x7fELF", {"held.fast"}, set()),
        ("libplain.so.2", b"\x7fELF", set(), {"libplain.so.2"}),
    ],
)
def test_what_python_imports_is_told_from_what_c_opens(tmp_path, monkeypatch, name, content, native, data):
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "__init__.py").touch()
    (tmp_path / "held" / name).write_bytes(content)
    monkeypatch.syspath_prepend(str(tmp_path))
    package = find_package("held")
    assert (package.native, set(package.data), set(package.libraries)) == (native, data, data)
