"""The walk through the runtime in docs/how-it-runs.md: the files of a real run, in the order in which it enters them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np
from tests.places import ROOT

import oplet
from oplet import Interpreter

CORE = Path(oplet.__file__).parent
MODEL = ROOT / "examples" / "digits" / "digits_float32.tflite"
MOST = 12


def walk() -> list[str]:
    """The numbered files of the page."""
    return re.findall(r"^\d+\. `([\w/]+\.py)`", (ROOT / "docs" / "how-it-runs.md").read_text(), re.MULTILINE)


def run(folder: Path) -> None:
    """Run a model that nobody has opened before, as what is known of a model is not found out again."""
    number = len(list(folder.iterdir()))
    model = folder / f"{number}.tflite"
    model.write_bytes(MODEL.read_bytes() + bytes(4 * number))
    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    detail = interpreter.get_input_details()[0]
    interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()
    interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def entered(folder: Path) -> list[str]:
    """The modules of the core whose functions a run calls, in the order of the first call."""
    seen: dict[str, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and CORE in path.parents:
            seen.setdefault(path.relative_to(CORE).as_posix())

    run(folder)  # what is imported and made once for all is no part of the walk
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run(folder)
    finally:
        sys.setprofile(before)
    return list(seen)


def test_the_walk_on_the_page_is_the_way_of_a_real_run(tmp_path: Path) -> None:
    page = walk()
    assert page == [path for path in entered(tmp_path) if path in page]


def test_the_walk_is_short_and_visits_each_file_once() -> None:
    page = walk()
    assert page[0] == "runtime/interpreter.py"
    assert 10 <= len(page) <= MOST
    assert len(set(page)) == len(page)


def test_every_module_that_the_page_names_exists() -> None:
    text = (ROOT / "docs" / "how-it-runs.md").read_text()
    for name in re.findall(r"`((?:runtime|model|schema|delegates|plugins)/[\w/]+\.py)`", text):
        assert (ROOT / "core" / "src" / "oplet" / name).is_file(), name
