"""`python -m oplet`: the command `oplet`, which the package oplet-tools brings, run by this Python."""

from __future__ import annotations

import sys

from oplet.installed import entry_points


def main() -> None:
    """Run the command that is installed under the name `oplet`; exit with an error message if no package has installed it."""
    for entry in entry_points("console_scripts"):
        if entry.name == "oplet":
            entry.load()(program="python -m oplet")
            return
    from oplet.plugins.install_commands import install_command

    sys.exit(f"oplet: the command is a package of its own; install it: {install_command('oplet-tools')}")


if __name__ == "__main__":
    main()
