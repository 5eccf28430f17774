"""Run random graphs: python -m tests.random_graphs COUNT [--first N] [--seconds S]; prints where answers differ, and how many graphs did what."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.random_graphs.states import differences


def main() -> int:
    """Run the graphs of these numbers; 1 if one answers otherwise in a state."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds; fewer graphs are run then")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    ran = bad = 0
    for seed in range(given.first, given.first + given.count):
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as folder:
            found = differences(seed, Path(folder))
        ran += 1
        bad += bool(found)
        for each in found:
            sys.stdout.write(f"{each.seed} {each.state}, step {each.step}, {each.what}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{ran} graphs, {bad} with differences\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
