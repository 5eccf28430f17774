"""Atheris target for the reader: any bytes are decoded and verified, or refused with a ModelError.

python -m fuzz.fuzz_reader [CORPUS] [options of libFuzzer]
"""

from __future__ import annotations

import sys

import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

with atheris.instrument_imports(include=["oplet"]):
    from oplet.errors import ModelError
    from oplet.model.model import Model
    from oplet.model.verify.verifier import verify


def read(data: bytes) -> None:
    """Run one input of the fuzzing engine."""
    try:
        verify(Model.from_bytes(data))
    except ModelError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
