"""Runs every operator that the delegate serves on hostile attributes and inputs, in child processes, and says which end the process.

python -m plugins.flex_delegate.tests.sweep --cases 300
python -m plugins.flex_delegate.tests.sweep --op Qr --seed 17     # one case, here
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import struct
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

__all__ = ["main"]

#: Seconds after which a case hangs, and bytes that one may take.
_PATIENCE, _MOST = 150, 512 << 20
_PLACE = struct.Struct("<qqqq")  # operator, seed, bytes at most, cases done


def run_case(op: str, seed: int) -> str:
    """What becomes of a case: "ran", or the class of the error."""
    import tensorflow as tf
    from plugins.flex_delegate.tests.hostile import make_case

    from oplet.errors import OpletError
    from oplet_flex_delegate.graph import RefusedError
    from oplet_flex_delegate.guards.guard import Guard
    from oplet_flex_delegate.operation import Operation

    case = make_case(op, seed)
    try:
        operation = Operation(case.definition, case.signature)
        inputs = [
            value() if callable(value) else tf.constant(value, tf.as_dtype(type))
            for value, type in zip(case.inputs, case.signature[0])
        ]
        guard, call = Guard(operation), operation.caller("sweep", f"{op}{seed}")
        for _ in range(2):
            guard.check(inputs)
            made = call(inputs)
        for value in made:
            if value.dtype not in (tf.resource, tf.variant):
                value.numpy()
    except (RefusedError, OpletError, tf.errors.OpError, UnicodeDecodeError) as error:
        return type(error).__name__
    return "ran"


class _Meter:
    def check(self) -> None:
        pass

    def charge(self, nbytes: int) -> None:
        from oplet.errors import LimitError

        if nbytes > _MOST:
            raise LimitError("more than the sweep allows")


def _child(ops: list[str], cases: int, shared: str, first: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import tensorflow as tf

    from oplet.ops.ensure import swap_meter

    tf.config.threading.set_intra_op_parallelism_threads(2)
    swap_meter(_Meter())
    outcomes: Counter[tuple[str, str]] = Counter()
    with open(shared, "r+b") as file:
        place = mmap.mmap(file.fileno(), _PLACE.size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = 0
    for number in range(first, len(ops)):
        for case in range(seed if number == first else 0, cases):
            done += 1
            _PLACE.pack_into(place, 0, number, case, before, done)
            try:
                outcomes[ops[number], run_case(ops[number], case)] += 1
            except Exception:
                print(f"EXCEPTION {ops[number]} {case} {traceback.format_exc().splitlines()[-1]}", flush=True)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if after > before + (_MOST >> 10):
                print(f"MEMORY {ops[number]} {case} {(after - before) >> 10} MiB", flush=True)
            before = max(before, after)
        ran = outcomes[ops[number], "ran"]
        print(f"RAN {ops[number]} {ran}", flush=True)


def main() -> None:
    """Sweep, or run one case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--op")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--shared")
    parser.add_argument("--out", default="sweep.txt")
    given = parser.parse_args()
    from oplet_flex_delegate.guards.served import SERVED

    ops = [given.op] if given.op else sorted(SERVED)
    if given.op and given.seed is not None and not given.shared:
        print(run_case(given.op, given.seed))
        return
    if given.shared:
        _child(ops, given.cases, given.shared, given.first, given.seed or 0)
        return
    shared = Path(f"/tmp/flex-sweep-{os.getpid()}")
    number, seed, gone = given.first, 0, Counter[str]()
    with open(given.out, "a") as out:
        while number < len(ops):
            shared.write_bytes(_PLACE.pack(number, seed, 0, 0))
            command = [
                sys.executable,
                "-m",
                "plugins.flex_delegate.tests.sweep",
                "--shared",
                str(shared),
                "--cases",
                str(given.cases),
            ]
            command += ["--first", str(number), "--seed", str(seed), *(["--op", given.op] if given.op else [])]
            with open(f"{shared}.err", "w") as errors:
                child = subprocess.Popen(command, stdout=out, stderr=errors, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"})
            seen, since, hung = b"", time.monotonic(), False
            while child.poll() is None:
                time.sleep(0.2)
                now = shared.read_bytes()
                if now != seen:
                    seen, since = now, time.monotonic()
                elif time.monotonic() - since > _PATIENCE:
                    hung = True
                    child.kill()
                    child.wait()
            if child.returncode == 0:
                break
            at, case, _, _ = _PLACE.unpack(shared.read_bytes())
            lines = Path(f"{shared}.err").read_text(errors="replace").splitlines()
            why = next((line for line in reversed(lines) if "Check failed" in line or line.startswith("F0")), (lines or [""])[-1])
            out.write(f"{'HANG' if hung else 'DIED'} {ops[at]} {case} {child.returncode} {why[:200]}\n")
            out.flush()
            gone[ops[at]] += 1
            number, seed = (at, case + 1) if gone[ops[at]] < 6 else (at + 1, 0)
    shared.unlink()


if __name__ == "__main__":
    main()
