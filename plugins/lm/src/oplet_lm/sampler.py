"""Choosing tokens by their logits, and the sequences of tokens that end an answer."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from oplet.errors import ModelError
from oplet.kernels.arrays import Array
from oplet_lm.metadata import Sampling

__all__ = ["Sampler", "Stops"]

#: The most stop sequences, and the most tokens of one.
_MOST, _LONGEST = 4096, 64


class Sampler:
    """Callable that samples a token id from logits: top-k, temperature, then top-p; ids that are `suppressed` are never chosen."""

    def __init__(self, sampling: Sampling, suppressed: tuple[int, ...] = ()) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(None if sampling.seed is None else abs(sampling.seed))
        self._suppressed = np.array([token for token in suppressed if token >= 0], np.intp)
        self._greedy = sampling.top_k == 1 or sampling.top_p <= 0 or sampling.temperature <= 0

    def __call__(self, logits: Array) -> int:
        """Return the id of the next token; of equally likely ones the first if the choice is not random."""
        if self._suppressed.size:
            logits = logits.copy()
            logits[self._suppressed[self._suppressed < logits.size]] = -np.inf
        if self._greedy:
            return int(logits.argmax())
        values = logits.astype(np.float64)
        count = min(self._sampling.top_k, values.size) if self._sampling.top_k else values.size
        kept = np.argpartition(-values, count - 1)[:count]
        kept = kept[np.lexsort((kept, -values[kept]))]
        shares = np.exp((values[kept] - values[kept[0]]) / self._sampling.temperature)
        shares /= shares.sum()
        shares = shares[: int(np.searchsorted(shares.cumsum(), min(self._sampling.top_p, 1.0))) + 1]
        if not np.isfinite(shares).all():  # logits that are no numbers
            return int(kept[0])
        return int(self._random.choice(kept[: len(shares)], p=shares / shares.sum()))


class Stops:
    """Finds stop sequences, tuples of token ids that end an answer, at the end of generated tokens."""

    def __init__(self, sequences: Iterable[tuple[int, ...]]) -> None:
        self._sequences = {each for each in sequences if 0 < len(each) <= _LONGEST}
        if len(self._sequences) > _MOST:
            raise ModelError(f"The bundle has {len(self._sequences)} stop sequences; {_MOST} are taken at most.")
        self._begun = {each[:count] for each in self._sequences for count in range(1, len(each))}

    def ending(self, tokens: list[int]) -> int:
        """Return the length of the shortest stop sequence that the tokens end with; 0 if there is none."""
        return next((n for n in range(1, len(tokens) + 1) if tuple(tokens[-n:]) in self._sequences), 0)

    def begun(self, tokens: list[int]) -> int:
        """Return how many tokens at the end, at most, may be the beginning of a stop sequence; 0 if none."""
        return next((n for n in range(len(tokens), 0, -1) if tuple(tokens[-n:]) in self._begun), 0)
