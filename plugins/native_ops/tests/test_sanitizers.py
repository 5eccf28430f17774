"""The C library keeps within its memory and within what C defines, in all tests of this package: AddressSanitizer and UBSan say so."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.children import run_child

pytestmark = pytest.mark.environment

ROOT = Path(__file__).parents[3]
PACKAGE = Path(__file__).parents[1]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1", "-fno-omit-frame-pointer"]
#: What takes long, what compiles anew, and what puts libraries before the sanitizers' own (RTLD_DEEPBIND), which they forbid.
LEFT_OUT = ["test_sanitizers.py", "test_packaging.py"]
DESELECTED = "not ziglang and not somebody_made_global and not test_many_shapes"


def sanitized(folder: Path) -> Path:
    """A copy of the package whose library is compiled with sanitizers."""
    pytest.importorskip("hatchling")
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc here")
    copy = folder / "oplet_native_ops"
    shutil.copytree(PACKAGE / "src" / "oplet_native_ops", copy, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    flags = [flag for flag in runpy.run_path(str(PACKAGE / "hatch_build.py"))["FLAGS"] if flag not in ("-O2", "-Wl,-s")]
    sources = sorted(map(str, (PACKAGE / "native").glob("*.c")))
    command = ["gcc", *flags, *SANITIZERS, "-Wall", "-Wextra", "-Werror", "-o", str(copy / "liboplet_native.so"), *sources]
    run_child(command)
    return folder


def environment(folder: Path) -> dict[str, str]:
    libraries = [run_child(["gcc", f"-print-file-name={name}"]).stdout.strip() for name in ("libasan.so", "libubsan.so")]
    return {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(folder),
    }


def test_all_tests_of_the_package_pass_under_sanitizers(tmp_path: Path) -> None:
    folder = sanitized(tmp_path)
    ignored = [f"--ignore={Path(__file__).with_name(name)}" for name in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", DESELECTED, *ignored, str(PACKAGE / "tests")]
    done = subprocess.run(command, cwd=ROOT, env=environment(folder), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert " passed" in done.stdout
    assert "runtime error" not in done.stderr


def test_a_write_beyond_the_end_is_seen(tmp_path: Path) -> None:
    """The sanitizers are there: what is wrong is found."""
    folder = sanitized(tmp_path)
    program = (
        "import ctypes; from oplet_native_ops.shim.library import shim, library_path; assert str(library_path()).startswith("
        f"{str(folder)!r}); a = shim().TfLiteIntArrayCreate(2); shim().TfLiteIntArrayCopy(a); "
        "a.contents.size = 1000; shim().TfLiteIntArrayCopy(a)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment(folder), capture_output=True, text=True)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
