"""A program that uses models: python models.py MODEL FOLDER prints, as JSON, hashes of what came out."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from typing import Any

import numpy as np

from oplet import Interpreter, ModelBuilder
from oplet_predictor import Predictor


def fed(interpreter: Any) -> str:
    """The hash of the answer to some numbers."""
    interpreter.allocate_tensors()
    told = interpreter.get_input_details()[0]
    interpreter.set_tensor(told["index"], np.arange(np.prod(told["shape"])).reshape(told["shape"]).astype(told["dtype"]))
    interpreter.invoke()
    answer = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return hashlib.sha256(answer.tobytes()).hexdigest()


def outside(folder: str) -> str:
    """The answer of a model that was saved, with a constant in a file of its own."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = (graph.add_tensor(name, "float32", (4,)) for name in "xy")
    constant = graph.add_tensor(
        "gewicht_重み", "float32", (4,), external_buffer=builder.add_external_buffer("重み.bin", np.arange(4, dtype=np.float32))
    )
    graph.add_operator("ADD", [x, constant], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    path = os.path.join(folder, "mödel.tflite")
    builder.save(path)
    builder.save(path)  # in place of the one that is there
    return fed(Interpreter(path))


def main(model: str, folder: str) -> dict[str, str]:
    found = {"of a path": fed(Interpreter(model)), "read": fed(Interpreter(model, use_mmap=False))}
    found["threads"] = fed(Interpreter(model, num_threads=2))
    found["again"] = fed(Interpreter(model))
    found["auto"] = fed(Interpreter(model, experimental_delegates="auto:max_seconds=0.2"))
    found["outside"] = outside(folder)
    with Predictor(model) as predictor:
        [column] = predictor.inputs.values()
        rows = [np.full(column.shape, number, column.dtype) for number in range(3)]
        [name] = predictor.outputs
        found["predictor"] = hashlib.sha256(b"".join(row[name].tobytes() for row in predictor.map(rows, workers=2))).hexdigest()
    return found


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
