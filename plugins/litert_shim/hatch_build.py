"""The build hook: puts the file that Python reads at each start into the wheel, but not into an editable installation, so that who
works on the package has it only in the programs that its tests start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Its line puts a finder behind all others, which is asked for what nobody has.
NAME = "oplet_litert_shim.pth"


class CustomBuildHook(BuildHookInterface[Any]):
    """Hatchling finds it by this name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, unless the installation is editable."""
        if version != "editable":
            build_data["force_include"][str(Path(self.root, NAME))] = NAME
