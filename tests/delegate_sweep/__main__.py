"""python -m tests.delegate_sweep DELEGATE[:key=value,...] [--mixed N] [--first N] [--ops A,B] [--every-way] [--findings FILE]: the sweep at length."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from tests.delegate_sweep.cases import OPERATORS, singles, some
from tests.delegate_sweep.drafts import Draft
from tests.delegate_sweep.worker import Job, run

_FINDINGS = ("died", "hung", "escaped", "failed", "differs", "grew", "oplet escaped")
_BATCH = 1500


def _models(op: str, options: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    def drafts() -> Iterator[Draft]:
        if not options.mixed_only:
            yield from islice(singles(op), options.first % options.share, None, options.share)
        yield from some(op, options.mixed, options.first)

    for draft in drafts():
        try:
            yield draft.name, draft.to_bytes()
        except Exception:  # no model comes of it
            continue


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.delegate_sweep")
    parser.add_argument("delegate")
    parser.add_argument("--mixed", type=int, default=0, help="mixed drafts of each operator")
    parser.add_argument("--share", type=int, default=1, help="one in so many of the single edits")
    parser.add_argument("--mixed-only", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ops", default="")
    parser.add_argument("--every-way", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--findings", type=Path, default=Path("findings.jsonl"))
    options = parser.parse_args()
    name, _, told = options.delegate.partition(":")
    settings = dict(item.split("=") for item in told.split(",") if item)
    counts: Counter[str] = Counter()

    def batches() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
        for op in options.ops.split(",") if options.ops else OPERATORS:
            models = list(_models(op, options))
            for first in range(0, len(models), _BATCH):
                yield op, models[first : first + _BATCH]

    def work(batch: tuple[str, list[tuple[str, bytes]]]) -> None:
        op, models = batch
        verdicts = run(Job(models, name, settings, options.every_way))
        counts.update(verdict.kind for verdict in verdicts)
        print(op, len(models), dict(counts), flush=True)
        with options.findings.open("a") as file:
            for (label, _), verdict in zip(models, verdicts):
                if verdict.kind in _FINDINGS:
                    file.write(json.dumps([op, label, *verdict]) + "\n")

    with ThreadPoolExecutor(options.workers) as pool:
        for _ in pool.map(work, batches()):
            pass
    print(sum(counts.values()), dict(counts))


if __name__ == "__main__":
    main()
