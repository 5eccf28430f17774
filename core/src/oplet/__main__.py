"""`python -m oplet`: the command `oplet`, run by this Python."""

from __future__ import annotations

from oplet.cli.main import main

if __name__ == "__main__":
    main(program="python -m oplet")
