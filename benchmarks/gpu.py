"""Measure the delegate `xla` on a device, against the CPU's best and torch.compile, and check the device's answers.

    python -m benchmarks.gpu [MODEL ...] [--device gpu] [--batches 1 256] [--recorded FOLDER] [--torch NAME=MODULE:FUNCTION]
                             [--seconds 10] [--out gpu.md]

MODEL is a .tflite file, or ZIP:CASE for a model of recorded cases. Without any, a MediaPipe net and an int8 MobileNet are taken from the
recorded cases. A model whose nodes hold its batch size in constants is rewritten for any. `--torch mobilenet_v2=torchvision.models:mobilenet_v2` names a function that makes the same network, for the model whose name
begins so; it gets the images as NCHW. `--recorded` runs all recorded cases of a folder (with its grader, run.py) on the device first.
Each row says the medians of calls that took turns: with the copies of inputs and outputs (`whole`), and of values that stay on the device (`there`).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import random_value

_SHARED = Path(__file__).resolve().parents[2] / "shared" / "conformance"
_MODELS = (
    f"{_SHARED}/real/mediapipe.zip:mp_face_landmark",
    f"{_SHARED}/real/tflm_models.zip:tflm_mobilenet_v2_quantized_1x3x224x224",
)
#: Seconds after which a recorded case is taken to hang; it compiles.
_SECONDS_OF_A_CASE = 120

Call = Callable[[], Any]


def content_of(text: str) -> tuple[str, bytes]:
    """The name and bytes of a model, of a file or of a recorded case."""
    path, _, case = text.partition(".zip:")
    if not case:
        return Path(text).stem, Path(text).read_bytes()
    with zipfile.ZipFile(f"{path}.zip") as file:
        return case, file.read(f"{case}/model.tflite")


def for_any_batch(content: bytes) -> bytes:
    """The model with its batch size left free, where nodes hold it in constants; as it is where that cannot be."""
    from oplet import Model
    from oplet.errors import OpletError
    from oplet_tools.rewriting.rewrite import rewrite

    try:
        return bytes(rewrite(Model.from_bytes(content), batch=-1)[0].to_bytes())
    except OpletError as error:
        print(f"  {error}", file=sys.stderr)
        return content


def opened(content: bytes, batch: int, delegates: Any = None) -> Any:
    """An interpreter for so many rows."""
    from oplet import Interpreter

    interpreter = Interpreter(model_content=content, experimental_delegates=delegates, num_threads=os.cpu_count())
    for detail in interpreter.get_input_details():
        if batch != 1:
            interpreter.resize_tensor_input(detail["index"], [batch * int(detail["shape"][0]), *detail["shape"][1:].tolist()])
    interpreter.allocate_tensors()
    return interpreter


def whole_call(interpreter: Any, values: Sequence[Any]) -> Call:
    """A call with the copies of inputs and outputs."""
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def call() -> list[Any]:
        for index, value in zip(inputs, values):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [interpreter.get_tensor(index) for index in outputs]

    return call


def there_call(interpreter: Any, delegate: Any, values: Sequence[Any]) -> Call:
    """A call of inputs that are on the device, whose outputs stay there."""
    interpreter.allow_buffer_handle_output = True
    for detail, value in zip(interpreter.get_input_details(), values):
        interpreter.set_buffer_handle(detail["index"], delegate.device.put(value), delegate)
    invoke: Call = interpreter.invoke
    return invoke


def cpu_calls(content: bytes, batch: int, values: Sequence[Any]) -> dict[str, Call]:
    """The calls among which the CPU's best is."""
    from oplet import load_delegate
    from oplet.errors import OpletError

    found = {"oplet": whole_call(opened(content, batch), values)}
    for name in ("litert", "openvino"):
        try:
            found[name] = whole_call(opened(content, batch, [load_delegate(name)]), values)
        except OpletError as error:
            print(f"  {name} is left out: {error}", file=sys.stderr)
    return found


def torch_calls(where: str, device: str, values: Sequence[Any]) -> dict[str, Call]:
    """The same network in torch, compiled."""
    torch: Any = importlib.import_module("torch")
    module, _, function = where.partition(":")
    network = getattr(importlib.import_module(module), function)().eval().to("cuda" if device.startswith("gpu") else "cpu")
    place = next(network.parameters()).device
    torch.set_num_threads(os.cpu_count())  # benchmarks.common asks for one
    run = torch.compile(network)
    images = [np.ascontiguousarray(value.transpose(0, 3, 1, 2)) if value.ndim == 4 else value for value in values]
    there = [torch.from_numpy(image).to(place) for image in images]

    def wait() -> None:
        if place.type == "cuda":
            torch.cuda.synchronize()

    def whole() -> Any:
        with torch.inference_mode():
            return run(*(torch.from_numpy(image).to(place) for image in images)).cpu()

    def stays() -> None:
        with torch.inference_mode():
            run(*there)
        wait()

    return {"torch.compile whole": whole, "torch.compile there": stays}


def medians(calls: dict[str, Call], seconds: float) -> dict[str, float]:
    """The median milliseconds of calls that take turns for so many seconds, and five times at least."""
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(next(iter(times.values()))) < 5:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: 1000 * statistics.median(each) for name, each in times.items()}


def measured(name: str, content: bytes, batch: int, device: str, networks: dict[str, str], seconds: float) -> str:
    """A row of the table."""
    from oplet import load_delegate

    delegate = load_delegate("xla", {"device": device, "quantized": 1})
    start = time.perf_counter()
    interpreter = opened(content, batch, [delegate])
    compiling = time.perf_counter() - start
    report = interpreter.delegation_reports()[0]
    values = [random_value(detail) for detail in interpreter.get_input_details()]
    cpu = cpu_calls(content, batch, values)
    wanted, got = cpu["oplet"](), whole_call(interpreter, values)()
    error = max(float(np.abs(a.astype(float) - b.astype(float)).max()) for a, b in zip(got, wanted))
    best = medians(cpu, seconds)
    fastest = min(best, key=lambda each: best[each])
    calls = {"whole": whole_call(interpreter, values)}
    calls["there"] = there_call(opened(content, batch, [delegate]), delegate, values)
    calls |= next((torch_calls(where, device, values) for start_, where in networks.items() if name.startswith(start_)), {})
    ours = medians(calls, seconds)
    theirs = ", ".join(f"{each.removeprefix('torch.compile ')} {ours[each]:.2f}" for each in ours if each.startswith("torch"))
    claimed = f"{sum(map(len, report.partitions))} of {report.nodes} in {len(report.partitions)}"
    return (
        f"| {name} | {batch} | {claimed} | {compiling:.1f} | {best[fastest]:.2f} ({fastest}) | {ours['whole']:.2f} | {ours['there']:.2f} | "
        f"{best[fastest] / ours['whole']:.1f} | {theirs or '-'} | {error:.2g} |"
    )


def conformance(folder: Path, device: str) -> str:
    """Run all recorded cases of a folder on the device; return how many had which verdict."""
    if not (folder / "run.py").is_file():
        raise SystemExit(f"{folder} has no grader, run.py.")
    sys.path.insert(0, str(folder))  # the processes that run cases look for it by this name, too
    grader = importlib.import_module("run")
    pool, counts = grader.Pool(f"benchmarks.delegated:xla:device={device}"), Counter[str]()
    for path in sorted(folder.rglob("*.zip")):
        for name in [] if path.stem == "unrunnable" else cases_of(path):
            verdict, detail, _ = pool.run((str(path), name), _SECONDS_OF_A_CASE)
            counts[verdict] += 1
            if verdict not in ("exact", "near"):
                print(f"{verdict} {path.stem}/{name}: {detail}", flush=True)
    pool.stop()
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in grader.ORDER)


def cases_of(path: Path) -> list[str]:
    """The cases of an archive that were recorded with answers."""
    with zipfile.ZipFile(path) as file:
        described = {name: json.loads(file.read(name)) for name in file.namelist() if name.endswith("/case.json")}
    return sorted(name.removesuffix("/case.json") for name, case in described.items() if case["steps"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=list(_MODELS))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 256])
    parser.add_argument("--recorded", type=Path)
    parser.add_argument("--torch", action="append", default=[], metavar="NAME=MODULE:FUNCTION")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the calls of a row take turns")
    parser.add_argument("--out", type=Path, default=Path("gpu.md"))
    arguments = parser.parse_args()
    from oplet import load_delegate
    from oplet.errors import OpletError

    lines = [f"Device: {load_delegate('xla', {'device': arguments.device}).device}", ""]  # type: ignore[attr-defined]
    if arguments.recorded:
        lines += [f"Recorded cases: {conformance(arguments.recorded, arguments.device)}", ""]
    lines += [
        "| model | batch | nodes claimed | compile s | CPU's best ms | whole ms | there ms | CPU / whole | torch.compile ms | largest difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    networks = dict(text.split("=", 1) for text in arguments.torch)
    for text in arguments.models:
        name, content = content_of(text)
        if max(arguments.batches) > 1:
            content = for_any_batch(content)
        for batch in arguments.batches:
            try:
                row = measured(name, content, batch, arguments.device, networks, arguments.seconds)
            except OpletError as error:  # too large for the device; the others are measured all the same
                row = f"| {name} | {batch} | {error} |" + " - |" * 7
            lines.append(row)
            print(row, flush=True)
    arguments.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
