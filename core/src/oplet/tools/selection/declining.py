"""Whether a plugin's kernels may decline nodes, as its source says: then whoever is next has to be there too."""

from __future__ import annotations

import functools
import re

from oplet.ops.resolver import Claim
from oplet.tools.building.error import BuildError
from oplet.tools.building.packages import find_package

__all__ = ["may_decline"]

#: Who mentions one of these leaves nodes to the next provider.
_DECLINES = re.compile(r"\b(?:decline|Declined|NodeLimits|TypeLimit|limited)\b")


def may_decline(claim: Claim) -> bool:
    """Whether a provider may leave nodes to the next: its package mentions what does that, or cannot be read."""
    return claim.limit is not None or _package_declines(claim.provenance.module.partition(".")[0])


@functools.cache
def _package_declines(top: str) -> bool:
    try:
        package = find_package(top)
    except (BuildError, ImportError, ValueError):
        return True
    return _DECLINES.search(package.texts) is not None
