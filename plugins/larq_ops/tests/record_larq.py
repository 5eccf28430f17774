"""Record what Larq Compute Engine's own interpreter gives: `python -m plugins.larq_ops.tests.record_larq PYTHON`.

PYTHON is an interpreter with numpy below 2 and larq-compute-engine, which has wheels up to Python 3.11; neither its TensorFlow nor oplet is
needed there. `larq.npz.xz` has the answers alone, by the number of the case: the models and their inputs are made anew.
"""

from __future__ import annotations

import io
import lzma
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from plugins.larq_ops.tests.layers import layers
from plugins.larq_ops.tests.others import cases

DATA = Path(__file__).with_name("larq.npz.xz")
#: Loads the compiled part alone: the package imports TensorFlow.
_CHILD = """
import importlib.util, pathlib, sys
import numpy as np
package = importlib.util.find_spec("larq_compute_engine").submodule_search_locations[0]
path = pathlib.Path(package) / "tflite" / "python" / "interpreter_wrapper_lite.so"
spec = importlib.util.spec_from_file_location("interpreter_wrapper_lite", path)
larq = importlib.util.module_from_spec(spec)
spec.loader.exec_module(larq)
asked, answers = np.load(sys.argv[1]), {}
for name in asked.files:
    if name.endswith("_model"):
        case = name[:-6]
        reference, indirect = asked[case + "_kernels"].tolist()
        feeds = [asked[case + "_feed" + str(i)] for i in range(9) if case + "_feed" + str(i) in asked.files]
        interpreter = larq.LiteInterpreter(asked[name].tobytes(), 1, reference, indirect, False)
        [answers[case]] = interpreter.predict(feeds)
np.savez(sys.argv[2], **answers)
"""


def main(python: str) -> None:
    """Ask for all answers and write them down."""
    asked: dict[str, Any] = {}
    for number, layer in enumerate(layers()):
        # Its optimized kernels take no zeros around a map but for floats and one of them no groups; its reference kernel takes no odd
        # number of channels.
        grouped, late = layer.groups > 1, layer.has_late_zeros
        reference = not late and (grouped or layer.pad_values == 0)
        asked |= _asked(f"layer{number}", layer.model(), layer.feeds(), (reference, grouped and late))
    for name, (model, feed) in cases().items():
        asked |= _asked(name, model, [feed], (False, False))
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question.npz"), Path(folder, "answer.npz")
        np.savez(question, **asked)
        subprocess.run([python, "-c", _CHILD, question, answer], check=True)
        with np.load(answer) as answers:
            file = io.BytesIO()
            np.savez(file, **answers)
    DATA.write_bytes(lzma.compress(file.getvalue(), preset=9))


def _asked(name: str, model: bytes, feeds: list[Any], kernels: tuple[bool, bool]) -> dict[str, Any]:
    return {
        f"{name}_model": np.frombuffer(model, np.uint8),
        f"{name}_kernels": np.array(kernels),
        **{f"{name}_feed{number}": feed for number, feed in enumerate(feeds)},
    }


if __name__ == "__main__":
    main(sys.argv[1])
