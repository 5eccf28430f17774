"""Time from process start to a model's answer: a program of `oplet build --pyz`, the whole of oplet, and ai-edge-litert.

    python benchmarks/starting.py MODEL [--rounds N] [--markdown FILE]

MODEL is a .tflite file. Every runner is a fresh process that reads the same inputs from a file and writes the outputs; the
runners alternate, so that changes in the machine's speed affect all of them alike: the ratios are reliable, the milliseconds less so.
The runner "numpy" only imports numpy, which is the lower bound for programs that use it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from oplet import Interpreter
from oplet.model.files.atomic_write import write_atomically
from oplet_build.building.build_program import build_program
from oplet_tools.processes import run_python

RUN = """
import sys
import numpy
{imported}
interpreter = Interpreter(model_path=sys.argv[1], num_threads=1)
interpreter.allocate_tensors()
values = numpy.load(sys.argv[2])
for detail in interpreter.get_input_details():
    interpreter.set_tensor(detail["index"], values[detail["name"]])
interpreter.invoke()
numpy.savez(sys.argv[3], *(interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()))
"""
OPLET = RUN.format(imported="from oplet import Interpreter")
LITERT = RUN.format(imported="from ai_edge_litert.interpreter import Interpreter")
#: Rounds that do not count: the first compiles modules and fills the file cache, the second stores the model's plan.
_FIRST = 2


def write_inputs(model: Path, target: Path) -> None:
    """Write a value for each input, of small numbers that every type can hold."""
    details = Interpreter(model_path=model).get_input_details()
    random = np.random.default_rng(0)
    np.savez(target, **{d["name"]: random.integers(0, 2, d["shape"]).astype(d["dtype"]) for d in details})


def commands(model: Path, folder: Path) -> dict[str, list[str]]:
    """The runners, as arguments of Python; the last argument is the path of the outputs."""
    program = build_program([model], "starting_app", folder, pyz=True, with_models=True)
    print(f"{program.path.name}: {program.path.stat().st_size} bytes", file=sys.stderr)
    inputs = folder / "inputs.npz"
    write_inputs(model, inputs)
    given = [str(model.resolve()), str(inputs)]
    return {
        "numpy": ["-c", "import numpy, sys; numpy.savez(sys.argv[1])"],
        "pyz": [str(program.path), "--raw", "--input", str(inputs), "--output"],
        "oplet": ["-c", OPLET, *given],
        "litert": ["-c", LITERT, *given],
    }


def outputs(path: Path) -> list[np.ndarray]:
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def measure(runners: dict[str, list[str]], folder: Path, rounds: int) -> dict[str, list[float]]:
    """The seconds of every round, by runner."""
    environment = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    times: dict[str, list[float]] = {name: [] for name in runners}
    for number in range(rounds + _FIRST):
        for name, command in runners.items():
            target = folder / f"{name}.npz"
            start = time.perf_counter()
            run_python([*command, str(target)], environment=environment, check=True, capture_output=True)
            if number >= _FIRST:
                times[name].append(time.perf_counter() - start)
    expected = outputs(folder / "oplet.npz")
    for name in ("pyz", "litert"):
        for ours, theirs in zip(expected, outputs(folder / f"{name}.npz"), strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-6, err_msg=name)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        times = measure(commands(arguments.model, folder), folder, arguments.rounds)
    lines = ["| runner | start to answer, ms | / litert, paired | / oplet, paired |", "|---|---|---|---|"]
    for runner, seconds in times.items():
        ratios = [statistics.median(own / other for own, other in zip(seconds, times[rival])) for rival in ("litert", "oplet")]
        lines.append(f"| {runner} | {statistics.median(seconds) * 1e3:.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    print("\n".join(lines))
    if arguments.markdown:
        write_atomically(arguments.markdown, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
