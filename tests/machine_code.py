"""Whether this machine has the machine code of `oplet-compiled-ops`, for tests of what it alone can show."""

from __future__ import annotations

import sys

import pytest

__all__ = ["need_machine_code", "need_stored_plans"]


def need_machine_code() -> None:
    """Skip the module where there is none: the package is not installed, or was not built for this processor."""
    opening = pytest.importorskip("oplet_compiled_ops.library.opening")
    try:
        opening.library()
    except opening.MissingKernelError as error:
        pytest.skip(str(error), allow_module_level=True)


def need_stored_plans() -> None:
    """Skip the module where no plans are stored on disk."""
    if sys.platform != "linux":
        pytest.skip("plans are stored where the system tells what memory there is: on Linux", allow_module_level=True)
    need_machine_code()
