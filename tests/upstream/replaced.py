"""A plugin for pytest in a process that runs others' tests: they get oplet's interpreter where they import LiteRT's.

usage: python -m pytest -p tests.upstream.replaced ...
"""

from __future__ import annotations

from tests.programs.stand_in import install, switch

MODULE = "ai_edge_litert.interpreter"

install(MODULE)
switch(MODULE, "numpy")
