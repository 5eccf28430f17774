"""What the flex delegate says and does where TensorFlow is not needed, or not there."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from plugins.flex_delegate.tests.flex_models import FlexModel, abs_model, opened
from tests.children import run_child

from oplet import Interpreter, TensorType, load_delegate
from oplet.errors import DelegateLoadError, UnresolvedOpError
from oplet_flex_delegate import library
from oplet_flex_delegate.guards.dangers import never
from oplet_flex_delegate.guards.served import SERVED
from oplet_flex_delegate.guards.text_sizes import image_bytes


def refusal(content: bytes) -> str:
    """Why the delegate leaves the first node alone."""
    [report] = opened(content).delegation_reports()
    return report.unsupported[0]


@pytest.fixture
def no_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    library._imported.cache_clear()
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.setattr(library, "_imported", library._imported.__wrapped__)


def test_a_model_without_flex_nodes_imports_nothing_of_tensorflow() -> None:
    program = (
        "import sys, numpy as np\n"
        "from oplet import Interpreter, load_delegate\n"
        "from oplet_testing import Graph, Op, Spec, graph_model\n"
        "model = graph_model(Graph(dict.fromkeys('xy', Spec('float32', [3])), 'x', 'y', [Op('ABS', 'x', 'y')]))\n"
        "interpreter = Interpreter(model_content=model, experimental_delegates=[load_delegate('flex')])\n"
        "interpreter.allocate_tensors(); interpreter.invoke()\n"
        "[report] = interpreter.delegation_reports(); print(report.unsupported)\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('tensorflow', 'keras')])\n"
    )
    done = run_child([sys.executable, "-c", program])
    assert done.stdout.splitlines() == ['{0: "ABS is no operator of TensorFlow\'s"}', "[]"]
    assert "TensorFlow is imported" not in done.stderr


@pytest.mark.usefixtures("no_tensorflow")
def test_without_tensorflow_the_reason_says_how_to_install_it() -> None:
    reason = "TensorFlow, which runs Flex operators, is not installed; install it: pip install tensorflow-cpu"
    assert refusal(abs_model()) == reason
    interpreter = Interpreter(model_content=abs_model(), plugins=["oplet-flex-delegate", "oplet-builtin-ops"])
    with pytest.raises(UnresolvedOpError, match="pip install tensorflow-cpu"):
        interpreter.allocate_tensors()


@pytest.mark.usefixtures("no_tensorflow")
@pytest.mark.parametrize(
    ("op", "reason"),
    [
        ("WriteFile", "it reads or writes files"),
        ("PyFunc", "it runs code of the program or of a compiler"),
        ("QueueDequeueV2", "it waits for what another thread or process sends, for ever if nobody does"),
        ("Abort", "it ends the process"),
        ("SleepDataset", "it makes or reads a data set, which has threads, files or functions of its own"),
        ("PartitionedCall", "it calls functions, and a .tflite model carries none"),
        ("XlaSort", "it runs code of the program or of a compiler"),
    ],
)
def test_an_operator_that_reaches_outside_is_left_alone_and_tensorflow_not_asked(op: str, reason: str) -> None:
    assert refusal(abs_model(op)) == f"TensorFlow's {op} is left alone: {reason}"


def test_what_nobody_tried_is_left_alone() -> None:
    assert (
        refusal(abs_model("Xyzzy"))
        == "TensorFlow's Xyzzy was not tried for what it does to the process, or is none of its operators"
    )


def test_custom_options_that_hold_no_nodedef_are_a_reason() -> None:
    model = FlexModel().tensor("x", np.float32, [3]).tensor("y", np.float32, [3])
    assert "its custom options" in refusal(model.node("FlexAbs", "x", "y", b"nothing").content("x", "y"))


def test_custom_options_of_another_operator_are_a_reason() -> None:
    from plugins.flex_ops.tests.nodedefs import flex_options

    model = FlexModel().tensor("x", np.float32, [3]).tensor("y", np.float32, [3])
    content = model.node("FlexAbs", "x", "y", flex_options("Neg", {"T": TensorType.FLOAT32})).content("x", "y")
    assert refusal(content) == "its custom options are those of 'Neg'"


@pytest.mark.parametrize("options", [{"threads": 2}, {"num_threads": "many"}, {"num_threads": 0}])
def test_an_option_that_it_does_not_have_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(DelegateLoadError, match="none of its options: num_threads"):
        load_delegate("flex", options)


def test_nothing_that_reaches_outside_is_served() -> None:
    assert not [op for op in SERVED if never(op)]


@pytest.mark.parametrize(
    ("data", "pixels"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x10\x00\x00\x00\x20\x00\x08\x02\x00\x00\x00", 0x1000 * 0x2000),
        (b"GIF89a\x00\x10\x00\x20,,", 0x1000 * 0x2000 * 2),
        (b"BM" + bytes(16) + b"\x00\x10\x00\x00\x00\xe0\xff\xff", 0x1000 * 0x2000),
        (b"\xff\xd8\xff\xc0\x00\x11\x08\x20\x00\x10\x00\x03", 0x1000 * 0x2000),
        (b"no picture", 0),
    ],
)
def test_the_size_of_a_picture_is_read_from_its_header(data: bytes, pixels: int) -> None:
    assert image_bytes(data) == pixels
