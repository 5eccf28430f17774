"""A process that is told to be on another system: python child.py SYSTEM PROGRAM ...; an encoding that nobody names is an error of oplet's."""

from __future__ import annotations

import runpy
import sys
import warnings

from tests.elsewhere.systems import play  # in the parent's path

if __name__ == "__main__":
    # Whatever numpy and others do, they do as they are; PEP 597 has Python warn where the system's encoding is taken unsaid.
    warnings.filterwarnings("error", category=EncodingWarning, module="oplet")
    system, *sys.argv = sys.argv[1:]
    play(system)
    if sys.argv[0] == "oplet":
        from oplet_tools.cli.main import main

        main()
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
