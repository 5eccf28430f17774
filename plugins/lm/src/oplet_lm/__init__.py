"""Language models for oplet: `.litertlm` and `.task` bundles, which `LanguageModel` runs and `oplet chat` talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oplet_lm.language_model import Answer, Bundle, LanguageModel, Sampling

__all__ = ["Answer", "Bundle", "LanguageModel", "Sampling"]


def __getattr__(name: str) -> Any:
    """Return a public name, imported lazily: every program that runs a model imports this package, but few talk."""
    if name not in __all__:
        raise AttributeError(f"module 'oplet_lm' has no attribute {name!r}")
    from oplet_lm import language_model

    return getattr(language_model, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
