"""NodeDefs are read as TensorFlow reads them, and bytes that are none are refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.oracle import tensorflow_results

from oplet import TensorType
from oplet.kernels.options import Type, read_node_def
from oplet.schema.flexbuffers import read_flexbuffer

GIVEN = {
    "T": TensorType.FLOAT32, "count": -3, "rate": 0.5, "whole": True, "name": b"\xff\x00", "shape": (2, -1), "any": None,
    "many": [1, -2, 3], "names": ["a", "b"],
}  # fmt: skip


def test_attributes_of_every_kind_are_read() -> None:
    op, data = read_flexbuffer(flex_options("Op", GIVEN), text=False)
    found = read_node_def(data)
    assert (op, found.op) == (b"Op", "Op")
    assert found.attributes == {**GIVEN, "T": Type(1), "names": [b"a", b"b"]}


@given(st.data())
def test_damaged_bytes_are_read_or_refused_with_a_reason(data: st.DataObject) -> None:
    whole = bytearray(read_flexbuffer(flex_options("Op", GIVEN), text=False)[1])
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        found = read_node_def(bytes(whole[: data.draw(st.integers(0, len(whole)))]))
        assert isinstance(found.attributes, dict)


def test_tensorflow_reads_what_the_tests_write() -> None:
    joined = tensorflow_results("StringJoin", [np.array([b"a"], object), np.array([b"b"], object)], {"N": 2, "separator": "-"})
    assert joined[0].tolist() == [b"a-b"]
