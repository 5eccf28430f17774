"""A process that runs mutated models, one after the other, until it is told to stop or does not survive one.

It writes the number of the model that it is about to run into a page that it shares with its parent, which notices when
that number stays the same for too long, or when the process is gone. What came of the models goes to standard output.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import struct
import sys
import warnings
from pathlib import Path

from fuzz.choices import SeededChoices
from fuzz.corpus import Seeds, load_seeds
from fuzz.mutate import mutated
from fuzz.run_model import Outcome, run_model

__all__ = ["MEMORY_LIMIT", "PROGRESS", "model_of", "outcome_of"]

#: The number of the model that is running.
PROGRESS = struct.Struct("<q")

#: More growth than this while one model runs is a finding.
MEMORY_LIMIT = 300 << 20

_ADDRESS_SPACE = 3 << 30


def model_of(seeds: Seeds, number: int) -> tuple[str, bytes]:
    """The seed's name and the model of a number: the seeds take turns."""
    name, seed = seeds[number % len(seeds)]
    return name, mutated(seed, name, number)


def outcome_of(seeds: Seeds, number: int) -> Outcome:
    """Make the model of a number and run it."""
    name, data = model_of(seeds, number)
    return run_model(data, SeededChoices(f"inputs of {name} {number}"))


class _Peak:
    """The most memory that the process had since the last call."""

    def __init__(self) -> None:
        self._clear = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._high = 0
        self.reset()

    def reset(self) -> None:
        os.write(self._clear, b"5")
        self._high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def growth(self) -> int:
        """Bytes by which the peak rose since the last call."""
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = now - self._high
        if grown > 8 << 10:
            self.reset()
        return max(grown, 0) << 10


def main() -> None:
    """argv: the page's file, the first number, the number to stop before, the step, the folder of further seeds."""
    page_path, first, stop, step, folder = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
    faulthandler.enable()
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seeds = load_seeds(Path(folder) if folder else None)
    with open(page_path, "r+b") as file:
        page = mmap.mmap(file.fileno(), PROGRESS.size)
    out = os.fdopen(os.dup(1), "w", buffering=1 << 16)
    os.dup2(2, 1)  # what a kernel prints must not mix with the answers
    peak = _Peak()
    for number in range(first, stop, step):
        PROGRESS.pack_into(page, 0, number)
        outcome = outcome_of(seeds, number)
        if (grown := peak.growth()) > MEMORY_LIMIT:
            outcome = Outcome("memory", outcome.stage, outcome.error, "", f"{grown >> 20} MiB; {outcome.message}")
        if outcome.kind in ("ok", "refused"):
            out.write(f"{outcome.kind} {outcome.stage} {outcome.error}\n")
        else:
            out.write(json.dumps([number, *outcome]) + "\n")
        out.flush()  # a model that kills the process must not take the answers before it along
    PROGRESS.pack_into(page, 0, -1)
    out.flush()


if __name__ == "__main__":
    main()
