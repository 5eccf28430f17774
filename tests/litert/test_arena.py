"""The memory that tensors share, against LiteRT's on models of real projects."""

from __future__ import annotations

import pytest
from tests.places import REAL


@pytest.mark.sweep
@pytest.mark.skipif(not REAL.is_dir(), reason="there are no recorded cases here")
def test_the_arena_is_within_a_tenth_of_litert_s():
    pytest.importorskip("ai_edge_litert")
    common, resources = pytest.importorskip("benchmarks.common"), pytest.importorskip("benchmarks.resources")
    found = resources.arena(list(common.models(REAL, 100_000))).data["models"]
    assert len(found) >= 10
    # A model of one small layer: its scratch, which is not seen in LiteRT, is as large as its tensors.
    found.pop("qwen_fc_blockwise_quantized")
    assert {name: ours / theirs for name, (ours, theirs) in found.items() if ours > 1.1 * theirs} == {}
