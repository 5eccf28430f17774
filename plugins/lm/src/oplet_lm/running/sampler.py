"""Choosing the next token by its logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet_lm.bundles.metadata import Sampling

__all__ = ["Sampler"]


class Sampler:
    """Callable that samples a token id from logits: top-k, temperature, then top-p; ids that are `suppressed` are never chosen."""

    def __init__(self, sampling: Sampling, suppressed: tuple[int, ...] = ()) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)
        self._suppressed = np.array([token for token in suppressed if token >= 0], np.intp)
        self._greedy = sampling.top_k == 1 or sampling.top_p <= 0 or sampling.temperature <= 0

    def __call__(self, logits: NDArray[Any]) -> int:
        """Return the id of the next token; of equally likely ones the first if the choice is not random."""
        if self._suppressed.size:
            logits = logits.copy()
            logits[self._suppressed[self._suppressed < logits.size]] = -np.inf
        if self._greedy:
            return int(logits.argmax())
        values = logits.astype(np.float64)
        count = min(self._sampling.top_k or values.size, values.size)
        kept = np.argpartition(-values, count - 1)[:count]
        kept = kept[np.lexsort((kept, -values[kept]))]
        shares = np.exp((values[kept] - values[kept[0]]) / self._sampling.temperature)
        shares /= shares.sum()
        shares = shares[: int(np.searchsorted(shares.cumsum(), min(self._sampling.top_p, 1.0))) + 1]
        if not np.isfinite(shares).all():  # logits that are no numbers
            return int(kept[0])
        return int(self._random.choice(kept[: len(shares)], p=shares / shares.sum()))
