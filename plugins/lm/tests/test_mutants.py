"""Mutants of bundles: none ends the process, takes long or much memory, or raises what is no error of oplet's."""

from __future__ import annotations

import json
import os
import random
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from plugins.lm.tests.makers import EXECUTOR, MODEL, SENTENCEPIECE, Little, field, litertlm, metadata, pieces, task
from tests.children import run_child
from tests.kinds import part

from oplet.errors import OpletError
from oplet_lm import LanguageModel
from oplet_lm.plugin import open_bundle

MUTANTS, SECONDS, GROWTH = 2000, 60.0, 600 << 20
#: Numbers that lengths and offsets are replaced by.
_NUMBERS = (0, 1, 7, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)


def seeds() -> list[tuple[bytes, list[tuple[int, int]]]]:
    """Bundles, and where in them mutants differ: in headers and small parts, and now and then anywhere."""
    state = field(
        1, field(2, b"".join(field(n, "kv_cache_k_0") for n in (1, 2, 3, 4)) + field(6, 1) + field(7, 2)) + field(3, field(3, 8))
    )
    about = metadata("</s>", (5, 6), start=1, most=30, sampler=field(1, 2) + field(2, 5) + field(3, 0.9) + field(4, 1.0))
    about += field(3, field(1, field(1, "<") + field(2, ">"))) + field(9, field(1, b"\x01\x02"))
    little = Little(embedder=True, external=True)
    first = litertlm([*little.pieces(about), (EXECUTOR, {}, state)])
    second = litertlm(Little(prefills=(4, -1), vocabulary=512).pieces(about, (SENTENCEPIECE, {}, pieces())))
    third = task(
        {
            "METADATA": field(2, 128) + field(4, 5) + field(5, "</s>"),
            "TF_LITE_PREFILL_DECODE": Little(vocabulary=512).model,
            "TOKENIZER_MODEL": pieces(),
        }
    )
    split = Little(split=True, embedder=True)
    fourth = litertlm(split.pieces(about))
    models = [content for kind, _, content in split.pieces() if kind == MODEL]
    places = [first.index(about), second.index(about)]
    return [
        (first, [(0, 900), (places[0], places[0] + len(about)), (first.index(state), first.index(state) + len(state))]),
        (
            second,
            [
                (0, 700),
                (places[1], places[1] + len(about)),
                (second.index(pieces()[:40]), second.index(pieces()[:40]) + len(pieces())),
            ],
        ),
        (third, [(0, 120), (len(third) - 260, len(third))]),
        (fourth, [(0, 900), *((fourth.index(each), fourth.index(each) + len(each)) for each in models)]),
    ]


def mutant(number: int, made: list[tuple[bytes, list[tuple[int, int]]]]) -> bytes:
    """The mutant of this number."""
    draw = random.Random(number)
    data, places = made[number % len(made)]
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4))):
        begin, end = draw.choice(places) if draw.random() < 0.8 else (0, len(data))
        at = draw.randrange(begin, max(end, begin + 1))
        way = draw.randrange(5)
        if way == 0:
            changed[at : at + 1] = bytes([draw.randrange(256)])
        elif way == 1:
            size = draw.choice((1, 2, 4, 8))
            changed[at : at + size] = (draw.choice(_NUMBERS) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        elif way == 2:
            other = draw.randrange(len(changed))
            changed[at : at + 16] = changed[other : other + 16]
        elif way == 3 and draw.random() < 0.3:
            del changed[at : at + draw.choice((1, 4, 1000))]
        else:
            changed[at : at + 1] = bytes([changed[at] ^ (1 << draw.randrange(8))]) if at < len(changed) else b""
    return bytes(changed)


def use(path: Path) -> str:
    """Do with a bundle what users do; return how it ended."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_bundle(str(path))
            model = LanguageModel(path)
            model.generate("hello", max_tokens=4)
            list(model.stream("a", max_tokens=3, temperature=1.0, top_k=3, seed=1))
            if model.metadata.template:
                model.render([{"role": "user", "content": "hello"}])
    except OpletError as error:
        return "refused" if len(str(error).splitlines()) == 1 else f"said {error}"
    return "ran"


def main(folder: str, numbers: list[int]) -> None:
    """Use these mutants one after the other, and tell how each ended."""
    import resource

    made, path = seeds(), Path(folder, "mutant")
    for data, _ in made:
        path.write_bytes(data)
        assert use(path) == "ran"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)
    for number in numbers:
        os.write(1, f"{number} ".encode())
        path.write_bytes(mutant(number, made))
        start = time.process_time()
        how = use(path)
        taken = time.process_time() - start  # not what others take of a busy machine
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)) - before
        assert taken < SECONDS, f"mutant {number} took {taken:.1f} s"
        assert grown < GROWTH, f"mutant {number} took {grown >> 20} MiB"
        assert how in ("ran", "refused"), how
        os.write(1, how.encode() + b"\n")


def outcomes(folder: Path, numbers: list[int]) -> dict[str, int]:
    """Use mutants in a process of their own, and count how they ended."""
    code = f"from plugins.lm.tests.test_mutants import main; main({str(folder)!r}, {json.dumps(numbers)})"
    done: Any = run_child([sys.executable, "-c", code], cwd=Path(__file__).parents[3])
    ended = [line.split()[1] for line in done.stdout.splitlines()]
    assert len(ended) == len(numbers)
    return {how: ended.count(how) for how in ("ran", "refused")}


@pytest.mark.skipif(sys.platform == "win32", reason="it has no resource module")
def test_some_mutants_are_refused_or_run(tmp_path: Path) -> None:
    found = outcomes(tmp_path, list(range(60)))
    assert found["ran"] > 5
    assert found["refused"] > 5


@pytest.mark.sweep(cases=True)
@pytest.mark.skipif(sys.platform == "win32", reason="it has no resource module")
def test_every_mutant_is_refused_or_runs(tmp_path: Path) -> None:
    outcomes(tmp_path, list(part().among(range(60, MUTANTS))))
