"""A library is bound to the functions here and to nobody else's, whatever else the program has loaded; what cannot be opened says why."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import run_child

from oplet.errors import PluginError
from oplet_native_ops import load_ops
from oplet_native_ops.shim import opening
from oplet_native_ops.shim.elf import ElfError, read_elf
from oplet_native_ops.shim.library import library_path
from oplet_native_ops.shim.opening import open_library
from oplet_testing import Spec, one_op_model, run_op

MODEL = one_op_model("Atan", [Spec("float32", [3])], [Spec("float32", [3])])


def works(path: str) -> bool:
    x = np.array([0, 1, -1], np.float32)
    [y] = run_op(MODEL, x, op_resolver=load_ops(path))
    return bool(np.allclose(y, np.arctan(x), atol=1e-6))


def test_nothing_becomes_global(build_once: Any) -> None:
    assert works(build_once("atan_operator.cc"))
    with pytest.raises(AttributeError):
        _ = ctypes.CDLL(None).TfLiteOperatorCreate
    with pytest.raises(AttributeError):
        _ = ctypes.CDLL(None).AtanOpRegistration


def test_the_programs_stack_does_not_become_executable(build_once: Any) -> None:
    assert works(build_once("atan_operator.cc"))
    [stack] = [line for line in Path("/proc/self/maps").read_text().splitlines() if line.endswith("[stack]")]
    assert "x" not in stack.split()[1]


def test_a_library_is_opened_once_and_has_the_same_operators_under_every_path(build_once: Any, tmp_path: Path) -> None:
    path = build_once("atan_operator.cc")
    link = tmp_path / "other.so"
    link.symlink_to(path)
    assert open_library(path) is open_library(link) is open_library(os.path.relpath(path))


def test_a_library_that_was_built_anew_is_told_from_the_one_that_is_open(build_once: Any, tmp_path: Path) -> None:
    path = tmp_path / "libanew.so"
    shutil.copy(build_once("atan_operator.cc"), path)
    assert works(str(path))
    path.unlink()
    shutil.copy(build_once("operators.cc"), path)
    with pytest.raises(PluginError, match=r"libanew\.so has changed since this program opened it; start the program anew"):
        load_ops(path, "TotalOperator")


def test_a_library_that_is_linked_with_litert_s_c_library_needs_none(build_once: Any, tmp_path: Path) -> None:
    script = tmp_path / "versions"
    script.write_text("VERS_1.0 { global: *; };")
    name = "libtensorflowlite_c.so"
    runtime = build_once("runtime.c", f"-Wl,-soname,{name}", f"-Wl,--version-script={script}", library=name)
    linked = build_once("atan_operator.cc", "-Wl,--no-as-needed", f"-L{Path(runtime).parent}", "-ltensorflowlite_c")
    assert name in read_elf(linked).needed
    assert b"VERS_1.0" in Path(linked).read_bytes()
    assert works(linked)


def test_temporary_files_are_not_needed(build_once: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copies = []
    for number in range(3):
        copies.append(str(tmp_path / f"libcopy{number}.so"))
        shutil.copy(build_once("atan_operator.cc"), copies[-1])

    def none(*arguments: object, **options: object) -> object:
        raise OSError("noexec")

    monkeypatch.setattr(opening.tempfile, "NamedTemporaryFile", none)
    assert all(works(copy) for copy in copies)


def test_a_name_without_folder_is_looked_for_where_the_loader_looks(
    build_once: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(build_once("atan_operator.cc"), tmp_path / "libsearched.so")
    with pytest.raises(PluginError, match=r"no library libsearched\.so here, in LD_LIBRARY_PATH or in the system's folders"):
        load_ops("libsearched.so")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert works("libsearched.so")


def test_functions_that_are_missing_are_named(build_once: Any) -> None:
    with pytest.raises(
        PluginError,
        match=r"lacks\.so cannot be loaded: it calls TfLiteInterpreter\w+, TfLiteInterpreter\w+, which are not in LiteRT's public C API",
    ):
        load_ops(build_once("lacks.c"), {"Op": "LacksOperator"})


def test_operators_of_a_runtime_that_the_library_brings_are_refused(build_once: Any) -> None:
    path = build_once("own_runtime.c", "-Wl,-Bsymbolic")
    with pytest.raises(
        PluginError, match=r"is no TfLiteRegistration: its \w+ is no function\. .*a library with a LiteRT of its own"
    ):
        load_ops(path)


def test_without_bsymbolic_the_functions_here_come_first(build_once: Any) -> None:
    with pytest.raises(PluginError, match="OwnOperator of .* has no invoke, so it cannot run"):
        load_ops(build_once("own_runtime.c"))


def test_a_library_of_another_machine_is_told_from_a_damaged_one(build_once: Any, tmp_path: Path) -> None:
    data = bytearray(Path(build_once("atan_operator.cc")).read_bytes())
    data[18] = 243
    other = tmp_path / "libother.so"
    other.write_bytes(data)
    with pytest.raises(PluginError, match=r"libother\.so is built for RISC-V, and this machine is .*: build it for this one"):
        load_ops(other)
    other.write_bytes(b"GIF89a")
    with pytest.raises(PluginError, match=r"libother\.so cannot be loaded: it is no ELF file; give a shared library"):
        load_ops(other)
    with pytest.raises(PluginError, match=r"There is no library .*nowhere/libx\.so; give the path"):
        load_ops(tmp_path / "nowhere" / "libx.so")


def test_a_damaged_file_is_refused_and_never_more(tmp_path: Path) -> None:
    whole = library_path().read_bytes()
    path = tmp_path / "damaged.so"
    random = np.random.default_rng(5)
    refused = 0
    for case in range(400):
        data = bytearray(whole)
        if case % 2:
            del data[random.integers(len(data)) :]
        else:
            for at in random.integers(0, min(len(data), 4096), 8):
                data[at] = random.integers(256)
        path.write_bytes(data)
        try:
            read_elf(str(path))
        except ElfError:
            refused += 1
    assert refused > 100


def test_functions_of_the_same_names_that_somebody_made_global_are_not_taken(build_once: Any) -> None:
    foreign = build_once("runtime.c", "-DFOREIGN")
    program = f"""
import ctypes
ctypes.CDLL({foreign!r}, mode=ctypes.RTLD_GLOBAL)
import numpy as np
from oplet_testing import Spec, one_op_model, run_op
from oplet_native_ops import load_ops
model = one_op_model("Atan", [Spec("float32", [1])], [Spec("float32", [1])])
print(run_op(model, np.ones(1, "float32"), op_resolver=load_ops({build_once("atan_operator.cc")!r})))
"""
    done = run_child([sys.executable, "-c", program])
    assert "0.785398" in done.stdout, done.stderr
