"""Record what cannot be made where the tests run: `python -m tests.converters.record`, with the converters installed.

Makes the models of PyTorch, timm, jax and ai-edge-quantizer, asks LiteRT's three ways, and writes a zip for each maker into
`recorded/`. Keras' models are made by the tests themselves.

    pip install litert-torch ai-edge-quantizer timm jax tensorflow
"""

from __future__ import annotations

import argparse
import importlib
import logging
from pathlib import Path

from .cases import Case, write_all
from .oracle import Oracle, record

__all__ = ["MAKERS", "RECORDED", "main", "worth_keeping"]

RECORDED = Path(__file__).parent / "recorded"

MAKERS = ("torch_functions", "torch_layers", "torch_language", "timm_nets", "jax_nets", "quantized_torch")

#: Bytes of a model and of its inputs and answers; what is larger only repeats what the smaller ones have.
LARGEST = 320_000


def worth_keeping(case: Case) -> bool:
    """Whether a case is small enough, and there is an answer to compare with."""
    values = [v for step in case.steps for found in [step.inputs, *step.answers.values()] for v in found.values()]
    return len(case.model) + sum(value.nbytes for value in values) <= LARGEST and all(step.answers for step in case.steps)


def main() -> None:
    """Make, ask, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("makers", nargs="*", default=MAKERS)
    arguments = parser.parse_args()
    oracle, log = Oracle(), logging.getLogger(__name__)
    for maker in arguments.makers:
        cases = []
        for name, make in importlib.import_module(f"{__package__}.make.{maker}").models():
            try:
                case = record(make(), oracle)
            except Exception:
                log.exception("%s is left out", name)
                continue
            if worth_keeping(case):
                cases.append(case)
        write_all(RECORDED / f"{maker}.zip", cases)
    oracle.close()


if __name__ == "__main__":
    main()
