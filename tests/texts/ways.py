"""Every way of failing, or of printing, that is at hand: each yields the texts that a program or a person would see."""

from __future__ import annotations

import copy
import io
import logging
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from oplet import Interpreter, Limits, Model, ModelBuilder, MutableOpResolver, Registration, SimpleDelegate, ensure
from oplet.errors import OpletError
from oplet.schema import tables
from oplet.schema.table import Table

#: Characters that a text may have.
LONGEST = 17_000  # of a `repr`, in which backslashes are doubled


def check(text: str, lines: bool = False) -> None:
    """Hold a text against what each must be.

    Args:
        lines: whether it has several lines.
    """
    text.encode()
    wrong = {c for c in text if not c.isprintable() and not (lines and c == "\n")}
    assert not wrong, f"{wrong} in {text[:2000]!r}"
    assert lines or len(text) < LONGEST, len(text)


def check_error(error: BaseException) -> None:
    """Hold an error against it, in all forms that it is printed in, and see that it can be sent elsewhere."""
    assert isinstance(error, OpletError), repr(error)
    for text in (str(error), repr(error), *(arg for arg in error.args if isinstance(arg, str))):
        check(text)
    check("".join(traceback.format_exception(type(error), error, None, chain=False)), lines=True)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(other), str(other), repr(other)) == (type(error), str(error), repr(error))


@contextmanager
def heard() -> Iterator[None]:
    """Hold all warnings and log records against it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("oplet")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    check(stream.getvalue(), lines=True)
    for warning in caught:
        check(str(warning.message))


def attempt(call: Callable[[], Any]) -> Any:
    """What a call returns; None after an error, which is held against it."""
    try:
        return call()
    except Exception as error:
        check_error(error)
        return None


def named(data: bytes, name: str) -> bytes:
    """The model with every string in it set to a name, less the halves of surrogate pairs, which no file holds."""
    name = "".join(c for c in name if not "\ud800" <= c < "\udc80" and not "\udcff" < c < "\ue000")
    model = Model.from_bytes(data)
    _rename(model.root, name)
    for number, buffer in enumerate(model.root.external_buffer_groups or []):
        buffer.name = f"{name}{number}"
    return Model(model.root).to_bytes()


def _rename(table: Table, name: str) -> None:
    for field in table.fields:
        value = getattr(table, field.name)
        if field.kind == "string" and (value or isinstance(table, tables.Model | tables.SubGraph | tables.Tensor)):
            setattr(table, field.name, name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Table):
                _rename(inner, name)


class Talkative(SimpleDelegate):
    """Fails with the names of what it is shown."""

    def __init__(self, place: str) -> None:
        self.place = place

    def is_node_supported(self, context: Any, node: Any) -> bool:
        if self.place == "asked":
            _fail(node)
        return self.place != "refuses"

    def create_kernel(self, params: Any) -> Any:
        _fail(params.nodes[0])


def _fail(node: Any) -> NoReturn:
    tensor = next((tensor for tensor in [*node.inputs, *node.outputs] if tensor is not None), None)
    raise KeyError(
        ValueError(f"{node.op_name}: {'' if tensor is None else tensor.name}\n"), "" if tensor is None else tensor.name
    )


def _talking(place: str, how: Callable[[Any], Any]) -> Registration:
    def prepare(context: Any, node: Any) -> None:
        if place == "prepare":
            how(node)
        for tensor in node.outputs:
            context.resize_tensor(tensor, tensor.shape)

    def invoke(context: Any, node: Any) -> None:
        how(node)

    return Registration(prepare=prepare, invoke=invoke)


def _refuse(node: Any) -> None:
    ensure(False, f"not {node.outputs[0].name}\x1b, {node.op_name}, {node.outputs[0]!r} of {node!r}")


def resolvers(data: bytes) -> Iterator[MutableOpResolver]:
    """Kernels for the custom ops of a model that fail with the names that they see."""
    codes = {code.custom_code for code in Model.from_bytes(data).root.operator_codes or [] if code.custom_code}
    for place in ("prepare", "invoke"):
        for how in (_fail, _refuse):
            resolver = MutableOpResolver()
            for code in codes:
                resolver.add_custom(code, _talking(place, how))
            yield resolver


def use(interpreter: Interpreter, name: str) -> None:
    """Do with an interpreter what a program may do, rightly and wrongly."""
    attempt(interpreter.allocate_tensors)
    check(repr(interpreter))
    for report in attempt(interpreter.explain) or []:
        check(report.why)
        check(repr(report))
    for detail in interpreter.get_tensor_details():
        index = detail["index"]
        attempt(lambda index=index: interpreter.get_tensor(index))
        attempt(lambda index=index: interpreter.set_tensor(index, np.zeros([1] * 7, np.float64)))
        attempt(lambda index=index: interpreter.set_tensor(index, [name]))
        attempt(lambda index=index: interpreter.resize_tensor_input(index, [0] * 9, strict=True))
        attempt(lambda index=index: interpreter.resize_tensor_input(index, [name]))
    attempt(interpreter.invoke)
    attempt(lambda: interpreter.get_signature_runner("nobody's"))
    for key in [name, *interpreter.get_signature_list()]:
        runner = attempt(lambda key=key: interpreter.get_signature_runner(key))
        if runner is not None:
            check(repr(runner))
            attempt(runner)
            attempt(lambda runner=runner: runner(**{name: 1}))
            attempt(lambda runner=runner: runner(**{f"{name}?": [name]}))
            attempt(runner.get_input_details)
    attempt(lambda: interpreter.get_tensor(10**6))
    attempt(interpreter.close)


def everything(data: bytes, name: str, folder: Path) -> None:
    """Load, print, run, change and write a model."""
    with heard():
        for arguments in ({}, {"limits": Limits(max_tensor_bytes=1)}, {"limits": Limits(max_nodes=1)}, {"plugins": []}):
            interpreter = attempt(lambda arguments=arguments: Interpreter(model_content=data, **arguments))
            if interpreter is not None:
                use(interpreter, name)
        for resolver in resolvers(data):
            interpreter = attempt(lambda resolver=resolver: Interpreter(model_content=data, op_resolver=resolver))
            if interpreter is not None:
                use(interpreter, name)
        for place in ("asked", "refuses", "made"):
            delegates = [Talkative(place)]
            interpreter = attempt(lambda delegates=delegates: Interpreter(model_content=data, experimental_delegates=delegates))
            if interpreter is not None:
                for report in interpreter.delegation_reports():
                    check(report.error)
                use(interpreter, name)
        attempt(lambda: Interpreter(model_path=str(folder / name[:40])))
        model = attempt(lambda: Model.from_bytes(data))
        if model is not None:
            check(repr(model.root))
            check(repr(model))
            attempt(lambda: model.save(folder / "saved.tflite"))
            attempt(lambda: model.save(folder / "none" / f"{name[:40]}.tflite"))
            attempt(lambda: ModelBuilder.from_model(model).to_bytes())
