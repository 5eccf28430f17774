"""The libraries of kernels: built of the sources that are here, chosen by the processor, and no more than they promise."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.children import run_child

from oplet import Interpreter
from oplet.schema.options import SoftmaxOptions
from oplet_compiled_ops.library import levels, opening
from oplet_compiled_ops.library.kernels import Kernel, kinds
from oplet_compiled_ops.library.levels import LEVELS, using
from oplet_compiled_ops.library.opening import MissingKernelError
from oplet_testing import Spec, one_op_model

X = Spec("float32", (1, 4))


@pytest.fixture
def fresh() -> Iterator[None]:
    """What is remembered of the library is forgotten, before and after."""

    def forget() -> None:
        for each in (opening.levels_here, opening.chosen_level, opening.library, opening._warn):
            each.cache_clear()

    forget()
    yield
    forget()


def test_the_library_that_is_used_is_of_the_highest_level_that_the_processor_and_the_package_have() -> None:
    here = [level for level in opening.levels_here() if Path(opening.folder(), f"{level}{opening.SUFFIX}").exists()]
    assert opening.library().level == os.environ.get(opening.VARIABLE, here[-1])
    assert levels.current().name == opening.library().level


def test_the_probe_tells_what_the_system_tells() -> None:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        pytest.skip("the system has no /proc/cpuinfo")
    lines = [line.partition(":") for line in text.splitlines()]
    flags = next(set(value.split()) for name, _, value in lines if name.strip() in ("flags", "Features"))
    machine = LEVELS[opening.levels_here()[0]].machine
    able = [level.name for level in LEVELS.values() if level.machine == machine]
    while set(LEVELS[able[-1]].flags) - flags:
        able.pop()
    assert list(opening.levels_here()) == able


def test_a_level_that_the_processor_lacks_is_named_and_numpy_serves(
    fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(opening.VARIABLE, "x86-64-v9")
    with pytest.raises(MissingKernelError, match="OPLET_COMPILED_LEVEL is 'x86-64-v9', not one of "):
        opening.library()
    assert "so that numpy's kernels serve" in caplog.text


def test_a_level_that_is_none_is_told_once_and_briefly(
    fresh: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(opening.VARIABLE, "x" * 10_000)
    for _ in range(3):  # as each kernel asks
        with pytest.raises(MissingKernelError):
            opening.library()
    [record] = caplog.records
    assert len(record.getMessage()) < 500


def test_without_libraries_every_node_is_declined_with_the_reason(
    fresh: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(opening, "folder", lambda: str(tmp_path))
    code = (
        "import sys; from oplet_compiled_ops.library import opening; opening.folder = lambda: sys.argv[2];"
        "from oplet import Interpreter; i = Interpreter(sys.argv[1]); i.allocate_tensors(); i.invoke(); print(i.explain()[0].why)"
    )
    model = tmp_path / "model.tflite"
    model.write_bytes(one_op_model("EXP", [X], [X]))
    done = run_child([sys.executable, "-c", code, str(model), str(tmp_path)])
    assert "it has no machine code: oplet-compiled-ops holds no machine code for this system" in done.stdout


def test_a_kernel_that_no_library_has_is_named() -> None:
    def nothing(x):  # type: ignore[no-untyped-def]
        pass

    kernel = Kernel(nothing, "void(f4[::1])")
    assert not kernel.exists
    with pytest.raises(MissingKernelError, match=f"no kernel {kernel.name}"):
        kernel.entry()


def test_numba_is_not_imported_when_a_model_runs(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(one_op_model("EXP", [X], [X]))
    code = (
        "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = sys.modules['ziglang'] = None;"
        "from oplet import Interpreter; i = Interpreter(sys.argv[1]); i.allocate_tensors(); i.invoke(); print(i.explain()[0].distribution)"
    )
    done = run_child([sys.executable, "-c", code, str(model)])
    assert done.stdout.strip() == "oplet-compiled-ops"


def test_the_first_run_is_compiled() -> None:
    interpreter = Interpreter(model_content=one_op_model("EXP", [X], [X]))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([[0.0, 1.0, 2.0, 3.0]], np.float32))
    interpreter.invoke()
    assert interpreter.explain()[0].distribution == "oplet-compiled-ops"


def test_a_library_keeps_its_machine_code_in_pages_that_nobody_can_write() -> None:
    try:
        maps = Path("/proc/self/maps").read_text("utf-8").splitlines()
    except OSError:
        pytest.skip("the system has no /proc/self/maps")
    name = f"{opening.library().level}{opening.SUFFIX}"
    mine = [line.split()[1] for line in maps if line.endswith(name)]
    assert mine
    assert not [mode for mode in mine if "w" in mode and "x" in mode]


def test_asking_for_the_level_is_seen() -> None:
    level = LEVELS["x86-64-v3"]
    with using(level) as asked:
        assert not asked
        assert levels.tile_rows() == level.tile_rows
        assert asked


def test_the_library_is_built_of_these_sources() -> None:
    pytest.importorskip("numba")
    pytest.importorskip("ziglang")
    from oplet_compiled_ops.compiling.fingerprints import fingerprint, identity
    from oplet_compiled_ops.compiling.members import kernels_of

    level = LEVELS[opening.library().level]
    kernels = kernels_of(level)
    missing = [kernel.name for kernel in kernels if not kernel.exists]
    assert not missing, "run `python -m oplet_compiled_ops.compiling`"
    built = identity([fingerprint(kernel, level) for kernel in kernels])
    assert opening.library().identity == built, "run `python -m oplet_compiled_ops.compiling`"


def test_libraries_for_another_platform_are_not_built_over_this_one_s(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    from oplet_compiled_ops.compiling.__main__ import main
    from oplet_compiled_ops.compiling.platforms import PLATFORMS, here

    other = next(name for name, platform in PLATFORMS.items() if platform != here())
    with pytest.raises(SystemExit):
        main(["--platform", other, "--all-levels"])
    assert "--output" in capsys.readouterr().err


def test_a_kernel_s_function_takes_the_arguments_that_its_signature_tells() -> None:
    pytest.importorskip("numba")
    from oplet_compiled_ops.compiling.members import kernels_of

    for kernel in kernels_of(LEVELS[opening.library().level]):
        code = kernel.function.__code__
        assert (kernel.name, code.co_argcount) == (kernel.name, len(kinds(kernel.signature)))


def test_a_model_s_process_imports_no_source_of_a_kernel_that_is_declared_elsewhere(tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    content = one_op_model("SOFTMAX", [X], [X], SoftmaxOptions(beta=1.0))
    model.write_bytes(content)
    code = """if True:
        import sys
        from oplet import Interpreter
        from oplet_compiled_ops.library.kernels import known
        interpreter = Interpreter(sys.argv[1])
        interpreter.allocate_tensors()
        interpreter.invoke()
        declared = {f"oplet_compiled_ops.{path.partition(':')[0]}" for path in [one.declared_at for one in known] if path}
        print(interpreter.explain()[0].distribution, len(declared) > 1, declared & sys.modules.keys())
        from oplet_compiled_ops.ops.softmax import SOFTMAX
        SOFTMAX.function
        print(declared & sys.modules.keys())
    """
    printed = run_child([sys.executable, "-c", code, str(model)]).stdout.splitlines()
    assert printed == ["oplet-compiled-ops True set()", "{'oplet_compiled_ops.softmax.exponentials'}"]


def test_fingerprints_are_the_same_in_every_process() -> None:
    pytest.importorskip("numba")
    code = (
        "from oplet_compiled_ops.compiling import fingerprints, members; from oplet_compiled_ops.library.levels import LEVELS;"
        "level = LEVELS['x86-64-v3']; print(fingerprints.identity([fingerprints.fingerprint(k, level) for k in members.kernels_of(level)]))"
    )
    found = {
        run_child([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}).stdout for seed in ("0", "1", "2")
    }
    assert len(found) == 1


def test_a_kernel_s_machine_code_is_the_same_whatever_was_compiled_before() -> None:
    pytest.importorskip("numba")
    code = """if True:
        import hashlib
        from oplet_compiled_ops.compiling.machine_code import object_of
        from oplet_compiled_ops.compiling.members import kernels_of
        from oplet_compiled_ops.compiling.numba_ir import ir_of
        from oplet_compiled_ops.library.levels import LEVELS, using
        level = LEVELS["x86-64-v3"]
        some = [kernel for kernel in kernels_of(level) if kernel.name.startswith("threads_")][:3]
        with using(level):
            for kernel in [*some, *some[::-1]]:
                print(kernel.name, hashlib.sha256(object_of(ir_of(kernel), level, "x86_64-unknown-linux-gnu")).hexdigest())
        """
    lines = run_child([sys.executable, "-c", code]).stdout.splitlines()
    assert len(lines) == 6
    assert lines[:3] == lines[:2:-1]
