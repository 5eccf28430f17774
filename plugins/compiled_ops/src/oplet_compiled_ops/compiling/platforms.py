"""The platforms that libraries are built for: LLVM's and zig's names, and the levels of their processors."""

from __future__ import annotations

import platform
import sys
import sysconfig
from typing import NamedTuple

from oplet_compiled_ops.library.levels import LEVELS, Level

__all__ = ["PLATFORMS", "Platform", "here"]


class Platform(NamedTuple):
    """A target platform (operating system and architecture) of the compiled libraries.

    Attributes:
        name: its name on the build's command line.
        triple: LLVM's target triple, which decides the object format and the calling convention.
        zig: zig's target, with the lowest version of the C library or system.
        suffix: the suffix of shared libraries.
        lowest: the lowest processor level of its machines; "" for the architecture's lowest.
    """

    name: str
    triple: str
    zig: str
    suffix: str = ".so"
    lowest: str = ""

    @property
    def levels(self) -> list[Level]:
        """The processor levels that a wheel for the platform has libraries for, the lowest first."""
        machine = "aarch64" if self.triple.startswith(("aarch64", "arm64")) else "x86_64"
        found = [level for level in LEVELS.values() if level.machine == machine]
        return found[[level.name for level in found].index(self.lowest) if self.lowest else 0 :]


_LINUX = "{}-unknown-linux-gnu"
#: All platforms, by their names. The C libraries of Linux share object files.
PLATFORMS = {
    one.name: one
    for one in (
        Platform("linux-x86_64", _LINUX.format("x86_64"), "x86_64-linux-gnu.2.28"),
        Platform("linux-aarch64", _LINUX.format("aarch64"), "aarch64-linux-gnu.2.28"),
        Platform("musl-x86_64", _LINUX.format("x86_64"), "x86_64-linux-musl"),
        Platform("musl-aarch64", _LINUX.format("aarch64"), "aarch64-linux-musl"),
        Platform("macos-arm64", "arm64-apple-macosx11.0.0", "aarch64-macos.11.0", ".dylib", "aarch64-dotprod"),
        Platform("macos-x86_64", "x86_64-apple-macosx11.0.0", "x86_64-macos.11.0", ".dylib"),
        Platform("windows-x86_64", "x86_64-pc-windows-gnu", "x86_64-windows-gnu", ".dll"),
    )
}


def here() -> Platform | None:
    """Return the platform of this machine; None if no libraries are built for it."""
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    if sys.maxsize < 2**32:
        return None
    if sys.platform == "darwin":
        return PLATFORMS["macos-arm64" if machine == "aarch64" else "macos-x86_64"]
    system = {"win32": "windows"}.get(
        sys.platform, "musl" if "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "") else "linux"
    )
    return PLATFORMS.get(f"{system}-{machine}")
