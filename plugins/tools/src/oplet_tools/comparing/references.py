"""References besides the baseline: outputs saved in a file, or LiteRT in a subprocess."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import write_atomically
from oplet.errors import TensorError
from oplet.toolkit import atomic_write, read_file
from oplet_tools.benchmarking.litert_runner import LITERT_RESOLVERS, LiteRTError
from oplet_tools.processes import TimeoutExpired, run_python
from oplet_tools.running.npy_files import Header, npz_names, read_npy, read_npz
from oplet_tools.running.values.quantization import quantization_of

__all__ = ["LITERT", "litert_answers", "saved_outputs"]

Array = NDArray[Any]
Details = Mapping[str, Any]
#: LiteRT's kernel sets: the references that are not files.
LITERT = tuple(LITERT_RESOLVERS)
#: Time limit of LiteRT for all runs, in seconds.
_SECONDS = 600
#: Largest saved output, in bytes.
_MOST_BYTES = 1 << 30

#: The subprocess's code: reads the job, runs LiteRT, writes an .npz of all runs.
_CHILD = """
import json, sys
import numpy as np
try:
    from ai_edge_litert import interpreter as litert
except ImportError as error:
    sys.exit(f"not installed: {error}")
if litert.__spec__.origin == "oplet":  # the shim answers for it
    sys.exit("not installed: oplet-litert-shim answers its imports")
job = json.load(open(sys.argv[1]))
def unpack(name, value):
    if not name.startswith("text "):
        return value
    flat = np.empty(value.size, object)
    flat[:] = [bytes.fromhex(item) for item in value.ravel().tolist()]
    return flat.reshape(value.shape)
def pack(name, value):
    value = np.asarray(value)
    if value.dtype.kind not in "OSU":
        return name, value if value.dtype.kind != "V" else value.astype(np.float32)
    items = [item if isinstance(item, bytes) else str(item).encode() for item in value.ravel().tolist()]
    return "text " + name, np.array([item.hex() for item in items], "U").reshape(value.shape)
fed = {name: unpack(name, value) for name, value in np.load(job["inputs"]).items()}
def given(run, key):
    return fed[f"{run} {key}"] if f"{run} {key}" in fed else fed[f"text {run} {key}"]
try:
    model = litert.Interpreter(
        model_path=job["model"], num_threads=job["threads"], experimental_preserve_all_tensors=bool(job["tensors"]),
        experimental_op_resolver_type=litert.OpResolverType[job["resolver"]],
    )
    runner = model.get_signature_runner(job["signature"]) if job["signature"] else None
    answers = {}
    for run in range(job["runs"]):
        if runner is not None:
            outputs = runner(**{name: given(run, index) for name, index in job["names"].items()})
            found = {index: outputs[name] for name, index in job["outputs"].items()}
        else:
            for name, index in job["names"].items():
                if tuple(model._get_tensor_details(index, 0)["shape"]) != given(run, index).shape:
                    model.resize_tensor_input(index, given(run, index).shape)
            model.allocate_tensors()
            for name, index in job["names"].items():
                model.set_tensor(index, given(run, index))
            model.invoke()
            found = {index: model.get_tensor(index) for index in job["outputs"].values()}
        for index, value in found.items():
            name, value = pack(f"{run} {index}", value)
            answers[name] = value
        for index in job["tensors"]:
            try:
                name, value = pack(f"tensor {run} {index}", model.get_tensor(index))
            except ValueError:
                continue
            answers[name] = value
except (ValueError, RuntimeError) as error:
    sys.exit(f"refused: {error}")
with open(job["answers"], "wb") as file:
    np.savez(file, **answers)
"""


def saved_outputs(path: Path, details: Mapping[str, Details]) -> dict[str, Array]:
    """Read outputs saved in a file, as `oplet run --output` writes them: .npz or .json by name, .npy for a single output.

    Real numbers for a quantized output are quantized, so that integers are compared.

    Args:
        path: the file.
        details: each output's dictionary of `Interpreter.get_output_details`, by name.

    Raises:
        TensorError: the file is of another kind, damaged, or lacks an output.
        OSError: the file cannot be read.
    """
    found = _entries(path, details)
    missing = [name for name in details if name not in found]
    if missing:
        there = ", ".join(f"'{name}'" for name in found) or "nothing"
        raise TensorError(f"'{path}' has no output '{missing[0]}' of the model; it has {there}.")
    return {name: _in_type(found[name], details[name], name, path) for name in details}


def _entries(path: Path, details: Mapping[str, Details]) -> dict[str, Any]:
    suffix = path.suffix.lower()
    if suffix == ".npz":
        names = npz_names(path)
        arrays = {
            name: read_npz(path, name, _check_header) for name in names if name in details or len(names) == len(details) == 1
        }
        return arrays if len(names) > 1 or len(details) > 1 else {next(iter(details)): value for value in arrays.values()}
    if suffix == ".npy":
        if len(details) != 1:
            raise TensorError(f"'{path}' holds one array and the model has {len(details)} outputs; give an .npz.")
        return {next(iter(details)): read_npy(path, _check_header)}
    if suffix == ".json":
        try:
            content = json.loads(read_file(path).decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise TensorError(f"'{path}' is no .json file, or a damaged one: {error}.") from error
        if isinstance(content, dict):
            return content
        if len(details) == 1:
            return {next(iter(details)): content}
        raise TensorError(f"'{path}' holds no outputs by name and the model has {len(details)}; give an object.")
    raise TensorError(f"'{path}' is of no kind that outputs are saved in; the kinds are .npy, .npz, .json.")


def _check_header(header: Header, held: int) -> None:
    if header.nbytes > max(_MOST_BYTES, held):
        raise TensorError(f"It holds {header.nbytes} bytes, more than the {_MOST_BYTES} that an output may have here.")


def _any(header: Header, held: int) -> None:
    """Accept every array header (a check for `read_npy`): the file was written by oplet's own subprocess."""


def _in_type(value: Any, details: Details, name: str, path: Path) -> Array:
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "S":
        text = np.asarray(value, object)
        flat = np.empty(text.size, object)
        flat[:] = [item.encode() if isinstance(item, str) else item for item in text.ravel().tolist()]
        return flat.reshape(text.shape)
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TensorError(f"The output '{name}' in '{path}' is no array: {error}.") from error
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "biufc":
        raise TensorError(f"The output '{name}' in '{path}' is of type {array.dtype}, the model's of {dtype}.")
    quantization = quantization_of(details)
    if quantization is not None:  # real values, as `oplet run --output` writes them; --raw writes the tensor's own type
        return quantization.quantize(array, name, str(path))[0]
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
    if dtype.kind in "iub" and not np.array_equal(cast, array):
        raise TensorError(f"The output '{name}' in '{path}' holds {array.dtype} values that are no {dtype}.")
    return cast


def litert_answers(
    way: str,
    model: str | os.PathLike[str],
    runs: Sequence[Mapping[str, Array]],
    inputs: Mapping[str, Details],
    outputs: Mapping[str, Details],
    *,
    signature: str = "",
    tensors: Sequence[int] = (),
    num_threads: int = 1,
) -> tuple[list[dict[str, Array]], list[dict[int, Array]]]:
    """Run LiteRT on each run's inputs and return its outputs. LiteRT runs in a subprocess, so that a crash ends only that.

    Args:
        way: LiteRT's kernel set, one of `LITERT`.
        model: the .tflite file.
        runs: for each run, the inputs' values by name; one interpreter is used for all runs.
        inputs: details of each input, by name.
        outputs: details of each output, by name.
        signature: the key of the signature, "" for the first subgraph.
        tensors: indices of further tensors of the first subgraph to read.
        num_threads: threads that LiteRT may use.

    Returns:
        The outputs of each run by name, and the other tensors of each run by index.

    Raises:
        LiteRTError: LiteRT is not installed, refuses the model, or crashes.
    """
    with tempfile.TemporaryDirectory(prefix="oplet-compare-") as folder:
        job = {
            "model": os.path.abspath(model),
            "inputs": os.path.join(folder, "inputs.npz"),
            "answers": os.path.join(folder, "answers.npz"),
            "threads": num_threads,
            "resolver": LITERT_RESOLVERS[way],
            "signature": signature,
            "runs": len(runs),
            "names": {name: int(details["index"]) for name, details in inputs.items()},
            "outputs": {name: int(details["index"]) for name, details in outputs.items()},
            "tensors": list(tensors),
        }
        fed = (
            _packed(f"{number} {int(inputs[name]['index'])}", value)
            for number, values in enumerate(runs)
            for name, value in values.items()
        )
        with atomic_write(str(job["inputs"])) as file:
            np.savez(file, **dict(fed))  # type: ignore[arg-type]
        path = os.path.join(folder, "job.json")
        write_atomically(path, json.dumps(job))
        try:
            done = run_python(["-c", _CHILD, path], capture_output=True, text=True, errors="replace", timeout=_SECONDS)
        except TimeoutExpired as error:
            raise LiteRTError(f"{way} did not answer within {_SECONDS} seconds.") from error
        if done.returncode:
            raise LiteRTError(_why(way, done.returncode, done.stderr))
        there = Path(str(job["answers"]))
        found = dict(_unpacked(name, read_npz(there, name, _any)) for name in npz_names(there))
    answers = [{name: found[f"{run} {index}"] for name, index in job["outputs"].items()} for run in range(len(runs))]  # type: ignore[attr-defined]
    others = [
        {index: found[f"tensor {run} {index}"] for index in tensors if f"tensor {run} {index}" in found}
        for run in range(len(runs))
    ]
    return answers, others


def _why(way: str, code: int, said: str) -> str:
    last = said.strip().splitlines()[-1][:300] if said.strip() else ""
    if last.startswith("not installed: "):
        return f"Comparing with LiteRT takes its package: pip install ai-edge-litert ({last.removeprefix('not installed: ')})."
    if code < 0:
        return f"{way} ends with signal {-code} on this model."
    # LiteRT's message may have several lines; the first names the kernel.
    first = next((line for line in said.splitlines() if line.startswith("refused: ")), last)
    return f"{way} cannot run the model: {first.removeprefix('refused: ')[:300].rstrip('.')}."


def _packed(name: str, value: Array) -> tuple[str, Array]:
    value = np.asarray(value)
    if value.dtype.kind not in "OSU":
        return name, value
    items = [item if isinstance(item, bytes) else str(item).encode() for item in value.ravel().tolist()]
    return f"text {name}", np.array([item.hex() for item in items], "U").reshape(value.shape)


def _unpacked(name: str, value: Array) -> tuple[str, Array]:
    if not name.startswith("text "):
        return name, value
    flat = np.empty(value.size, object)
    flat[:] = [bytes.fromhex(item) for item in value.ravel().tolist()]
    return name.removeprefix("text "), flat.reshape(value.shape)
