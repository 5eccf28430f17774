"""Prints the depthwise filters that models ask for and that have no kernel of their own (`convolution.filter_sizes`).

usage: python -m oplet_compiled_ops.compiling.wanted MODEL.tflite ...
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence

from oplet import Interpreter
from oplet.errors import OpletError
from oplet_compiled_ops.library.kernels import known

__all__ = ["main"]

#: What the names of the kernels of `convolution.taps:taps_kernel` begin with.
_PREFIX = "convolution_taps_taps_kernel_"


def main(paths: Sequence[str]) -> int:
    """Allocate each model, and print the constants of each depthwise kernel (`taps_kernel`) that it needs and the library lacks,
    one a line.
    """
    for path in paths:
        try:
            Interpreter(path, num_threads=2).allocate_tensors()
        except (OpletError, OSError) as error:
            logging.getLogger("oplet").warning("%s is passed over: %s", path, error)
    for name in sorted(kernel.name for kernel in known if kernel.name.startswith(_PREFIX) and not kernel.exists):
        sys.stdout.write(f"{name.removeprefix(_PREFIX).replace('_', ' ')}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
