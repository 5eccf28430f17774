"""python -m tests.complexity [--engine numpy|compiled] [--pairs N] [--only PATTERN] [--folder DIR] [--again CASE]"""

from __future__ import annotations

import argparse
import fnmatch
import pickle
import signal
import sys
from pathlib import Path

from tests.complexity.heaviest import keep
from tests.complexity.seeds import registered, seeds
from tests.complexity.sweep import Found, Sweep
from tests.complexity.watch import Watched, offence


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    """Search from the seeds, or run one saved case again."""
    parser = argparse.ArgumentParser(prog="python -m tests.complexity", description=__doc__)
    parser.add_argument("--engine", choices=["numpy", "compiled"], default="numpy")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of groups of numbers that are blown up, per seed")
    parser.add_argument("--brief", action="store_true", help="fewer sizes and values of each")
    parser.add_argument("--only", default="*", help="seeds whose names match")
    parser.add_argument("--part", default="0/1", help="every nth of the seeds: 0/2 and 1/2 are the halves")
    parser.add_argument("--salt", default="", help="other pairs")
    parser.add_argument("--folder", type=Path, help="where to keep the models that are found")
    parser.add_argument("--keep", type=Path, help="the file of the heaviest models of every seed, to be brought up to date")
    parser.add_argument("--again", type=Path, help="a .case of that folder, to be run again")
    arguments = parser.parse_args()
    every = seeds()
    if arguments.again:
        case = pickle.loads(arguments.again.read_bytes())
        with Watched(arguments.engine) as child:
            data = next(seed.data for seed in every if seed.name == case.seed)
            child.run(case._replace(knobs=()).request(data, None))
            answer = child.run(case.request(data, 2.0))
        print(Found(case, answer, offence(answer) or "as it should be").line(), answer)
        return 0
    signal.signal(signal.SIGTERM, _stop)
    part, parts = map(int, arguments.part.split("/"))
    chosen = [seed for seed in every if any(fnmatch.fnmatch(seed.name, pattern) for pattern in arguments.only.split(","))][
        part::parts
    ]
    sweep = Sweep(arguments.engine, arguments.pairs, arguments.brief, arguments.folder, lambda line: print(line, flush=True))
    try:
        sweep.run(chosen, arguments.salt)
    finally:
        if arguments.keep:
            keep(arguments.keep, sweep.heaviest)
    for op in sorted(registered()):
        counts = sweep.counts.get(op)
        if counts is not None or arguments.only == "*":
            print(f"{op}: {dict(counts or {})}")
    return bool(sweep.found)


if __name__ == "__main__":
    sys.exit(main())
