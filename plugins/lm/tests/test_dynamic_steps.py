"""Steps of a dynamic-range bundle against LiteRT's interpreter: both go on from the same caches, so that no step hangs on an earlier tie."""

from __future__ import annotations

import numpy as np
import pytest
from plugins.lm.tests.makers import follows_avx512
from tests.places import SHARED

from oplet import Interpreter
from oplet.toolkit import SubgraphRunner
from oplet_lm.bundle import DECODER, Bundle

BUNDLE = SHARED / "accept" / "lm" / "qwen3_dyn8.litertlm"
TOKENS, VOCABULARY = 120, 330
#: What a last bit of float32 moves a value of 64 to 128 steps by, at most.
LAST_BIT = 2.0**-17

pytestmark = pytest.mark.skipif(not BUNDLE.exists(), reason="the bundle lies outside the project and is not here")


def nearest_tie(values: np.ndarray) -> float:
    """How near a row's values come to lie between two of the 255 steps that it is quantized in, in steps."""
    row = values.reshape(-1).astype(np.float64)
    low, high = min(row.min(), 0), max(row.max(), 0)
    steps = np.append(row, low) * (255 / (high - low))
    return float(np.abs(steps - np.floor(steps) - 0.5).min())


def test_steps_equal_those_of_litert_but_where_a_row_has_a_value_between_two_steps() -> None:
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    model = Bundle(BUNDLE).model(DECODER)
    assert model is not None
    mine = Interpreter(model_content=model, experimental_preserve_all_tensors=True)
    runner, expected = (
        mine.get_signature_runner("decode"),
        litert.Interpreter(model_content=model.to_bytes()).get_signature_runner("decode"),
    )
    graph = SubgraphRunner(mine, runner.subgraph_index).subgraph
    rows = {node.inputs[0].index for node in graph.nodes if node.op_name == "FULLY_CONNECTED"}
    details = expected.get_input_details()
    caches = {name: np.zeros(each["shape"], np.float32) for name, each in details.items() if name.startswith("kv_cache")}
    context = details["mask"]["shape"][-1]
    parted = 0
    for place, token in enumerate(np.random.default_rng(0).permutation(VOCABULARY)[:TOKENS]):
        mask = np.where(np.arange(context) <= place, 0, np.float32(-0.7) * np.finfo(np.float32).max).astype(np.float32)
        step = {"tokens": np.int32([[token]]), "input_pos": np.int32([place]), "mask": mask.reshape(1, 1, 1, -1), **caches}
        found, wanted = runner(**step)["logits"], expected(**step)
        difference = np.abs(found - wanted["logits"]).max() / np.abs(wanted["logits"]).max()
        if difference > 1e-5:
            parted += 1
            tie = min(nearest_tie(mine.get_tensor(index, subgraph_index=runner.subgraph_index)) for index in rows)
            assert tie <= LAST_BIT, f"step {place} parts by {difference}, and no value of its rows is nearer to a tie than {tie}"
        caches = {name: np.array(wanted[name]) for name in caches}
    # Of all 330 tokens none parts where kernels are XNNPACK's bit for bit, else 16, on a processor with AVX-512.
    assert parted <= (0 if follows_avx512() else TOKENS // 8)
