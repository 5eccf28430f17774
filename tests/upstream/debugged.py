"""What TensorFlow's quantization debugger says, and files whose interface it rewrote, with oplet's interpreter in the place of its own.

usage: python -m tests.upstream.debugged oplet | tensorflow; prints what was found as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

import oplet

lite = tf.lite.experimental


def replace() -> None:
    """Put oplet's interpreter wherever TensorFlow's own Python refers to its interpreter."""
    module = importlib.import_module("tensorflow.lite.python.interpreter")
    theirs = module.Interpreter
    for tool in ("tensorflow.lite.python.lite", "tensorflow.lite.tools.optimize.debugging.python.debugger"):
        inside = vars(importlib.import_module(tool))
        inside.update({name: oplet.Interpreter for name, value in inside.items() if value is theirs})
    module.Interpreter = oplet.Interpreter


def pictures() -> Iterator[list[np.ndarray]]:
    """What the quantizer looks at and the debugger measures."""
    for i in range(5):
        yield [(np.arange(16).reshape(1, 4, 4, 1) * (i + 1) / 10).astype(np.float32)]


def converter() -> Any:
    """A converter of one convolution."""
    kernel = tf.constant(np.array([-2.0, -1, 1, 2], np.float32).reshape(2, 2, 1, 1))
    module = tf.Module()
    spec = tf.TensorSpec((1, 4, 4, 1), tf.float32, "x")
    module.run = tf.function(lambda x: tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), input_signature=[spec])
    made = tf.lite.TFLiteConverter.from_concrete_functions([module.run.get_concrete_function()], module)
    made.experimental_lower_to_saved_model = False
    return made


def quantizing() -> Any:
    """A converter that calibrates only, as the debugger takes it."""
    made = converter()
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    made.representative_dataset = pictures
    made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    made._experimental_calibrate_only = True
    return made


def refused(action: Callable[[], Any]) -> str:
    """The message of the ValueError that the action raises."""
    try:
        action()
    except ValueError as error:
        return str(error)
    return ""


def debugged(whole: bool) -> dict[str, Any]:
    """The debugger's measures of layers and of the model; with `whole`, inputs and outputs are quantized too."""
    options = lite.QuantizationDebugOptions(
        layer_debug_metrics={"l1_norm": lambda error: np.mean(np.abs(error))},
        layer_direct_compare_metrics={"apart": lambda a, b, scale, zero: np.abs(a - (b.astype(int) - zero) * scale).max()},
        model_debug_metrics={"deviation": lambda a, b: np.std(a[0] - b[0])},
        fully_quantize=whole,
    )
    float_model = converter().convert()
    debugger = lite.QuantizationDebugger(
        converter=quantizing(), float_model_content=float_model, debug_dataset=pictures, debug_options=options
    )
    debugger.run()
    layers = [{name: float(value) for name, value in measures.items()} for measures in debugger.layer_statistics.values()]
    return {"layers": layers, "model": {name: float(value) for name, value in debugger.model_statistics.items()}}


def spared(**options: Any) -> str:
    """What the debugger says of a model of which nothing is quantized."""
    given = lite.QuantizationDebugOptions(**options)
    return refused(lambda: lite.QuantizationDebugger(converter=quantizing(), debug_dataset=pictures, debug_options=given))


def confused() -> str:
    """What the debugger says of two inputs for a model of one."""

    def twice() -> Iterator[list[np.ndarray]]:
        for [picture] in pictures():
            yield [picture, picture]

    return refused(lite.QuantizationDebugger(converter=quantizing(), debug_dataset=twice).run)


def rewritten(code: int, ops: str) -> list[str]:
    """The types of a quantized model's input and output, before and after they were rewritten to the type of this number."""
    library = importlib.import_module("tensorflow.lite.tools.optimize.python._pywrap_modify_model_interface")
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(5, "relu"), tf.keras.layers.Dense(2, "softmax")])
    made = tf.lite.TFLiteConverter.from_keras_model(model)
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    made.representative_dataset = lambda: ([np.full((1, 3), i, np.float32)] for i in range(10))
    made.target_spec.supported_ops = [tf.lite.OpsSet[ops]]
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder, f"{name}.tflite")) for name in ("before", "after")]
        Path(paths[0]).write_bytes(made.convert())
        library.modify_model_interface(*paths, code, code)
        types = []
        for path in paths:
            interpreter = importlib.import_module("tensorflow.lite.python.interpreter").Interpreter(model_path=path)
            interpreter.allocate_tensors()
            interpreter.invoke()
            for [detail] in (interpreter.get_input_details(), interpreter.get_output_details()):
                types.append(np.dtype(interpreter.get_tensor(detail["index"]).dtype).name)
        return types


def everything() -> dict[str, Any]:
    """All that is measured, by name."""
    int8, int16 = "TFLITE_BUILTINS_INT8", "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
    return {
        "floats outside": debugged(False),
        "integers throughout": debugged(True),
        "spared by operator": spared(denylisted_ops=["CONV_2D"]),
        "two inputs": confused(),
        "uint8": rewritten(3, int8),
        "int8": rewritten(9, int8),
        "int16": rewritten(7, int16),
    }


if __name__ == "__main__":
    if sys.argv[1] == "oplet":
        replace()
    print("FOUND", json.dumps(everything()))
