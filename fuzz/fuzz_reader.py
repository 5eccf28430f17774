"""The reader under atheris: any bytes decode and verify, or are refused with a ModelError.

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
    """One input of the engine."""
    try:
        verify(Model.from_bytes(data))
    except ModelError:
        return


if __name__ == "__main__":
    atheris.Setup(sys.argv, read)
    atheris.Fuzz()
