"""The recorded cases: whatever LiteRT ran, oplet runs, with the same numbers."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from oplet import PluginManager
from oplet.errors import OpletError

CORPUS = Path(__file__).parents[2] / "shared" / "conformance"
GROUPS = sorted(
    p.relative_to(CORPUS) for f in ("ops", "real") for p in (CORPUS / f).glob("*.zip") if p.stem not in ("flex", "unrunnable")
)

#: Cases that are not exact, with the verdict that they have; docs/numerics.md says why, one by one.
EXPLAINED = {
    "keras_act/round_int8": "near",
    "keras_nets/resnet_dyn": "near",
    "keras_tf_misc/mirror_pad_dyn": "error",
    "matrix_band_part/matrix_band_part_008": "error",
}

pytestmark = pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here")


@pytest.fixture(scope="module")
def grader() -> ModuleType:
    """The grader that lies beside the recordings."""
    spec = importlib.util.spec_from_file_location("oplet_recorded_cases", CORPUS / "run.py")
    if spec is None or spec.loader is None:
        pytest.skip("there is no grader beside the recordings")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served() -> set[str]:
    """The operators that installed packages serve."""
    return {claim.op if isinstance(claim.op, str) else claim.op.name for claim in PluginManager().resolver().claims()}


@pytest.mark.parametrize("group", GROUPS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_recorded_case_of_the_group_is_exact(group: Path, grader: ModuleType, served: set[str]) -> None:
    path = CORPUS / group
    wrong = []
    with zipfile.ZipFile(path) as archive:
        names = sorted({n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith("case.json")})
        cases = {name: json.loads(archive.read(f"{name}/case.json")) for name in names}
    for name, case in cases.items():
        needed = {op.split(" ")[0].removeprefix("CUSTOM:") for op in case["ops"]}
        if not case["steps"] or not needed <= served:
            continue
        try:
            verdict, detail, _ = grader.run_case("oplet:Interpreter", str(path), name)
        except OpletError as error:
            verdict, detail = "error", str(error)
        explained = next((v for case, v in EXPLAINED.items() if f"{path.stem}/{name}".startswith(case)), "exact")
        if verdict not in ("exact", explained):
            wrong.append(f"{verdict} {name}: {detail}")
    assert not wrong, "\n".join(wrong)
