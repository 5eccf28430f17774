"""Stored plans: what was prepared and bound for a model, on disk, for the next process that opens it. `stored_plan` makes facts and memory of
a plan and a plan of these, `dependencies` tells what it depends on besides the model, and `plan_files` keeps the files.
"""

from __future__ import annotations

import os

__all__ = ["STORE_VARIABLE", "stores_plans"]

#: The environment variable that switches stored plans off, with "off".
STORE_VARIABLE = "OPLET_PLANS"


def stores_plans() -> bool:
    """Return whether plans are stored on disk and read from there: unless the environment variable OPLET_PLANS is "off"."""
    return os.environ.get(STORE_VARIABLE, "").lower() != "off"
