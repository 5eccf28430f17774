"""Mutated models with Flex nodes, run with the delegate in child processes; a number stands for a model.

python -m plugins.flex_delegate.tests.mutants 0 2000        # these numbers, in this process
"""

from __future__ import annotations

import mmap
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flatbuffers import flexbuffers
from fuzz.choices import SeededChoices
from fuzz.mutate import mutate, mutated
from plugins.flex_delegate.tests.record import RECORDED
from plugins.flex_ops.tests.record.recording import RECORDED as LISTED

__all__ = ["Ended", "run_batches"]

#: Seconds after which a model hangs.
_PATIENCE = 90


class Ended(NamedTuple):
    """A child that did not come to its end.

    Attributes:
        number: the model that it ran.
        how: what became of it.
    """

    number: int
    how: str


def seeds() -> list[tuple[str, bytes]]:
    """The models that are mutated: all that are recorded."""
    found = [*sorted(RECORDED.glob("*.tflite")), *sorted(LISTED.glob("*.tflite"))]
    return [(path.stem, path.read_bytes()) for path in found]


def mutant(models: list[tuple[str, bytes]], number: int) -> bytes:
    """The model of a number: half of them have a NodeDef changed, the others anything."""
    name, seed = models[number % len(models)]
    if number // len(models) % 2:
        return mutated(seed, name, number)
    return _with_other_node(seed, SeededChoices(f"node of {name} {number}"))


def _with_other_node(seed: bytes, choices: Any) -> bytes:
    """A model in which the NodeDefs of one or two nodes, and perhaps a constant, are changed."""
    from oplet.schema import tables
    from oplet.schema.decode import decode
    from oplet.schema.encode import encode

    root = decode(tables.Model, memoryview(seed))
    nodes = [
        operator
        for graph in root.subgraphs or []
        for operator in graph.operators or []
        if operator.custom_options is not None and _parts(operator) is not None
    ]
    if not nodes:
        return mutate(seed, choices)
    for _ in range(1 + choices.below(2)):
        operator = nodes[choices.below(len(nodes))]
        op, definition = _parts(operator) or (b"", b"")
        operator.custom_options = np.frombuffer(_options(op, _changed(definition, choices)), np.uint8)
    if choices.chance(40):
        filled = [buffer for buffer in root.buffers or [] if buffer.data is not None and len(buffer.data)]
        data = np.array(filled[choices.below(len(filled))].data)
        data[choices.below(len(data))] = choices.choice([0, 1, 2, 127, 128, 255])
        buffer = filled[choices.below(len(filled))]
        buffer.data = np.resize(data, len(buffer.data))
    return encode(root)


def _parts(operator: Any) -> tuple[bytes, bytes] | None:
    """A Flex node's operator and NodeDef; None for any other custom op."""
    try:
        parts = flexbuffers.GetRoot(bytearray(bytes(operator.custom_options))).AsVector
        return bytes(parts[0].AsStringBytes), bytes(parts[1].AsStringBytes)
    except (IndexError, TypeError, ValueError):
        return None


def _options(op: bytes, definition: bytes) -> bytes:
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(op.decode("utf-8", "replace"))
        builder._WriteBlob(definition, append_zero=True, type_=flexbuffers.Type.STRING)
    return bytes(builder.Finish())


def _changed(definition: bytes, choices: Any) -> bytes:
    """A NodeDef with an attribute changed, dropped or added; or with damaged bytes."""
    import tensorflow as tf

    if choices.chance(15):
        damaged = bytearray(definition)
        damaged[choices.below(len(damaged))] = choices.below(256)
        return bytes(damaged)
    if choices.chance(5):
        return definition + b"\x2a\x0b\x0a\x05other\x12\x02\x18\x01"  # an attribute that the operator has not
    node = tf.compat.v1.NodeDef()
    try:
        node.ParseFromString(definition)
    except Exception:  # it was damaged before
        return definition
    names = sorted(node.attr)
    if not names:
        return definition
    name = names[choices.below(len(names))]
    value, edges = node.attr[name], [0, 1, 2, -1, 3, 127, 2**31 - 1, -(2**31), 2**62]
    kind = value.WhichOneof("value")
    if choices.chance(8):
        del node.attr[name]
    elif kind == "i":
        value.i = choices.choice(edges)
    elif kind == "f":
        value.f = choices.choice([0.0, -1.0, 1e38, float("nan"), float("inf"), 0.5])
    elif kind == "b":
        value.b = not value.b
    elif kind == "type":
        value.type = choices.choice([1, 2, 3, 4, 7, 8, 9, 10, 14, 19, 20, 21])
    elif kind == "s":
        value.s = choices.choice([b"", b"x", b"VALID", b"\xff", b"(", b"y" * 999])
    elif kind == "shape":
        del value.shape.dim[:]
        for _ in range(choices.below(5)):
            value.shape.dim.add(size=choices.choice([0, 1, 2, -1, 2**31, 2**62]))
        value.shape.unknown_rank = choices.chance(15)
    elif kind == "list" and value.list.i:
        value.list.i[choices.below(len(value.list.i))] = choices.choice(edges)
    elif kind == "list" and value.list.type:
        value.list.type.append(choices.choice([1, 3, 7, 21]))
    else:
        value.i = choices.choice(edges)
    return node.SerializeToString(deterministic=True)  # type: ignore[no-any-return]


def run_one(models: list[tuple[str, bytes]], number: int) -> str:
    """What becomes of a model: "ran", or the class of the error, which is one of oplet's."""
    from oplet import Interpreter, Limits, load_delegate
    from oplet.errors import OpletError

    data = mutant(models, number)
    limits = Limits(
        max_arena_bytes=256 << 20, max_tensor_bytes=64 << 20, max_nodes=10_000, max_while_iterations=50, max_seconds=20
    )
    numbers = np.random.default_rng(number)
    try:
        interpreter = Interpreter(model_content=data, experimental_delegates=[load_delegate("flex")], limits=limits)
        try:
            interpreter.allocate_tensors()
            for _ in range(2):
                for details in interpreter.get_input_details():
                    interpreter.set_tensor(details["index"], _input(details, numbers))
                interpreter.invoke()
            for details in interpreter.get_output_details():
                interpreter.get_tensor(details["index"])
        finally:
            interpreter.close()
    except OpletError as error:
        return type(error).__name__
    return "ran"


def _input(details: Any, numbers: Any) -> Any:
    shape = tuple(map(int, details["shape"]))
    if details["dtype"] is np.bytes_ or np.dtype(details["dtype"]).kind in "SO":
        values = np.empty(shape, object)
        values.reshape(-1)[:] = [[b"a", b"", b"1,2", b"\xff"][place % 4] for place in range(values.size)]
        return values
    return numbers.integers(-1, 3, shape).astype(details["dtype"])


def _child(first: int, last: int, shared: str) -> None:
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(shared, "r+b") as file:
        place = mmap.mmap(file.fileno(), 8)
    models, outcomes = seeds(), Counter[str]()
    for number in range(first, last):
        place[:8] = number.to_bytes(8, "little")
        try:
            outcomes[run_one(models, number)] += 1
        except Exception as error:
            print(f"STRANGE {number} {type(error).__name__} {str(error)[:200]!r}", flush=True)
    for name, count in outcomes.items():
        print(f"OUTCOME {name} {count}", flush=True)


def run_batches(first: int, last: int, batch: int = 2000) -> tuple[Counter[str], list[Ended]]:
    """Run the models of these numbers in one child after the other.

    Args:
        batch: models of one child at most.

    Returns:
        What became of them, and those that ended their child, hung, or raised what is not an error of oplet's.
    """
    outcomes, ended = Counter[str](), list[Ended]()
    with tempfile.TemporaryDirectory() as folder:
        shared = Path(folder) / "number"
        while first < last:
            shared.write_bytes(first.to_bytes(8, "little"))
            until = min(last, first + batch)
            command = [sys.executable, "-m", "plugins.flex_delegate.tests.mutants", str(first), str(until), str(shared)]
            with open(Path(folder) / "out", "w+") as out, open(Path(folder) / "err", "w+") as errors:
                child = subprocess.Popen(command, stdout=out, stderr=errors, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"})
                hung = _wait(child, shared)
            for line in (Path(folder) / "out").read_text().splitlines():
                kind, what, count = line.split(" ", 2)
                if kind == "OUTCOME":
                    outcomes[what] += int(count)
                else:
                    ended.append(Ended(int(what), count))
            if child.returncode == 0:
                first = until
                continue
            number = int.from_bytes(shared.read_bytes(), "little")
            last_words = (Path(folder) / "err").read_text(errors="replace").splitlines()[-3:]
            ended.append(
                Ended(number, "hangs" if hung else f"ends the process with {child.returncode}: {' '.join(last_words)[:300]}")
            )
            first = number + 1
    return outcomes, ended


def _wait(child: subprocess.Popen[bytes], shared: Path) -> bool:
    """Wait for the child; True if it had to be killed."""
    seen, since = b"", time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        now = shared.read_bytes()
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > _PATIENCE:
            child.kill()
            child.wait()
            return True
    return False


if __name__ == "__main__":
    _first, _last, *_shared = sys.argv[1:]
    if _shared:
        _child(int(_first), int(_last), _shared[0])
    else:
        for _number in range(int(_first), int(_last)):
            print(_number, run_one(seeds(), _number), flush=True)
