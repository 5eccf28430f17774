"""Print the answers of a folder's models to counted-up inputs, to be compared between Pythons: integers as they are, floats to 4 decimals."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from oplet import Interpreter


def main(folder: Path) -> None:
    """Run each .tflite file of the folder once."""
    for path in sorted(folder.glob("*.tflite")):
        interpreter = Interpreter(str(path))
        interpreter.allocate_tensors()
        for told in interpreter.get_input_details():
            value = np.arange(np.prod(told["shape"]), dtype=np.float64).reshape(told["shape"]) % 17
            value = value / 16 if np.dtype(told["dtype"]).kind == "f" else value * 4
            interpreter.set_tensor(told["index"], value.astype(told["dtype"]))
        interpreter.invoke()
        answers = [interpreter.get_tensor(told["index"]) for told in interpreter.get_output_details()]
        print(path.name, *(np.round(answer, 4).ravel().tolist() for answer in answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
