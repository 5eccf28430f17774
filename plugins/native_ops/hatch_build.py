"""The build hook: compiles `native/*.c` into the package, and gives the wheel its tag.

The compiler is `$CC`, or the machine's (cc, gcc, clang), or else the one that pip brings (ziglang). With OPLET_NATIVE_TARGET the
wheel is for another platform, one of `TARGETS`, which ziglang alone can do; in the repository
`python -m scripts.packages FOLDER --only native_ops` makes them all.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What a wheel's platform tag promises, by ziglang's name of the platform; the lowest C library is part of both.
TARGETS = {
    "x86_64-linux-gnu.2.17": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "aarch64-linux-gnu.2.17": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "x86_64-linux-musl": "musllinux_1_1_x86_64",
    "aarch64-linux-musl": "musllinux_1_1_aarch64",
}
NAME = "liboplet_native.so"
#: -Bsymbolic: its functions call one another, and not those of the same names that somebody else made global.
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-Wl,-s",
    "-Wl,-Bsymbolic",
    f"-Wl,-soname,{NAME}",
]


def target() -> str:
    """Return the target platform that OPLET_NATIVE_TARGET names; "" for this one."""
    return os.environ.get("OPLET_NATIVE_TARGET", "")


def is_supported() -> bool:
    """Whether there is a library for this platform: 64-bit little-endian Linux. Elsewhere the package says so when it is used."""
    return bool(target()) or (sys.platform == "linux" and sys.maxsize > 2**32 and sys.byteorder == "little")


def compiler() -> list[str]:
    """Return the command of the C compiler: $CC, the system's, or zig's for cross-compiling."""
    given = shlex.split(os.environ.get("CC", ""))
    found = given or next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), [])
    return found if found and not target() else [sys.executable, "-m", "ziglang", "cc"]


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling finds it by this name."""

    def dependencies(self) -> list[str]:
        """Return the packages that pip installs before it builds."""
        return ["ziglang>=0.13"] if is_supported() and "ziglang" in compiler() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, into the package itself for an editable installation, else aside.

        Raises:
            SystemExit: there is no compiler, it fails, or the target is none.
        """
        if target() and target() not in TARGETS:
            sys.exit(f"OPLET_NATIVE_TARGET is {target()!r}; it must be one of {', '.join(TARGETS)}.")
        if not is_supported():
            return
        editable = version == "editable"
        root = Path(self.root).resolve()
        made = root / "src/oplet_native_ops" / NAME if editable else root / "build" / (target() or "here") / NAME
        made.parent.mkdir(parents=True, exist_ok=True)
        self.compile(made)
        if not editable:
            build_data["force_include"][str(made)] = f"oplet_native_ops/{NAME}"
        build_data["pure_python"] = False
        platform = TARGETS[target()] if target() else sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"

    def compile(self, made: Path) -> None:
        """Write the library to `made`, in one step, as another process may have the one that is there open."""
        command = compiler()
        if "ziglang" in command and importlib.util.find_spec("ziglang") is None:
            sys.exit(
                "oplet-native-ops needs a C compiler: install gcc or clang, or `pip install ziglang`, then install it again."
            )
        if target():
            command = [*command, "-target", target()]
        sources = sorted(map(str, Path(self.root, "native").glob("*.c")))
        fresh = made.with_suffix(f".{os.getpid()}.new")
        done = subprocess.run(
            [*command, *FLAGS, "-o", str(fresh), *sources], capture_output=True, encoding="utf-8", errors="replace"
        )
        if done.returncode:
            fresh.unlink(missing_ok=True)
            sys.exit(f"oplet-native-ops cannot be compiled with {shlex.join(command)}:\n{done.stderr}")
        fresh.replace(made)
