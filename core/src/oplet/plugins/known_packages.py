"""Packages that are known to provide an operator, for advice in messages."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from oplet.ops.composite import Composite
from oplet.ops.serving.entry import Op

__all__ = [
    "BUILTIN_OPS",
    "DELEGATES",
    "NAMES_ARE_OURS",
    "NATIVE_OPS",
    "PACKAGES",
    "family_distribution",
    "known_distribution",
    "known_ops",
    "package_origin",
]

#: The package of the built-in operators.
BUILTIN_OPS: Final = "oplet-builtin-ops"

#: The package that opens shared libraries of operators.
NATIVE_OPS: Final = "oplet-native-ops"

#: Whether the names of this project's packages belong to it on PyPI. Until they do, no message advises to ask an index for one of them, where it
#: may be anybody's; RELEASING.md says who changes this, and when.
NAMES_ARE_OURS = False

#: All packages of this project.
PACKAGES: Final = frozenset(
    (
        "oplet",
        "oplet-atan-op",
        "oplet-beam",
        "oplet-build",
        "oplet-builtin-ops",
        "oplet-compiled-model",
        "oplet-compiled-ops",
        "oplet-coral-ops",
        "oplet-example-delegate",
        "oplet-flex-delegate",
        "oplet-flex-ops",
        "oplet-larq-ops",
        "oplet-litert-delegate",
        "oplet-litert-shim",
        "oplet-lm",
        "oplet-mediapipe-ops",
        "oplet-model-explorer",
        "oplet-native-ops",
        "oplet-openvino-delegate",
        "oplet-predictor",
        "oplet-ray",
        "oplet-serve",
        "oplet-signal-ops",
        "oplet-testing",
        "oplet-text-ops",
        "oplet-tools",
        "oplet-xla-delegate",
    )
)

#: Delegates of this project by name, and their packages.
DELEGATES: Final = {
    "example": "oplet-example-delegate",
    "flex": "oplet-flex-delegate",
    "litert": "oplet-litert-delegate",
    "openvino": "oplet-openvino-delegate",
    "xla": "oplet-xla-delegate",
}

#: Families of custom ops: what the names begin with, and the package that serves all of them.
_FAMILIES: Final = {"Flex": "oplet-flex-delegate", "TFText>": "oplet-text-ops"}


@lru_cache(maxsize=1)
def known_ops() -> dict[str | Composite, str]:
    """Map each known custom op and composite to the package of this release that serves it, from `known_ops.txt` (written by
    `python -m scripts.known_ops`).

    Names must match exactly: another `SignalX` is not from this project, and advice must not name packages by a guess, which may belong
    to anybody.
    """
    from pkgutil import get_data  # imported late: running a model does not need it

    found: dict[str | Composite, str] = {}
    for line in (get_data(__name__, "known_ops.txt") or b"").decode().splitlines():
        kind, name, package = line.split()
        found[Composite(name) if kind == "composite" else name] = package
    return found


def known_distribution(op: Op) -> str:
    """Return the pip package that is known to provide `op`; "" if none is."""
    if isinstance(op, (str, Composite)):
        return known_ops().get(op) or (family_distribution(op) if isinstance(op, str) else "")
    return BUILTIN_OPS


def family_distribution(op: str) -> str:
    """Return the pip package that is known to provide all custom ops with this one's prefix (such as "Flex"); "" if none is."""
    return next((package for prefix, package in _FAMILIES.items() if op.startswith(prefix)), "")


def package_origin(package: str) -> str:
    """Describe where a package of this project comes from, in words for messages."""
    folder = package.removeprefix("oplet-").replace("-", "_")
    place = "on PyPI or " if NAMES_ARE_OURS else ""
    return f"of the oplet project, {place}plugins/{folder} in its repository"
