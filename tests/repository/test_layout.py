"""The shape of the house: floors and rooms import downwards only, none is crowded, and nothing is imported that a model does not need."""

from __future__ import annotations

import ast
import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.import_graph import import_graph, imports, knots, modules
from scripts.syntax import nodes, parsed
from tests.children import run_child
from tests.places import ROOT

from oplet_builtin_ops import FAMILIES, kit
from oplet_compiled_ops import FAMILIES as COMPILED_FAMILIES
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

CORE = ROOT / "core" / "src" / "oplet"
#: Ground floor first; a module imports from its own floor and those before it. "oplet" is `oplet/__init__.py`, which names what is below
#: it; who stands above may import from it.
TOWER = (
    "texts",
    "records",
    "collector",
    "errors",
    "installed",
    "schema",
    "ops",
    "kernels",
    "versions",
    "model",
    "delegates",
    "plugins",
    "companions",
    "runtime",
    "access",
    "builder",
    "interpreter",
    "oplet",
    "toolkit",
    "__main__",
)
#: The rooms of the runtime, the lowest first.
ROOMS = ("memory", "describe", "execution", "delegation")
#: Lines, and entries of a folder: more than that nobody overlooks.
LONGEST, WIDEST = 400, 12
#: Rooms of one kind of thing under its own name: a stranger looks for the name, however many there are.
CATALOGUES = {"oplet_tools/cli/commands", "oplet_flex_ops/ops", "oplet_compiled_ops/ops", "oplet_text_ops/ops"}
#: What is long for being a list: the declarations of the schema.
LISTS = {"schema/options.py"}


def floor(module: str) -> str:
    return (module.split(".") + ["oplet"])[1]


def arrows_up(core: Path) -> list[str]:
    graph = import_graph(core)
    return [
        f"{name} imports {other}, which is a floor above"
        for name, others in sorted(graph.items())
        for other in sorted(others)
        if TOWER.index(floor(name)) < TOWER.index(floor(other))
    ]


def circles(core: Path) -> list[str]:
    graph = import_graph(core)
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            found.append(" -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for other in sorted(graph[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())
    return found


def test_the_tower_has_every_floor_of_the_core() -> None:
    there = {path.stem for path in CORE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert there - {"__init__"} == set(TOWER) - {"oplet"}


def test_no_arrow_in_the_core_runs_up() -> None:
    assert not arrows_up(CORE)


def test_there_are_no_import_circles() -> None:
    assert not circles(CORE)


#: Modules of packages that still import one another in circles, by how many: to become fewer.
KNOTS = {"oplet_native_ops": [4]}


@pytest.mark.parametrize("package", sorted((ROOT / "plugins").glob("*/src/oplet_*")), ids=lambda package: package.name)
def test_no_package_has_import_circles_but_those_that_are_known(package: Path) -> None:
    found = knots(package)
    assert sorted(map(len, found)) == sorted(KNOTS.get(package.name, [])), found


@pytest.mark.parametrize(
    "statement",
    [
        "from oplet.runtime.executor import run",
        "import oplet.runtime.executor",
        "from oplet.runtime import executor",
        "def late() -> None:\n    from oplet.runtime.executor import run",
        "if TYPE_CHECKING:\n    from oplet.runtime.executor import run",
    ],
)
def test_arrows_and_circles_are_seen_wherever_the_import_stands(tmp_path: Path, statement: str) -> None:
    core = tmp_path / "oplet"
    for name, text in {
        "__init__": "",
        "ops/__init__": "",
        "ops/node": statement,
        "runtime/__init__": "",
        "runtime/executor": "from oplet.ops.node import Node",
    }.items():
        path = core / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert arrows_up(core) == ["oplet.ops.node imports oplet.runtime.executor, which is a floor above"]
    assert circles(core) == ["oplet.ops.node -> oplet.runtime.executor -> oplet.ops.node"]


def test_a_room_of_the_runtime_knows_only_those_below_it() -> None:
    up = []
    for name, others in import_graph(CORE).items():
        for other in others:
            rooms = [module.split(".")[2] for module in (name, other) if floor(module) == "runtime" and module.count(".") > 2]
            if len(rooms) == 2 and ROOMS.index(rooms[0]) < ROOMS.index(rooms[1]):
                up.append(f"{name} imports {other}")
    assert not up


def test_the_core_never_imports_a_plugin() -> None:
    for path in CORE.rglob("*.py"):
        assert not [module for module in imports(path) if module.startswith("oplet_")], path


#: The core, and the packages whose rooms are held to the same measure.
HOUSES = (
    CORE,
    *(
        ROOT / "plugins" / name / "src" / f"oplet_{name}"
        for name in (
            "build",
            "compiled_model",
            "flex_delegate",
            "flex_ops",
            "lm",
            "native_ops",
            "compiled_ops",
            "predictor",
            "serve",
            "testing",
            "text_ops",
            "tools",
        )
    ),
)


@pytest.mark.parametrize(
    "room", [room.parent.relative_to(house.parent).as_posix() for house in HOUSES for room in house.rglob("__init__.py")]
)
def test_a_room_has_at_most_a_dozen_entries_and_says_what_lives_there(room: str) -> None:
    folder = next(house.parent / room for house in HOUSES if house.name == room.split("/")[0])
    entries = {path.stem for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__"}
    told = ast.get_docstring(parsed(folder / "__init__.py")) or ""
    assert told.count(".") >= 2, f"{room} says nothing of itself"
    if folder == CORE:
        entries = {entry for entry in entries if (folder / entry).is_dir()}  # its modules are the faces of what is below them
    if room not in CATALOGUES:
        assert len(entries) <= WIDEST, f"{room} has {sorted(entries)}"


#: What was the core once, and is held to its measure.
CUT = tuple(ROOT / "plugins" / name / "src" / f"oplet_{name}" for name in ("build", "predictor", "testing", "tools"))


@pytest.mark.parametrize("house", [CORE, *CUT], ids=lambda house: house.name)
def test_no_module_of_the_core_or_of_what_was_cut_from_it_is_longer_than_can_be_overlooked(house: Path) -> None:
    lengths = {str(path.relative_to(house)): len(path.read_text().splitlines()) for path in house.rglob("*.py")}
    assert len(lengths) > 10
    assert {path for path, length in lengths.items() if length > LONGEST} <= (LISTS if house == CORE else set())


#: The packages that are made of what the core offers to authors of tools.
TOOLS = ("predictor", "compiled_model", "lm", "serve", "testing", "tools", "build")
#: The public modules of the core, with the modules in them (and `records`, for the packages here), and those that only `TOOLS` may import.
PUBLIC, FOR_TOOLS = ("errors", "kernels", "records", "schema"), ("interpreter", "texts", "toolkit", "versions")


@pytest.mark.parametrize(
    "package",
    [
        *TOOLS,
        "builtin_ops",
        "atan_op",
        "beam_handler",
        "ray_batch",
        "coral_ops",
        "example_delegate",
        "flex_delegate",
        "flex_ops",
        "larq_ops",
        "litert_delegate",
        "litert_shim",
        "mediapipe_ops",
        "model_explorer",
        "native_ops",
        "compiled_ops",
        "openvino_delegate",
        "signal_ops",
        "text_ops",
        "xla_delegate",
    ],
)
def test_a_plugin_imports_the_core_s_public_names_only(package: str) -> None:
    public = {"oplet", *PUBLIC, *(FOR_TOOLS if package in TOOLS else ())}
    paths = list((ROOT / "plugins" / package / "src").rglob("*.py"))
    assert paths
    for path in paths:
        for module in imports(path):
            if module.partition(".")[0] == "oplet":
                assert floor(module) in public, f"{path} imports {module}"


def test_only_compiled_kernels_wrap_the_builtin_ones() -> None:
    """compiled_ops falls back to registrations of builtin_ops, on which it depends; every other package stands alone."""
    for path in (ROOT / "plugins").glob("*/src/**/*.py"):
        package = path.relative_to(ROOT / "plugins").parts[0]
        if package not in ("builtin_ops", "compiled_ops"):
            assert not [m for m in imports(path) if m.startswith("oplet_builtin_ops")], path


#: The packages by which compiled kernels take the place of numpy's.
COMPILED, NUMPY = (ROOT / "plugins" / name / "src" / f"oplet_{name}" for name in ("compiled_ops", "builtin_ops"))


ELSEWHERE = ("oplet_larq_ops", "oplet_mediapipe_ops")


def test_compiled_kernels_hold_on_to_what_the_builtin_ones_make_public() -> None:
    """Registrations of operators, the table of versions, and the kit."""
    rows = [re.split(" {2,}", line.strip()) for line in (kit.__doc__ or "").splitlines() if line.startswith("    ")]
    listed = {f"oplet_builtin_ops.{module}": names.split(", ") for module, names, _ in rows}
    families = {f"oplet_builtin_ops.{module}": ops.split() for module, ops in FAMILIES.items()}
    for path in COMPILED.rglob("*.py"):
        for node in nodes(parsed(path), ast.Import, ast.ImportFrom):
            taken = [alias.name for alias in node.names]
            module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
            assert not [n for n in taken if n.startswith(("oplet_builtin_ops.", *ELSEWHERE))], f"{path}:{node.lineno}"
            if module.partition(".")[0] in ELSEWHERE:  # only where that package is installed
                room = f"{module.partition('.')[0]}.ops"
                assert (module.rpartition(".")[0], taken) == (room, ["REGISTRATION"]), f"{path}:{node.lineno}"
            if module.partition(".")[0] == "oplet_builtin_ops":
                if {f"{module}.{name}" for name in taken} <= {*families} or {*taken} <= {*families.get(module, ())}:
                    continue
                public = {"oplet_builtin_ops": ["VERSIONS"], "oplet_builtin_ops.ops": ["REGISTRATION"]}
                public |= {f"oplet_builtin_ops.ops.{kind}": ["REGISTRATION"] for kind in ("custom", "composites")}
                room = module.rpartition(".")[0]
                assert {*taken} <= {*listed.get(module, ())} or taken == public.get(room or module), f"{path}:{node.lineno}"


def test_a_compiled_kernel_loads_no_numpy_kernel_but_the_one_that_it_stands_for() -> None:
    known = modules(COMPILED) | modules(NUMPY)
    graph = {name: {m for m in imports(path, known) if m in known} for name, path in known.items()}

    def reach(start: str) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += graph[name]
        return {name for name in found if name.startswith("oplet_builtin_ops.")}

    for path in (COMPILED / "ops").rglob("[!_]*.py"):
        operator = ".".join(path.relative_to(COMPILED).with_suffix("").parts)
        stands_for = (COMPILED_FAMILIES.get(path.stem) or path.stem.upper()).split()[0]
        own = f"oplet_builtin_ops.{next((m for m, ops in FAMILIES.items() if stands_for in ops.split()), operator)}"
        if own not in graph:  # it stands for one of another package, whose models have convolutions
            own = "oplet_builtin_ops.layers.convolutions_2d"
        assert not reach(f"oplet_compiled_ops.{operator}") - reach(own), path.stem


def rows_of_versions(package: Path) -> Iterator[tuple[str, str]]:
    """The operators that a package writes down with a range of versions."""
    for path in package.rglob("*.py"):
        for node in nodes(parsed(path), ast.Dict):
            for key, value in zip(node.keys, node.values):
                if not isinstance(key, ast.Constant) or not isinstance(value, ast.Tuple):
                    continue
                name, versions = ast.unparse(key), ast.unparse(value)
                if re.fullmatch(r"'[A-Z][A-Z0-9_]+'", name) and re.fullmatch(r"\(\d+, \d+\)", versions):
                    yield name, versions


def test_no_two_packages_write_down_the_versions_of_an_operator() -> None:
    rows = {package.name: set(rows_of_versions(package)) for package in (ROOT / "plugins").iterdir() if package.is_dir()}
    assert len(rows["builtin_ops"]) > 100
    for a, b in itertools.combinations(rows, 2):
        assert not rows[a] & rows[b], (a, b)


def modules_after(code: str) -> set[str]:
    done = run_child([sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"])
    return set(done.stdout.split())


def test_importing_oplet_imports_no_plugin_and_no_metadata_reader() -> None:
    loaded = modules_after("from oplet import Interpreter") - modules_after(
        ""
    )  # a file of oplet-litert-shim is read by each start of Python
    assert not {m for m in loaded if m.startswith("oplet_")}
    assert not loaded & {"importlib_metadata", "pluggy", "ml_dtypes", "typer", "rich", "PIL"}


def test_a_model_imports_only_the_kernels_that_it_needs() -> None:
    code = """
import numpy as np
from oplet import Interpreter
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec
Interpreter(model_content=one_op_model("TRANSPOSE", [Spec("float32", [2, 3]), np.array([1, 0], "int32")], [Spec("float32", [3, 2])]))
"""
    loaded = {m for m in modules_after(code) if m.startswith("oplet_builtin_ops.ops.")}
    assert loaded == {"oplet_builtin_ops.ops.transpose"}


ADDING = one_op_model("ADD", [Spec("float32", [2, 64])] * 2, [Spec("float32", [2, 64])])
DIGITS = (ROOT / "examples" / "digits" / "digits_int8.tflite").read_bytes()


@pytest.mark.parametrize(
    ("model", "op", "most"), [(ADDING, "sums", 100), (DIGITS, "convolutions_2d", 117)], ids=["add", "digits"]
)
def test_the_first_answer_of_a_process_waits_for_no_slow_module(model: bytes, op: str, most: int) -> None:
    code = f"""
import os
os.environ["OPLET_PLANS"] = "off"
import numpy as np
from oplet import Interpreter
plugins = ["oplet-builtin-ops", "oplet-compiled-ops"]
interpreter = Interpreter(model_content=bytes.fromhex("{model.hex()}"), plugins=plugins, num_threads=1)
interpreter.allocate_tensors()
interpreter.invoke()
"""
    loaded = modules_after(code) - modules_after("import numpy")
    slow = {
        "dataclasses",
        "hashlib",
        "importlib.metadata",
        "importlib_metadata",
        "inspect",
        "ml_dtypes",
        "pathlib",
        "pluggy",
        "threading",
    }
    assert not loaded & (slow | {"numpy.typing"})
    assert f"oplet_compiled_ops.ops.{op}" in loaded
    assert len({name for name in loaded if name.partition(".")[0].startswith("oplet")}) <= most


SHIPPED = [p for d in (CORE, *(ROOT / "plugins").glob("*/src")) for p in d.rglob("*.py")]


def test_shipped_code_has_no_assert_and_prints_nothing() -> None:
    for path in SHIPPED:
        for asserting in nodes(parsed(path), ast.Assert):
            raise AssertionError(f"{path}:{asserting.lineno} has an assert, which vanishes under -O")
        for node in nodes(parsed(path), ast.Call):
            printing = isinstance(node.func, ast.Name) and node.func.id == "print"
            assert not printing or "cli" in path.parts, f"{path}:{node.lineno} prints"
