"""The command line of the fuzzer: run mutated models by the million, run one again, add up reports, or write the seeds to files.

python -m fuzz run --count 1000000 --state STATE.json [--seeds PLACE ...] [--first N] [--engines numpy:3,compiled:2,litert:2,openvino:1]
python -m fuzz show NUMBER [--state STATE.json | --seeds PLACE ... --engines ...] [--engine NAME] [--save FILE.tflite]
python -m fuzz report STATE.json ...
python -m fuzz seeds FOLDER [--everywhere]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import zipfile
from pathlib import Path

from fuzz.campaign import Campaign
from fuzz.corpus import everywhere, load_seeds
from fuzz.engines import TURNS, engine_of, limits_of, turns_of
from fuzz.exercise import make_folder
from fuzz.report import report_of
from fuzz.run_model import watch_warnings
from fuzz.worker import model_of, outcome_of
from oplet.model.files.atomic_write import write_atomically


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run models and count the outcomes")
    run.add_argument("--count", type=int, default=1_000_000)
    run.add_argument("--first", type=int, default=0, help="the first number")
    run.add_argument("--state", type=Path, help="where counts are kept; a campaign that was stopped goes on from there")
    show = commands.add_parser("show", help="run one model in this process")
    show.add_argument("number", type=int)
    show.add_argument("--state", type=Path, help="of a campaign: its seeds and engines")
    show.add_argument("--engine", help="another engine than the one whose turn it is")
    show.add_argument("--save", type=Path, help="write the model to this file")
    report = commands.add_parser("report", help="add up the counts of campaigns, as a table")
    report.add_argument("states", type=Path, nargs="+")
    seeds = commands.add_parser("seeds", help="write the seed models")
    seeds.add_argument("folder", type=Path)
    seeds.add_argument(
        "--everywhere", action="store_true", help="into an archive, those of tests/everywhere, in place of the usual"
    )
    for command in (run, show):
        command.add_argument(
            "--seeds",
            type=Path,
            nargs="+",
            default=[],
            help="further seed models: folders or archives (.tflite, also inside .zip)",
        )
        command.add_argument("--engines", default=TURNS, help="which engines take turns, and how often each has its turn")
    chosen = parser.parse_args(arguments)
    if chosen.command == "run":
        return _run(chosen)
    if chosen.command == "show":
        return _show(chosen)
    if chosen.command == "report":
        print(report_of([json.loads(path.read_text()) for path in chosen.states]))
        return 0
    chosen.folder.mkdir(parents=True, exist_ok=True)
    if chosen.everywhere:
        with zipfile.ZipFile(chosen.folder / "everywhere.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for number, (name, data) in enumerate(everywhere()):
                archive.writestr(zipfile.ZipInfo(f"{number} {name.replace('/', ' ')}.tflite"), data, zipfile.ZIP_DEFLATED)
        return 0
    for name, data in load_seeds():
        write_atomically(chosen.folder / f"{name}.tflite", data)
    return 0


def _run(chosen: argparse.Namespace) -> int:
    campaign = Campaign(chosen.count, chosen.first, [str(place) for place in chosen.seeds], chosen.state, chosen.engines)
    try:
        campaign.run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    print(report_of([campaign.content()]))
    return 0 if campaign.clean else 1


def _show(chosen: argparse.Namespace) -> int:
    places, turns = chosen.seeds, turns_of(chosen.engines)
    if chosen.state is not None:
        saved = json.loads(chosen.state.read_text())
        places, turns = saved["places"], saved["turns"]
    seeds = load_seeds(places)
    name, data = model_of(seeds, chosen.number)
    if chosen.save:
        write_atomically(chosen.save, data)
    engine = chosen.engine or engine_of(chosen.number, turns)
    print(f"a mutation of {name}, {len(data)} bytes; {engine}, {limits_of(chosen.number)} limits", flush=True)
    watch_warnings()
    with tempfile.TemporaryDirectory() as folder:
        make_folder(folder)
        outcome = outcome_of(seeds, chosen.number, engine, folder)
    print(outcome)
    return 0 if outcome.kind in ("ok", "refused") else 1


if __name__ == "__main__":
    sys.exit(main())
