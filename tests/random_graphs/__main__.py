"""Run random graphs: python -m tests.random_graphs COUNT [--first N] [--seconds S] [--litert]; prints where answers differ, and how many did what."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.random_graphs.batches import child, compared
from tests.random_graphs.states import Difference

#: Graphs of a batch, and batches at a time.
BATCH, PROCESSES = 500, 2


def main() -> int:
    """Run graphs in batches; 1 if one answers otherwise in a state, a process or LiteRT."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]))
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds; fewer graphs are run then")
    parser.add_argument("--litert", action="store_true", help="compare with LiteRT too")
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    seen: Counter[str] = Counter()
    bad = 0

    def run(first: int) -> tuple[list[Difference], Counter[str]]:
        count = min(BATCH, given.first + given.count - first)
        return compared(first, count, given.litert) if time.monotonic() < ends else ([], Counter())

    with ThreadPoolExecutor(PROCESSES) as pool:
        for found, counts in pool.map(run, range(given.first, given.first + given.count, BATCH)):
            seen += counts
            bad += len(found)
            sys.stdout.write("".join(f"{each}\n" for each in found))
            sys.stdout.flush()
    sys.stdout.write("".join(f"{what}: {count}\n" for what, count in sorted(seen.items())) + f"{bad} differences\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
