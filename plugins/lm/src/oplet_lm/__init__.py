"""Language models for oplet: `.litertlm` and `.task` bundles, which `LanguageModel` runs and `oplet chat` talks to."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oplet_lm.bundles.bundle import Bundle
    from oplet_lm.bundles.metadata import Sampling
    from oplet_lm.language_model import Answer, LanguageModel

__all__ = ["Answer", "Bundle", "LanguageModel", "Sampling"]

_HOMES = {
    "Bundle": "bundles.bundle",
    "Sampling": "bundles.metadata",
    "Answer": "language_model",
    "LanguageModel": "language_model",
}


def __getattr__(name: str) -> Any:
    """Return a public name, imported lazily: every program that runs a model imports this package, but few talk."""
    if name not in _HOMES:
        raise AttributeError(f"module 'oplet_lm' has no attribute {name!r}")
    return getattr(importlib.import_module(f"oplet_lm.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
