"""Each way of running has the processor that it says: what the level promises, and nothing above it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from scripts import packages
from scripts.emulated.environment import imported_from
from tests import wheelhouse
from tests.children import run_child
from tests.emulated.ways import EMULATED, HERE, Way
from tests.places import EXAMPLES, ROOT

pytestmark = pytest.mark.environment

#: Prints what numpy uses of the processor, the plugins there, and what another process of the same Python says of the machine.
_PROGRAM = """
import ctypes, json, pathlib, platform, subprocess, sys
import oplet
try:
    import numpy._core._multiarray_umath as umath
except ModuleNotFoundError:
    import numpy.core._multiarray_umath as umath
maps = pathlib.Path("/proc/self/maps").read_text()
core = None
for path in {line.split()[-1] for line in maps.splitlines() if "openblas" in line.rpartition("/")[2]}:
    library = ctypes.CDLL(path)
    for name in ("scipy_openblas_get_corename64_", "openblas_get_corename64_", "openblas_get_corename"):
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype = ctypes.c_char_p
            core = function().decode().lower()
other = subprocess.run([sys.executable, "-c", "import platform; print(platform.machine())"], capture_output=True, text=True, check=True)
print(json.dumps({
    "features": sorted(name for name, there in umath.__cpu_features__.items() if there),
    "openblas": core,
    "machines": [platform.machine(), other.stdout.strip()],
    "plugins": sorted({entry.provenance.plugin for entry in oplet.PluginManager().resolver().entries()}),
}))
"""

#: Runs the guide's model by the operator of a library.
_ATAN = """
import json, sys
import oplet, oplet_native_ops
resolver = oplet_native_ops.load_ops(sys.argv[1])
interpreter = oplet.Interpreter(sys.argv[2], op_resolver=resolver)
[output] = interpreter.get_signature_runner()(x=__import__("numpy").float32([0.5])).values()
print(json.dumps(output.tolist()))
"""


@pytest.mark.parametrize("way", EMULATED + HERE, ids=str)
def test_a_way_has_the_instructions_of_its_level_and_no_others_and_starts_processes_of_its_kind(way: Way) -> None:
    with imported_from(wheelhouse.needed("builtin_ops")) as paths:
        command, variables = way.start(paths)
        told = json.loads(run_child([*command, "-c", _PROGRAM], env=variables).stdout)
    features, level = set(told["features"]), way.level
    if way.emulated:
        assert level.features <= features
        assert level.lacks.isdisjoint(features)
    else:
        assert features.isdisjoint(variables["NPY_DISABLE_CPU_FEATURES"].split())
    assert told["openblas"] in (level.openblas.lower(), None)
    assert told["machines"] == [level.architecture] * 2
    assert told["plugins"] == ["builtin_ops"]


def test_a_wheel_of_compiled_code_for_the_other_platform_serves_there(tmp_path: Path) -> None:
    if not packages.has_ziglang():
        pytest.skip("ziglang, which compiles for other platforms, is not installed")
    way, library = EMULATED[0], tmp_path / "libatan.so"
    target = f"{way.level.architecture}-linux-gnu.2.17"
    made = packages.build(ROOT / "plugins" / "native_ops", tmp_path, [target])
    source = ROOT / "plugins" / "native_ops" / "tests" / "sources" / "atan_external.c"
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-shared", "-fPIC", "-O2"]
    with imported_from([*wheelhouse.needed("builtin_ops"), *(file for file in made if file.suffix == ".whl")]) as paths:
        run_child([*zig, f"-I{paths[-1] / 'oplet_native_ops' / 'include'}", "-o", library, source])
        command, variables = way.start(paths)
        done = run_child([*command, "-c", _ATAN, library, EXAMPLES / "atan" / "atan.tflite"], env=variables)
    np.testing.assert_allclose(json.loads(done.stdout), [np.arctan(1.5)], rtol=0, atol=1e-6)
