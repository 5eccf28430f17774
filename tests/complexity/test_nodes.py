"""Whatever is made of the nodes of oplet-flex-ops and oplet-text-ops ends within twice `max_seconds` and twice the limits of memory.

`nodes.py` says what is made of them: every dimension, small integer, text and attribute is blown up in turn.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.kinds import part

pytest.importorskip("oplet_flex_ops")
pytest.importorskip("oplet_text_ops")
pytest.importorskip("tensorflow", reason="some of the nodes' inputs are made by it")
from oplet import Interpreter, TensorType

from .nodes import Blown, Node, check, nodes, operators

#: Operators whose kernels once held a process for minutes or took gigabytes.
_FORMER = (
    "FlexMatrixExponential",
    "FlexBandedTriangularSolve",
    "FlexTensorListStack",
    "FlexStringToHashBucketStrong",
    "FlexLowerBound",
    "FlexUniqueV2",
    "FlexRaggedGather",
    "FlexHistogramFixedWidth",
    "FlexLRN",
    "FlexRFFT3D",
    "FlexEncodeWav",
)
_PARTS = 16


@pytest.mark.parametrize("op", _FORMER)
@pytest.mark.sweep
def test_former_offenders_stay_within_the_limits(op: str) -> None:
    found, runs = check(nodes(op)[op])
    assert runs > 10
    assert not found, "\n".join(found)


@pytest.mark.sweep(cases=True)
@pytest.mark.parametrize("number", range(_PARTS))
def test_nodes_of_every_operator_stay_within_the_limits(number: int) -> None:
    chosen = nodes(",".join(part().among(operators()[number::_PARTS])))
    found, _ = check(node for found in chosen.values() for node in found)
    assert not found, "\n".join(found)


def test_large_inputs_are_made_in_the_model() -> None:
    node = Node("FlexReverseSequence", [np.arange(6, dtype=np.int32).reshape(2, 3), np.array([1, 2], np.int32)], {"seq_dim": 1, "Tlen": TensorType.INT32}, [TensorType.INT32])  # fmt: skip
    data = Blown(node, "", {(0, 0): 1000, (1, 0): 1000}).model()
    assert len(data) < 4096
    interpreter = Interpreter(model_content=data)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).shape == (2000, 3)
