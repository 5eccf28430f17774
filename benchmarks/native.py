"""What a node costs whose operator is in a compiled library, against the same one by a numpy kernel with a `bind` thunk.

python -m benchmarks.native [--nodes N] [--size N] [--rounds N]

Needs oplet-native-ops and a C compiler (cc).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from benchmarks import common  # first: it has BLAS use one thread

import numpy as np  # isort: skip

__all__ = ["can_run", "native"]

#: Negates its input: as little work as there can be, on both sides.
_SOURCE = """
#include "tflite/c/c_api_opaque.h"
static TfLiteStatus Invoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* x = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* from = TfLiteOpaqueTensorData(x);
  float* to = TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  const size_t count = TfLiteOpaqueTensorByteSize(x) / sizeof(float);
  for (size_t i = 0; i < count; ++i) to[i] = -from[i];
  return kTfLiteOk;
}
const TfLiteOperator* NegateOperator(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Negate", 1, NULL);
  TfLiteOperatorSetInvoke(op, Invoke);
  return op;
}
"""


def chain(nodes: int, size: int) -> bytes:
    """-(-(-(... x)))"""
    from oplet import ModelBuilder

    builder = ModelBuilder("chain")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", np.float32, [size])
    graph.set_inputs(x)
    for node in range(nodes):
        y = graph.add_tensor(f"y{node}", np.float32, [size])
        graph.add_operator("Negate", [x], [y])
        x = y
    graph.set_outputs(x)
    return builder.to_bytes()


def can_run() -> bool:
    """Whether there is what it needs here."""
    return sys.platform == "linux" and shutil.which("cc") is not None and find_spec("oplet_native_ops") is not None


def native(nodes: int = 1000, size: int = 8, rounds: int = 200) -> common.Section:
    """Measure a chain of such nodes, the two ways taking turns."""
    from oplet import Context, Interpreter, MutableOpResolver, Node, Registration
    from oplet_native_ops import cflags, load_ops

    def prepare(context: Context, node: Node) -> None:
        context.resize_tensor(node.outputs[0], node.inputs[0].shape)

    def bind(context: Context, node: Node) -> Callable[[], None]:
        negative, x, y = np.negative, node.inputs[0].data, node.outputs[0].data

        def run() -> None:
            negative(x, y)

        return run

    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "negate.c"), Path(folder, "libnegate.so")
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-O3", *cflags(), "-o", str(library), str(source)], check=True)
        compiled = load_ops(library)
        numpy = MutableOpResolver()
        numpy.add_custom("Negate", Registration(prepare=prepare, bind=bind))
        content = chain(nodes, size)
        invokes: dict[str, Callable[[], object]] = {}
        for name, resolver in {"numpy, bind": numpy, "compiled": compiled}.items():
            interpreter = Interpreter(model_content=content, op_resolver=resolver, num_threads=1)
            interpreter.allocate_tensors()
            interpreter.invoke()
            invokes[name] = interpreter.invoke
        seconds = common.take_turns(invokes, rounds)
    micro = {name: statistics.median(values) / nodes * 1e6 for name, values in seconds.items()}
    above = statistics.median(a - b for a, b in zip(seconds["compiled"], seconds["numpy, bind"])) / nodes * 1e6
    rows = [("numpy, bind", f"{micro['numpy, bind']:.3f}", ""), ("compiled", f"{micro['compiled']:.3f}", f"{above:+.3f}")]
    return common.Section(
        f"Compiled operators: {nodes:,} negations of {size} numbers",
        common.table(["", "microseconds a node#", "above numpy's, pair by pair#"], rows),
        {"microseconds": micro, "above": above},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    print(native(arguments.nodes, arguments.size, arguments.rounds).markdown)


if __name__ == "__main__":
    main()
