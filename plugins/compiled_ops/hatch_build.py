"""The build hook: compiles the kernels into shared libraries in the package, and gives the wheel its tag.

It runs `python -m oplet_compiled_ops.compiling`, for which numba (the front end), llvmlite (LLVM) and ziglang (the linker) are fetched
while building. A build in a clone is for the processor that builds; with OPLET_COMPILED_PLATFORM, one of `TARGETS`, a wheel has all
levels of another platform; in the repository `python -m scripts.packages FOLDER --only compiled_ops` makes them all. Object files
are kept in OPLET_COMPILED_OBJECTS, or in `build/objects`, so that the next build compiles only what has changed.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # hatchling requires it there

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What a wheel's platform tag promises, by the platform's name in `oplet_compiled_ops.compiling.platforms`.
TARGETS = {
    "linux-x86_64": "manylinux_2_28_x86_64",
    "linux-aarch64": "manylinux_2_28_aarch64",
    "musl-x86_64": "musllinux_1_2_x86_64",
    "musl-aarch64": "musllinux_1_2_aarch64",
    "macos-arm64": "macosx_11_0_arm64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "windows-x86_64": "win_amd64",
}
#: What compiles: fetched by pip for the time of the build.
TOOLS = ["numba>=0.61,<0.70", "ziglang>=0.13"]
#: What the kernels' modules import; in a clone, what these require, as they lie beside.
PACKAGES = ["oplet-core>=0.1,<0.2", "oplet-builtin-ops>=0.1,<0.2", "oplet-larq-ops>=0.1,<0.2", "oplet-mediapipe-ops>=0.1,<0.2"]
#: Machines that kernels are compiled on for themselves. Elsewhere the package holds none, and says so when it is used.
MACHINES = ("x86_64", "AMD64", "aarch64", "arm64")


def target() -> str:
    """Return the platform that OPLET_COMPILED_PLATFORM names; "" for this one."""
    return os.environ.get("OPLET_COMPILED_PLATFORM", "")


def _required(package: Path) -> list[str]:
    """Return what a package requires."""
    with (package / "pyproject.toml").open("rb") as file:
        return list(tomllib.load(file)["project"]["dependencies"])


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling finds it by this name."""

    def dependencies(self) -> list[str]:
        """Return the packages that pip installs before it builds."""
        if self.target_name != "wheel" or not self._compiles():
            return []
        clone = self._clone()
        return [*TOOLS, *(_required(clone / "core") if clone else PACKAGES)]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, into the package itself for an editable installation, else aside.

        Raises:
            SystemExit: the compiler fails, or the target is none.
        """
        if target() and target() not in TARGETS:
            sys.exit(f"OPLET_COMPILED_PLATFORM is {target()!r}; it must be one of {', '.join(TARGETS)}.")
        if not self._compiles():
            return
        root = Path(self.root).resolve()
        if version == "editable":
            self._compile([])
        else:
            output = root / "build" / "libraries" / (target() or "here")
            self._compile([*(["--platform", target(), "--all-levels"] if target() else []), "--output", str(output)])
            build_data["force_include"][str(output)] = "oplet_compiled_ops/libraries"
        build_data["pure_python"] = False
        tag = TARGETS[target()] if target() else sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"

    def _compiles(self) -> bool:
        return bool(target()) or (platform.machine() in MACHINES and sys.maxsize > 2**32)

    def _clone(self) -> Path | None:
        """Return the root of the clone that the package is built in; None if it is built alone."""
        root = Path(self.root).resolve().parents[1]
        return (
            root if (root / "core" / "src" / "oplet").exists() and (root / "plugins" / "builtin_ops" / "src").exists() else None
        )

    def _compile(self, arguments: list[str]) -> None:
        root, clone = Path(self.root).resolve(), self._clone()
        beside = ["core/src", "plugins/builtin_ops/src", "plugins/larq_ops/src", "plugins/mediapipe_ops/src"]
        places = [root / "src", *(clone / place for place in beside if clone)]
        paths = [*map(str, places), *filter(None, [os.environ.get("PYTHONPATH", "")])]
        objects = os.environ.get("OPLET_COMPILED_OBJECTS") or str(root / "build" / "objects")
        command = [sys.executable, "-m", "oplet_compiled_ops.compiling", "--objects", objects, *arguments]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
        if done.returncode:
            sys.exit("The kernels of oplet-compiled-ops cannot be compiled here; what the compiler said stands above.")
