"""Atheris target for whole models: the input bytes decide which seed is mutated and how, and the values of inputs.

python -m fuzz.fuzz_model [CORPUS] [options of libFuzzer]
"""

from __future__ import annotations

import sys
import warnings

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["oplet", "oplet_builtin_ops"]):
    from fuzz.choices import FuzzedChoices
    from fuzz.corpus import load_seeds
    from fuzz.mutate import mutate
    from fuzz.run_model import run_model

SEEDS = load_seeds()


class Found(Exception):
    """A model caused a failure."""


def run(data: bytes) -> None:
    """Run one input of the fuzzing engine."""
    choices = FuzzedChoices(atheris.FuzzedDataProvider(data))
    name, seed = choices.choice(SEEDS)
    model = mutate(seed, choices)
    outcome = run_model(model, choices)
    if outcome.kind == "escaped":
        raise Found(f"a mutation of {name}: {outcome}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()
