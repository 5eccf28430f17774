"""Operators on sequences give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of, oplet_results

from oplet import TensorType as T

rng = np.random.default_rng(41)


def numbers(*shape: int, type: T = T.FLOAT32) -> Any:
    return rng.normal(size=shape).astype(dtype_of(type))


def ints(*given: int) -> Any:
    return np.array(given, np.int32)


def decoders() -> Iterator[Case]:
    for type in (T.FLOAT32, T.FLOAT64):
        for time, batch, classes in ((12, 3, 5), (1, 2, 3), (30, 2, 8), (6, 1, 1)):
            x = 2 * numbers(time, batch, classes, type=type)
            lengths = rng.integers(0, time + 1, batch).astype(np.int32)
            for merge in (False, True):
                for blank in (-1, 0, -9):
                    given = {"T": type, "merge_repeated": merge, "blank_index": blank}
                    yield Case("CTCGreedyDecoder", [x, lengths], given, 4)
                for width, paths in ((1, 1), (4, 3), (30, 2), (100, 1), (2, 3)):
                    given = {"T": type, "merge_repeated": merge, "beam_width": width, "top_paths": paths}
                    yield Case("CTCBeamSearchDecoder", [x, np.full(batch, time, np.int32)], given, 3 * paths + 1)
            yield Case("CTCGreedyDecoder", [x, lengths + 99], {"T": type}, 4)
    for _ in range(60):
        time, classes = int(rng.integers(2, 40)), int(rng.integers(2, 12))
        x = numbers(time, 2, classes) * rng.choice([0.3, 1, 4])
        given = {
            "T": T.FLOAT32,
            "merge_repeated": bool(rng.integers(2)),
            "beam_width": int(rng.choice([3, 10, 50])),
            "top_paths": 1,
        }
        yield Case("CTCBeamSearchDecoder", [x.astype(np.float32), ints(time, time - 1)], given, 4)


def losses() -> Iterator[Case]:
    for number in range(60):
        time, batch, classes = int(rng.integers(1, 15)), 2, int(rng.integers(2, 6))
        counts = rng.integers(number % 9 > 0, 5, batch)
        indices = np.array([(b, n) for b in range(batch) for n in range(counts[b])], np.int64).reshape(-1, 2)
        labels = rng.integers(0, classes - 1, len(indices)).astype(np.int32)
        lengths = rng.integers(1, time + 1, batch).astype(np.int32)
        given = {
            "preprocess_collapse_repeated": number % 3 == 0, "ctc_merge_repeated": number % 2 == 0,
            "ignore_longer_outputs_than_inputs": number % 5 != 0,
        }  # fmt: skip
        type = T.FLOAT32 if number % 4 else T.FLOAT64
        inputs = [3 * numbers(time, batch, classes, type=type), indices, labels, lengths]
        yield Case("CTCLoss", inputs, {"T": type, **given}, 2)


def comparisons() -> Iterator[Case]:
    for type in (T.INT64, T.STRING):
        for normalize in (True, False):
            for _ in range(12):
                sides = []
                for shape in ((3, 2, 6), (3, 2, 5)):
                    places = np.sort(rng.choice(int(np.prod(shape)), int(rng.integers(0, 14)), replace=False))
                    found = rng.integers(0, 3, places.size)
                    text = np.empty(places.size, object)
                    text[:] = [b"%d" % each for each in found]
                    sides += [
                        np.stack(np.unravel_index(places, shape), 1).astype(np.int64),
                        text if type == T.STRING else found,
                        np.array(shape),
                    ]
                yield Case("EditDistance", sides, {"T": type, "normalize": normalize})
    for type in (T.FLOAT64, T.STRING, T.UINT8, T.COMPLEX64):
        x = rng.integers(0, 99, (3, 4, 5))
        text = np.empty(x.size, object)
        text[:] = [b"%d" % each for each in x.ravel()]
        x = text.reshape(x.shape) if type == T.STRING else x.astype(dtype_of(type))
        for time, batch, lengths in (
            (1, 0, (4, 0, 2)),
            (2, 1, (5, 1, 2, 0)),
            (0, 2, (3, 1, 0, 2, 3)),
            (1, 0, (5, 0, 0)),
            (1, 1, (1, 1, 1, 1)),
            (0, 1, (3,)),
        ):
            for kind, name in ((np.int32, T.INT32), (np.int64, T.INT64)):
                given = {"T": type, "Tlen": name, "seq_dim": time, "batch_dim": batch}
                yield Case("ReverseSequence", [x, np.array(lengths, kind)], given)


def cells() -> Iterator[Case]:
    for batch, inputs, units in ((2, 3, 4), (1, 1, 1), (3, 5, 2)):
        state = [numbers(batch, units), numbers(batch, units), numbers(inputs + units, 4 * units)]
        weights = [*state, *(numbers(units) for _ in range(3)), numbers(4 * units)]
        for peephole in (False, True):
            for clip in (0.0, 0.5, -1.0):
                given = {"T": T.FLOAT32, "cell_clip": clip, "use_peephole": peephole}
                yield Case("LSTMBlockCell", [numbers(batch, inputs), *weights], {**given, "forget_bias": 0.7}, 7)
                for steps in (6,):  # behind fewer, most of TensorFlow's outputs are whatever was in memory
                    operands = [np.array(steps, np.int64), numbers(6, batch, inputs), *weights]
                    yield Case("BlockLSTM", operands, {**given, "forget_bias": 1.0}, 7)
                    yield Case("BlockLSTMV2", operands, given, 7)
        yield Case("LSTMBlockCell", [numbers(batch, inputs + 1), *weights], {"T": T.FLOAT32}, 7)
        operands = [
            numbers(batch, inputs), numbers(batch, units), numbers(inputs + units, 2 * units), numbers(inputs + units, units),
            numbers(2 * units), numbers(units),
        ]  # fmt: skip
        yield Case("GRUBlockCell", operands, {"T": T.FLOAT32}, 4)
        yield Case("GRUBlockCell", [*operands[:5], numbers(units + 1)], {"T": T.FLOAT32}, 4)


SWEEPS = [decoders, losses, comparisons, cells]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-5


def test_more_steps_than_there_are_which_end_tensorflow_s_process_are_refused() -> None:
    weights = [numbers(2, 4), numbers(2, 4), numbers(7, 16), numbers(4), numbers(4), numbers(4), numbers(16)]
    for steps in (7, -1):
        with pytest.raises(RuntimeError, match=f"seq_len_max is {steps}"):
            oplet_results(Case("BlockLSTM", [np.array(steps, np.int64), numbers(6, 2, 3), *weights], {"T": T.FLOAT32}, 7))


def test_steps_behind_the_last_are_zeros() -> None:
    weights = [numbers(2, 4), numbers(2, 4), numbers(7, 16), numbers(4), numbers(4), numbers(4), numbers(16)]
    x = numbers(6, 2, 3)
    whole, part = (oplet_results(Case("BlockLSTM", [np.array(steps), x, *weights], {"T": T.FLOAT32}, 7)) for steps in (6, 4))
    for long, short in zip(whole, part):
        np.testing.assert_array_equal(short[:4], long[:4])
        assert not short[4:].any()
