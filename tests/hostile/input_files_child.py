"""Reads every file of a folder as an input, with 1 GB of address space; what is not refused in oplet's words is told."""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np

from oplet.errors import OpletError
from oplet_tools.running.inputs import load_inputs


def _details(shape: list[int], signature: list[int], dtype: Any, quantization: tuple[float, int] = (0.0, 0)) -> dict[str, Any]:
    shapes = {"shape": np.array(shape, np.int32), "shape_signature": np.array(signature, np.int32)}
    return {"name": "x", "index": 0, "dtype": dtype, "quantization": quantization, **shapes}


INPUTS = [
    _details([1, 8, 8, 3], [1, 8, 8, 3], np.float32),
    _details([1, 1, 1, 3], [1, -1, -1, 3], np.int8, (0.5, 3)),
    _details([1], [-1], np.float32),
    _details([1], [-1], np.bytes_),
]


def main(folder: Path) -> None:
    """Print the number of refusals, the files that led to something else, and the growth of memory in bytes."""
    import PIL.JpegImagePlugin
    import PIL.PngImagePlugin  # noqa: F401

    start = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (start + (1 << 30),) * 2)
    refused, wrong = 0, []
    for path in sorted(folder.iterdir()):
        for details in INPUTS:
            try:
                load_inputs([str(path)], {"x": details})
                wrong.append(f"{path.name}: taken as {details['shape_signature']} {details['dtype'].__name__}")
            except (OpletError, OSError) as error:
                refused += 1
                if path.name not in str(error) and path.name not in str(getattr(error, "filename", "")):
                    wrong.append(f"{path.name}: not named in {error}")
            except Exception as error:
                wrong.append(f"{path.name}: {type(error).__name__}: {str(error)[:200]}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    sys.stdout.write(json.dumps({"refused": refused, "wrong": wrong, "grown": grown}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
