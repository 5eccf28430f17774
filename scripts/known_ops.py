"""Generator of the list of custom ops and composites that this release's packages serve, by which messages advise what to install.

usage: python -m scripts.known_ops    writes `core/src/oplet/plugins/known_ops.txt`; all packages must be installed
"""

from __future__ import annotations

import importlib
import re

from oplet import Composite, MutableOpResolver
from scripts.requirements import ROOT

__all__ = ["LIST", "text"]

LIST = ROOT / "core/src/oplet/plugins/known_ops.txt"
#: Its kernels take the place of others, so it is never what a model lacks.
_NOT_ADVISED = ("compiled_ops",)
#: Registered only to be refused with a sentence: no package helps.
_REFUSED = ("Placeholder",)


def text() -> str:
    """The list: a line for each op, with what it is, its name and its package."""
    lines = []
    for project in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        package = re.search(r'^name = "(.+)"$', project.read_text("utf-8"), re.MULTILINE)
        if (
            package is None
            or project.parent.name in _NOT_ADVISED
            or "[project.entry-points.oplet]" not in project.read_text("utf-8")
        ):
            continue
        module = importlib.import_module(package[1].replace("-", "_"))
        if not hasattr(module, "register_ops"):
            continue
        resolver = MutableOpResolver()
        module.register_ops(resolver=resolver)
        for op in dict.fromkeys(entry.op for entry in resolver.entries()):
            if isinstance(op, (str, Composite)) and op not in _REFUSED:
                lines.append(f"{'composite' if isinstance(op, Composite) else 'custom'} {op} {package[1]}")
    return "\n".join([*sorted(lines), ""])


if __name__ == "__main__":
    LIST.write_text(text(), "utf-8")
