"""Large JSON is read as small JSON is: what is accepted, and what is made of it."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet.errors import TensorError
from oplet_serve.doors import json_document
from oplet_serve.doors.json_document import read_document
from oplet_serve.refusals import Refusal
from oplet_serve.values import elements, slices
from oplet_serve.values.elements import JsonElements
from oplet_serve.values.tensors import TensorSpec, read_tensor

QUIET = settings(max_examples=examples(300), deadline=None)
LEAVES = st.none() | st.booleans() | st.integers(-3, 300) | st.floats(0, 9) | st.text('ab"\\[]{},:é😀\n ', max_size=6)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["data", "shape", "a", '"', "[{"]), inner, max_size=3)
    ),
    max_leaves=20,
)


@pytest.fixture(autouse=True, scope="module")
def all_is_large() -> Any:
    """Let texts of any length count as large, and be read in portions of a few bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_document, "SMALL", 0)
        patch.setattr(json_document, "SLICE", 7)
        patch.setattr(elements, "SLICE", 7)
        patch.setattr(slices, "SLICE", 7)
        patch.setattr(slices, "ELEMENTS", 3)
        patch.setattr(elements, "_PORTION", 5)
        yield


def plain(value: Any) -> Any:
    """The value with lists that were left unread."""
    if isinstance(value, JsonElements):
        return orjson.loads(value.text)
    if isinstance(value, list):
        return [plain(each) for each in value]
    return {key: plain(each) for key, each in value.items()} if isinstance(value, dict) else value


def test_a_document_whose_lists_end_and_whose_objects_do_not_is_told_as_such() -> None:
    whole = b'{"inputs": [{"data": [1, 2]}]}'
    assert json_document._lists(whole, 10)
    with pytest.raises(Refusal, match="not every list, object and string in it ends once"):
        json_document._lists(whole[:-1], 10)


@QUIET
@given(value=VALUES | st.fixed_dictionaries({"inputs": st.lists(st.dictionaries(st.sampled_from(["data", "shape"]), VALUES))}))
def test_a_document_is_what_json_says(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert plain(read_document(text.encode(), 1)) == orjson.loads(text)


def _member_twice(text: bytes) -> bool:
    found: list[bool] = []

    def note(members: list[tuple[str, Any]]) -> None:
        found.append(len(dict(members)) < len(members))

    json.loads(text, object_pairs_hook=note)
    return any(found)


@QUIET
@given(
    value=VALUES, place=st.integers(0, 60), junk=st.text('[]{},:"\\1a ', max_size=3), cut=st.integers(0, 3), wrapped=st.booleans()
)
def test_no_other_text_is_taken(value: Any, place: int, junk: str, cut: int, wrapped: bool) -> None:
    text = json.dumps({"inputs": [{"data": value}]} if wrapped else value)
    changed = (text[:place] + junk + text[place + cut :]).encode()
    try:
        wanted = orjson.loads(changed)
    except orjson.JSONDecodeError:
        with pytest.raises((Refusal, orjson.JSONDecodeError)):
            plain(read_document(changed, 1))
        return
    try:
        found = plain(read_document(changed, 1))
    except Refusal:
        assert _member_twice(changed)  # of which orjson takes the last
    else:
        assert found == wanted


SHAPES = st.lists(st.integers(0, 3), min_size=1, max_size=3)


def both(spec: TensorSpec, shape: list[int], text: bytes) -> list[Any]:
    """What comes of the elements as text, and as a list: the values, or None if they are refused."""
    found: list[Any] = []
    try:
        listed = orjson.loads(text)
    except orjson.JSONDecodeError:
        listed = None
    else:
        assert isinstance(listed, list)
    for data in (JsonElements(text, json_document._without_strings(text)), listed):
        try:
            found.append(read_tensor(spec, spec.datatype, shape, data).tolist())
        except TensorError:
            found.append(None)
    return found


@QUIET
@given(
    shape=SHAPES, given_shape=SHAPES, dtype=st.sampled_from(["float32", "int8", "bool", "object", "uint64"]), flat=st.booleans()
)
def test_elements_as_text_are_those_as_a_list(shape: list[int], given_shape: list[int], dtype: str, flat: bool) -> None:
    values = np.arange(int(np.prod(given_shape))).reshape(given_shape)
    array = (values % 2).astype(bool) if dtype == "bool" else values
    listed = (array.reshape(-1) if flat else array).tolist()
    text = json.dumps(listed)
    if dtype == "object":
        text = re.sub(r"\d+", lambda found: f'"{found[0]}\\"],["', text)
    spec = TensorSpec("x", np.dtype(dtype), (-1,) * len(shape))
    first, second = both(spec, shape, text.encode())
    assert first == second
    if shape == given_shape:
        assert first is not None


@QUIET
@given(
    shape=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    changes=st.lists(st.tuples(st.integers(0, 40), st.text("[],1 ", max_size=2), st.integers(0, 2)), min_size=1, max_size=3),
)
def test_changed_elements_are_refused_or_read_alike(shape: list[int], changes: list[tuple[int, str, int]]) -> None:
    text = json.dumps(np.ones(shape, int).tolist())
    for place, junk, cut in changes:
        place = min(place, len(text) - 1)
        text = text[0] + (text[1:-1][:place] + junk + text[1:-1][place + cut :]) + text[-1]
    first, second = both(TensorSpec("x", np.dtype("int64"), (-1,) * len(shape)), shape, text.encode())
    assert first == second
