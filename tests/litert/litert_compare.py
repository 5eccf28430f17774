"""Runs a model and its rewritten form in ai-edge-litert and says whether they answer alike; test_round_trip.py starts it.

A process of its own, since LiteRT dies of some models. Reads lines `ZIP<tab>CASE<tab>CONSTANTS`, answers each with one line:
"start", then "same", "different: what", "unstable" (the original does not agree with itself) or "refused: why" (LiteRT does not
run the original).
"""

from __future__ import annotations

import io
import json
import sys
import zipfile
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from oplet import Model


def answers(model: bytes, steps: list[dict[str, Any]], data: Any) -> list[np.ndarray]:
    """What the model answers to the recorded inputs."""
    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    found: list[np.ndarray] = []
    for step in steps:
        feeds = [(item, data[item["key"]]) for item in step["inputs"]]
        feeds = [(item, value.astype(object) if item.get("string") and value.ndim else value) for item, value in feeds]
        if step["signature"] is not None:
            answer = interpreter.get_signature_runner(step["signature"])(**{item["name"]: value for item, value in feeds})
            found += [np.array(answer[name]) for name in sorted(answer)]
            continue
        indices = [detail["index"] for detail in interpreter.get_input_details()]
        if any(item.get("resize") for item, _ in feeds):
            for (item, value), index in zip(feeds, indices):
                if item.get("resize"):
                    interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
        for (_, value), index in zip(feeds, indices):
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        found += [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]
    return found


def alike(a: list[np.ndarray], b: list[np.ndarray]) -> str:
    """What differs; empty if nothing does."""
    if len(a) != len(b):
        return f"{len(a)} and {len(b)} outputs"
    for number, (x, y) in enumerate(zip(a, b)):
        same = x.tolist() == y.tolist() if x.dtype == object else x.tobytes() == y.tobytes()
        if x.dtype != y.dtype or x.shape != y.shape or not same:
            return f"output {number}"
    return ""


def compare(path: str, name: str, constants: str) -> str:
    """Run one case both ways."""
    with zipfile.ZipFile(path) as archive:
        steps = json.loads(archive.read(f"{name}/case.json"))["steps"]
        data = np.load(io.BytesIO(archive.read(f"{name}/io.npz")), allow_pickle=True)
        original = archive.read(f"{name}/model.tflite")
    if not steps:
        return "refused: nothing recorded"
    try:
        first = answers(original, steps, data)
    except Exception as error:
        return "refused: " + " ".join(str(error).split())[:200]
    rewritten = Model.from_bytes(original).to_bytes("outside" if constants == "outside" else None)
    try:
        difference = alike(first, answers(rewritten, steps, data))
    except Exception as error:
        return "different: " + " ".join(str(error).split())[:200]
    if difference and alike(first, answers(original, steps, data)):
        return "unstable"
    return f"different: {difference}" if difference else "same"


if __name__ == "__main__":
    for line in sys.stdin:
        print("start", flush=True)
        print(compare(*line.rstrip("\n").split("\t")), flush=True)
