"""python -m fuzz: run mutated models by the million, show one again, or write the seeds to files.

python -m fuzz run --count 1000000 --state STATE.json [--seeds FOLDER] [--first N] [--delegate NAME]
python -m fuzz show NUMBER [--seeds FOLDER] [--delegate NAME] [--save FILE.tflite]
python -m fuzz report STATE.json ...
python -m fuzz seeds FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from fuzz.campaign import Campaign
from fuzz.choices import SeededChoices
from fuzz.corpus import load_seeds
from fuzz.run_model import DELEGATE, run_model
from fuzz.worker import model_of
from oplet.model.whole_file import write_whole


def main(arguments: list[str] | None = None) -> int:
    """Run a command; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run models and count what came of them")
    run.add_argument("--count", type=int, default=1_000_000)
    run.add_argument("--first", type=int, default=0, help="the first number")
    run.add_argument("--state", type=Path, help="where counts are kept; a campaign that was stopped goes on from there")
    show = commands.add_parser("show", help="run one model in this process")
    show.add_argument("number", type=int)
    show.add_argument("--save", type=Path, help="write the model to this file")
    report = commands.add_parser("report", help="add up the counts of campaigns, as a table")
    report.add_argument("states", type=Path, nargs="+")
    seeds = commands.add_parser("seeds", help="write the seed models")
    seeds.add_argument("folder", type=Path)
    for command in (run, show):
        command.add_argument("--seeds", type=Path, help="a folder of further seed models (.tflite, also inside .zip)")
        command.add_argument("--delegate", help="run the models with this delegate")
    chosen = parser.parse_args(arguments)
    if getattr(chosen, "delegate", None):
        os.environ[DELEGATE] = chosen.delegate
    if chosen.command == "run":
        return _run(chosen)
    if chosen.command == "show":
        return _show(chosen)
    if chosen.command == "report":
        print(report_of([json.loads(path.read_text()) for path in chosen.states]))
        return 0
    chosen.folder.mkdir(parents=True, exist_ok=True)
    for name, data in load_seeds():
        write_whole(chosen.folder / f"{name}.tflite", data)
    return 0


def _run(chosen: argparse.Namespace) -> int:
    folder = str(chosen.seeds.resolve()) if chosen.seeds else ""
    campaign = Campaign(chosen.count, chosen.first, folder, chosen.state)
    try:
        campaign.run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    total = sum(campaign.counts.values())
    print(f"{total} models in {campaign.seconds:.0f} s")
    for key, count in campaign.counts.most_common():
        print(f"{count:9}  {key}")
    for key, found in campaign.findings.items():
        print(f"{found['count']:9}  {key}: {json.dumps(found['examples'][0])}")
    return 0 if campaign.clean else 1


def report_of(states: list[dict[str, Any]]) -> str:
    """The counts of campaigns together, as a table in Markdown."""
    counts: Counter[str] = Counter()
    for state in states:
        counts.update(state["counts"])
    total, seconds = sum(counts.values()), sum(state["seconds"] for state in states)
    found = {words: sum(n for key, n in counts.items() if key.split()[0] == kind) for kind, words in _FINDINGS.items()}
    lines = [f"{total:,} models in {seconds / 60:.0f} minutes of one core.", "", "| what | where | models |", "|---|---|---:|"]
    lines.append(f"| ran to the end | | {counts['ok read']:,} |")
    for key, count in counts.most_common():
        kind, stage, *error = key.split()
        if kind == "refused":
            lines.append(f"| refused with `{error[0]}` | {stage} | {count:,} |")
    return "\n".join([*lines, *(f"| {words} | | {count:,} |" for words, count in found.items())])


_FINDINGS = {
    "crash": "**the process died**",
    "hang": "**took longer than 10 s**",
    "escaped": "**an exception outside `oplet.errors`**",
    "memory": "**grew by more than 300 MB**",
    "accident": "refused by accident: numpy stumbled where a check should have been",
}


def _show(chosen: argparse.Namespace) -> int:
    warnings.simplefilter("ignore")
    name, data = model_of(load_seeds(chosen.seeds), chosen.number)
    if chosen.save:
        write_whole(chosen.save, data)
    print(f"a mutation of {name}, {len(data)} bytes")
    outcome = run_model(data, SeededChoices(f"inputs of {name} {chosen.number}"))
    print(outcome)
    return 0 if outcome.kind in ("ok", "refused") else 1


if __name__ == "__main__":
    sys.exit(main())
