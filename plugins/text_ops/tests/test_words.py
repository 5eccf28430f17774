"""Models of TensorFlow's converter give what TensorFlow Text gave when they were recorded, without it."""

from __future__ import annotations

import functools
import io
import lzma
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.oracle import run, skip_without_re2
from plugins.text_ops.tests.record_words import BLOCK, CASES, DATA, POINTS, block, checksum

from oplet import Interpreter
from oplet.kernels.strings import StringMeter
from oplet_text_ops import OPS
from oplet_text_ops.texts.normalization import FORMS, case_fold, normalize

#: Blocks of code points that hold most of what changes; the others take longer.
_FAST = (0x0, 0x1, 0x2, 0x3, 0xA, 0xF, 0x10, 0x11, 0x16, 0x1C, 0x1D, 0x1E, 0x1F, 0x2F, 0xE0)


@functools.cache
def recorded() -> dict[str, Any]:
    with np.load(io.BytesIO(lzma.decompress(DATA.read_bytes()))) as arrays:
        return dict(arrays)


def texts_of(name: str) -> list[bytes]:
    data, splits = recorded()[name].tobytes(), recorded()[f"{name}_splits"].tolist()
    return [data[begin:end] for begin, end in pairwise(splits)]


def answers(name: str) -> dict[str, list[Any]]:
    """The recorded answers of a case, flattened."""
    start = f"{name}_of_"
    keys = [key for key in recorded() if key.startswith(start)]
    found = {}
    for key in keys:
        if f"{key}_splits" in keys:
            found[key.removeprefix(start)] = texts_of(key)
        elif not (key.endswith("_splits") and key.removesuffix("_splits") in keys):
            found[key.removeprefix(start)] = recorded()[key].ravel().tolist()
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_recorded_model_gives_tensorflow_text_s_answers(name: str) -> None:
    skip_without_re2(name)
    given = run(recorded()[f"{name}_model"].tobytes())(texts_of("texts"))
    assert {key: value.ravel().tolist() for key, value in given.items()} == answers(name)


def test_bert_s_preprocessing_takes_texts_of_any_number() -> None:
    texts, wanted = texts_of("texts"), answers("packed")
    ours = run(recorded()["packed_model"].tobytes())
    for start in (0, 7, 100):
        for count in (1, 3):
            for name, value in ours(texts[start : start + count]).items():
                assert value.shape == (count, 16)
                assert value.ravel().tolist() == wanted[name][16 * start : 16 * (start + count)]
    assert {value.shape for value in ours([]).values()} == {(0, 16)}


def test_all_custom_ops_of_bert_s_preprocessing_are_served_by_this_package() -> None:
    interpreter = Interpreter(model_content=recorded()["packed_model"].tobytes())
    names = {each["op_name"] for each in interpreter._get_ops_details()} & set(OPS)
    assert names >= {"FastBertNormalize", "FastWordpieceTokenizeWithOffsets", "TFText>RoundRobinTrim", "RaggedTensorToTensor"}


def check_points(name: str, number: int) -> None:
    meter = StringMeter()
    change = (
        functools.partial(case_fold, meter=meter) if name == "folded" else functools.partial(normalize, meter=meter, form=name)
    )
    assert checksum([change(text) for text in block(number)]) == recorded()[f"{name}_sums"][number], f"block {number:x}"


@pytest.mark.parametrize("name", POINTS)
def test_code_points_become_what_icu_makes_of_them(name: str) -> None:
    for number in _FAST:
        check_points(name, number)


@pytest.mark.sweep
@pytest.mark.parametrize("name", POINTS)
def test_every_code_point_becomes_what_icu_makes_of_it(name: str) -> None:
    for number in range(0x110000 // BLOCK):
        check_points(name, number)


def test_the_forms_are_those_of_the_record() -> None:
    assert {*FORMS, "folded"} == set(POINTS)
