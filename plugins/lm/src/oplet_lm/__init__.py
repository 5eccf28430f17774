"""Language models for oplet: `.litertlm` and `.task` bundles, which `LanguageModel` runs and `oplet chat` talks to."""

from __future__ import annotations

from oplet_lm.bundles.bundle import Bundle
from oplet_lm.bundles.metadata import Sampling
from oplet_lm.language_model import Answer, LanguageModel

__all__ = ["Answer", "Bundle", "LanguageModel", "Sampling"]
