"""`python -m oplet`: the command `oplet` of this very Python."""

from __future__ import annotations

from oplet.cli.main import main

if __name__ == "__main__":
    main(program="python -m oplet")
