"""Orders that the model's metadata asks for, and how they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet.errors import DelegateError
from oplet.model.control_dependencies import CONTROL_DEPENDENCIES, decode_control_dependencies
from oplet_tools.rewriting.stripping import encode_control_dependencies

from .models import Fake, diamond, opened, plan, scenario

Edges = list[list[tuple[int, int]]]


@scenario(
    "TestDelegateWithControlEdges.NoControlEdges",
    "TestDelegateWithControlEdges.OverrideControlEdges",
    "TestDelegateWithControlEdges.EmptyControlEdges",
    "TestDelegateWithControlEdges.CompatibleControlEdges1",
    "TestDelegateWithControlEdges.CompatibleControlEdges2",
    "TestDelegateWithControlEdges.MismatchedControlEdgeMetadataSubgraphCountIgnored",
)
@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        (None, [4, 1, 3]),
        ([[(1, 2)]], [4, 1, 5, 3]),  # 1 before 2: nodes 0 and 2 are no one partition
        ([[]], [4, 1, 3]),
        ([[(0, 2), (1, 3)]], [4, 1, 3]),
        ([[(0, 1), (1, 3)]], [4, 1, 3]),
        ([], [4, 1, 3]),  # of another number of subgraphs: passed over
    ],
    ids=["none", "override", "empty", "compatible 1", "compatible 2", "mismatched"],
)
def test_metadata_keeps_nodes_in_order(edges: Edges | None, expected: list[int]) -> None:
    metadata = None if edges is None else {CONTROL_DEPENDENCIES: encode_control_dependencies(edges)}
    assert plan(opened(diamond(metadata=metadata), Fake([0, 2]))) == expected


@pytest.mark.parametrize("data", [b"", b"\x02", b"\x01", b"\x01\x01\x02\x00", b"\x01\x01\x01\x02\x04\x80", b"\xff" * 20])
def test_metadata_that_cannot_be_read_is_passed_over(data: bytes) -> None:
    assert decode_control_dependencies(data) is None
    assert plan(opened(diamond(metadata={CONTROL_DEPENDENCIES: data}), Fake([0, 2]))) == [4, 1, 3]


def test_an_edge_to_a_node_that_does_not_exist_is_an_error() -> None:
    data = encode_control_dependencies([[(0, 9)]])
    with pytest.raises(DelegateError, match="from node 0 to node 9"):
        opened(diamond(metadata={CONTROL_DEPENDENCIES: data}), Fake([0, 2]))


def test_edges_hold_for_the_kernels_that_stand_for_their_nodes() -> None:
    data = encode_control_dependencies([[(1, 2)]])
    interpreter = opened(diamond(metadata={CONTROL_DEPENDENCIES: data}), Fake([1]))
    assert plan(interpreter) == [0, 4, 2, 3]
    interpreter.modify_graph_with_delegate(Fake([0, 2]))
    assert plan(interpreter) == [5, 4, 6, 3]


def test_numbers_of_several_bytes_are_those_of_litert() -> None:
    # Version 1, one subgraph, one edge; zigzag of 64 is 128 = 0x80 0x01, of 300 is 600 = 0xD8 0x04.
    assert encode_control_dependencies([[(64, 300)]]) == b"\x01\x01\x01\x80\x01\xd8\x04"
    assert decode_control_dependencies(b"\x01\x01\x01\x03\x01") == [[(-2, -1)]]


@given(st.lists(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)))))
def test_what_is_written_reads_back(edges: Edges) -> None:
    assert decode_control_dependencies(encode_control_dependencies(edges)) == edges


@given(st.binary(max_size=64))
def test_damaged_bytes_are_read_or_passed_over(data: bytes) -> None:
    found = decode_control_dependencies(data)
    assert found is None or all(isinstance(pair, tuple) for edges in found for pair in edges)


@given(st.binary(min_size=1, max_size=3), st.data())
def test_a_cut_entry_is_passed_over(tail: bytes, data: st.DataObject) -> None:
    whole = encode_control_dependencies([[(1, 2), (3, 400)]])
    assert decode_control_dependencies(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None
    assert decode_control_dependencies(whole + tail) is None
