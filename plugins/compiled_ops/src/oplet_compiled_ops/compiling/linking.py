"""Shared libraries of object files, by the linker that comes with zig, for any platform on any."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from oplet_compiled_ops.compiling.platforms import Platform

__all__ = ["link_library", "link_probe"]

_HERE = Path(__file__).resolve().parent


def link_library(objects: Sequence[Path], identity: str, platform: Platform, made: Path) -> None:
    """Link object files to the shared library `made`, with `identity` (a hash of its kernels) as data.

    Raises:
        RuntimeError: the linker fails; the message is its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        source, arguments = Path(folder, "identity.c"), Path(folder, "arguments")
        exported = "__declspec(dllexport) " if platform.suffix == ".dll" else ""
        source.write_text(f'{exported}const char oplet_identity[33] = "{identity}";\n', "utf-8")
        arguments.write_text("".join(f'"{str(path).replace(os.sep, "/")}"\n' for path in objects), "utf-8")
        _zig([str(source), f"@{arguments}"], platform, made)


def link_probe(platform: Platform, made: Path) -> None:
    """Compile and link the probe, a shared library that detects the processor's level.

    Raises:
        RuntimeError: the compiler fails; the message is its output.
    """
    _zig([str(_HERE / "probe.c")], platform, made)


def _zig(inputs: Sequence[str], platform: Platform, made: Path) -> None:
    flags = ["-shared", "-O2", "-g0", "-s"]
    if platform.suffix == ".dll":
        flags.append("-Wl,--export-all-symbols")
    elif platform.suffix == ".so":
        flags += ["-fPIC", f"-Wl,-soname,{made.name}", "-Wl,-z,noexecstack", "-lm"]
    made.parent.mkdir(parents=True, exist_ok=True)
    fresh = made.with_name(f"{made.stem}.{os.getpid()}{made.suffix}")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", platform.zig, *flags, "-o", str(fresh), *inputs]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", env=_environment())
    if done.returncode or not fresh.exists():
        fresh.unlink(missing_ok=True)
        raise RuntimeError(f"zig's linker fails for {platform.name}: {done.stderr[-4000:]}")
    fresh.replace(made)  # in one step, as another process may have the one that is there open


@functools.cache
def _environment() -> dict[str, str]:
    """Return the variables of zig's process, with a folder for its cache where the user has no home that it could lie in."""
    variables = dict(os.environ)
    if os.name == "posix" and variables.keys().isdisjoint({"HOME", "XDG_CACHE_HOME", "ZIG_GLOBAL_CACHE_DIR"}):
        variables["ZIG_GLOBAL_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="oplet-zig-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return variables
