"""Run a bad model as a program would, and hold its answer against what it must be."""

from __future__ import annotations

import re
import struct
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Model
from oplet.errors import OpletError
from oplet.schema import tables
from oplet.schema.options import AddOptions
from oplet_testing.one_op import Spec, one_op_model

#: Which tests stand for which row of the list (section 6.4), and for which class of advisories (section 6.2; "class 7").
TABLE: dict[int | str, list[str]] = defaultdict(list)

#: CPU seconds for an answer, and characters of its message.
SECONDS, LONGEST = 2.0, 4000

Test = TypeVar("Test", bound=Callable[..., Any])


def raising(error: BaseException) -> Callable[..., Any]:
    """A method of a kernel or a delegate that raises this."""

    def method(*arguments: Any) -> Any:
        raise error

    return method


def rows(*numbers: int | str) -> Callable[[Test], Test]:
    """Note that a test stands for these rows."""

    def note(test: Test) -> Test:
        for number in numbers:
            TABLE[number].append(f"{test.__module__}.{test.__name__}")
        return test

    return note


class Bad(NamedTuple):
    """A model that must be refused.

    Attributes:
        name: the test's id.
        rows: what it stands for in the list.
        words: a pattern that the message must match.
        make: makes the model.
        feeds: values by input position; zeros for the others.
    """

    name: str
    rows: tuple[int | str, ...]
    words: str
    make: Callable[[], bytes]
    feeds: tuple[Any, ...] = ()


def noted(cases: Iterable[Bad], module: str) -> list[Bad]:
    """The cases, noted in the table."""
    cases = list(cases)
    for case in cases:
        for row in case.rows:
            TABLE[row].append(f"{module}[{case.name}]")
    return cases


def run(model: bytes | None, feeds: tuple[Any, ...] = (), **arguments: Any) -> list[NDArray[Any]]:
    """Load, allocate, feed, invoke and read, as a program does."""
    interpreter = Interpreter(model_content=model, **arguments)
    try:
        interpreter.get_signature_list()
        interpreter.allocate_tensors()
        for position, detail in enumerate(interpreter.get_input_details()):
            if position < len(feeds):
                interpreter.set_tensor(detail["index"], feeds[position])
            elif detail["dtype"] not in (np.object_, np.bytes_):
                interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
        interpreter.invoke()
        return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]
    finally:
        interpreter.close()


def refusal(call: Callable[[], Any], words: str) -> OpletError:
    """The error of a call, which must be one of oplet's, soon, in one printable line that matches `words`."""
    start = time.process_time()
    try:
        answer = call()
    except OpletError as error:
        seconds = time.process_time() - start
        check_message(type(error).__module__, str(error), words)
        assert seconds < SECONDS, f"the answer took {seconds:.1f} s"
        return error
    raise AssertionError(f"it was not refused: {str(answer)[:300]}")


def check_message(module: str, message: str, words: str) -> None:
    """Hold a message against what every message must be."""
    assert module == "oplet.errors"
    assert re.search(words, message), message[:LONGEST]
    assert len(message) < LONGEST
    assert "\x00" not in message
    message.encode()  # no halves of surrogate pairs, which no terminal can print


def base(change: Callable[[tables.Model], None] | None = None) -> bytes:
    """A model of one node, y = x + c over two floats, changed."""
    x = Spec("float32", [2])
    data = one_op_model("ADD", [x, np.ones(2, np.float32)], [x], AddOptions())
    return data if change is None else edited(data, change)


def edited(data: bytes, change: Callable[[tables.Model], None]) -> bytes:
    """A model whose tables were changed by hand."""
    model = Model.from_bytes(data)
    change(model.root)
    return Model(model.root).to_bytes()


def main(root: tables.Model) -> Any:
    """The first subgraph."""
    return (root.subgraphs or [])[0]


def i32(*values: int) -> NDArray[np.int32]:
    """A vector of indices."""
    return np.array(values, np.int32)


def sharing_tensors(count: int, number: int, value: bytes, step: int | None = None) -> bytes:
    """The base model with another vector of tensors, `count` of them, which have one field each and share what it leads to.

    Args:
        number: the field, below 4.
        value: what its offset leads to.
        step: how many bytes further the next tensor's field leads; None if all offsets of the vector lead to one table.
    """
    data = bytearray(base())

    def follow(position: int) -> int:
        return position + int(struct.unpack_from("<I", data, position)[0])

    def field(table: int, id: int) -> int:
        vtable = table - int(struct.unpack_from("<i", data, table)[0])
        return table + int(struct.unpack_from("<H", data, vtable + 4 + 2 * id)[0])

    subgraph = follow(follow(field(follow(0), 2)) + 4)
    data.extend(bytes(-len(data) % 4))
    vector, made = len(data), 1 if step is None else count
    vtable = vector + 4 + 4 * count
    places = [vtable + 12 + 8 * (i % made) for i in range(count)]
    data.extend(struct.pack("<I", count))
    data.extend(b"".join(struct.pack("<I", place - (vector + 4 + 4 * i)) for i, place in enumerate(places)))
    data.extend(struct.pack("<HHHHHH", 12, 8, *(4 if i == number else 0 for i in range(4))))
    end = len(data) + 8 * made
    for i, place in enumerate(places[:made]):
        data.extend(struct.pack("<iI", place - vtable, end + i * (step or 0) - (place + 4)))
    data.extend(value)
    struct.pack_into("<I", data, field(subgraph, 0), vector - field(subgraph, 0))
    return bytes(data)
