"""The worker process of a campaign: it runs mutated models one after the other, until it is done or a model kills it.

It writes the number of the next model into a memory page shared with its parent, which detects a hang by a number that does not change, and
a crash by the end of the process. Outcomes are written to standard output.
"""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import resource
import struct
import sys
import tempfile
from typing import Any

from fuzz.choices import SeededChoices
from fuzz.corpus import Seeds, load_seeds
from fuzz.differential import compare_with_numpy
from fuzz.engines import LIMITS, engine_of, limits_of, opened
from fuzz.exercise import Run, make_folder
from fuzz.mutate import mutated
from fuzz.run_model import Outcome, run_model, watch_warnings

__all__ = ["PROGRESS", "main", "model_of", "outcome_of"]

#: The number of the model that is running.
PROGRESS = struct.Struct("<q")

#: Most growth of memory while one model runs, in bytes. Under the default limits the bytes of its tensors are added.
_GROWTH = {"documented": 200 << 20, "default": 300 << 20}

#: Factor of the tensors' bytes: the arena, a kernel's scratch memory, and copies of outputs.
_COPIES = 3


def model_of(seeds: Seeds, number: int) -> tuple[str, bytes]:
    """The seed's name and the mutated model of a number; seeds alternate, each time with another second seed."""
    count = len(seeds)
    name, seed = seeds[number % count]
    _, other = seeds[(number * 7919 + number // count) % count]
    return name, mutated(seed, name, number, other)


def outcome_of(seeds: Seeds, number: int, engine: str = "numpy", folder: str = "", run: Run | None = None) -> Outcome:
    """Make the model of a number, run it, and compare the outputs with those of numpy's kernels.

    Args:
        engine: the engine's name.
        folder: the folder of external files.
        run: the record of the run.
    """
    name, data = model_of(seeds, number)
    limits = LIMITS[limits_of(number)]

    def once(engine: str, run: Run) -> Outcome:
        choices = SeededChoices(f"inputs of {name} {number}")
        return run_model(data, choices, engine=opened(engine), limits=limits, folder=folder, run=run)

    def again(engine: str) -> tuple[Outcome, Run]:
        other = Run()
        return once(engine, other), other

    run = run or Run()
    outcome = once(engine, run)
    return outcome if engine == "numpy" else compare_with_numpy(outcome, run, engine, again)


class _Peak:
    """Peak memory of the process since the last reset."""

    def __init__(self) -> None:
        self._clear = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._high = 0
        self.reset()

    def reset(self) -> None:
        os.write(self._clear, b"5")
        self._high = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def growth(self) -> int:
        """Growth of the peak since the last reset, in bytes."""
        now = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        grown = now - self._high
        if grown > 8 << 10:
            self.reset()
        return max(grown, 0) << 10


def _limit_memory(more: int) -> None:
    """Limit the address space to what is used now plus `more` bytes."""
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, taken + more))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Run the job in argv, as JSON: page, engine, turns, first, stop, places of further seeds."""
    told: dict[str, Any] = json.loads(sys.argv[1])
    faulthandler.enable()
    engine, turns = told["engine"], told["turns"]
    seeds = load_seeds(told["places"])
    with open(told["page"], "r+b") as file:
        page = mmap.mmap(file.fileno(), PROGRESS.size)
    out = os.fdopen(os.dup(1), "w", buffering=1 << 16)
    os.dup2(2, 1)  # output of kernels must not mix with the outcomes
    watch_warnings()
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        # Warm-up, so that one-time imports are not counted as the first model's.
        for _, seed in seeds[:: len(seeds) // 20]:
            run_model(seed, SeededChoices("warm"), resize=False, engine=opened(engine))
        _limit_memory(opened(engine).address_space)
        peak = _Peak()

        def measured(number: int) -> Outcome:
            run, limits = Run(), limits_of(number)
            outcome = outcome_of(seeds, number, engine, folder, run)
            grown = peak.growth()
            if grown <= _GROWTH[limits] or (limits == "default" and grown <= _GROWTH[limits] + _COPIES * run.asked_for()):
                return outcome
            return Outcome("memory", outcome.stage, outcome.error, "", f"{grown >> 20} MiB; {outcome.message}")

        for number in range(told["first"], told["stop"]):
            if engine_of(number, turns) != engine:
                continue
            PROGRESS.pack_into(page, 0, number)
            limits = limits_of(number)
            outcome = measured(number)
            if outcome.kind in ("memory", "slow"):
                outcome = measured(number)  # again, as growth may come from one-time imports or compilation
            if outcome.kind in ("ok", "refused"):
                out.write(f"{limits} {outcome.kind} {outcome.stage} {outcome.error}\n")
            else:
                out.write(json.dumps([number, limits, *outcome]) + "\n")
            out.flush()  # outcomes must not be lost if the next model kills the process
    PROGRESS.pack_into(page, 0, -1)
    out.flush()


if __name__ == "__main__":
    main()
