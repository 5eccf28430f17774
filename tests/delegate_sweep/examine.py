"""One model through oplet's own kernels, a delegate, and LiteRT as it is."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Limits, Model, load_delegate
from oplet.errors import LimitError, OpletError

__all__ = ["LIMITS", "WAYS", "Verdict", "examine"]

LIMITS = Limits(
    max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20, max_nodes=2_000, max_while_iterations=10_000, max_seconds=2.0
)
#: LiteRT's reference kernels, its optimized ones, and the default with XNNPACK.
WAYS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO")

Array = NDArray[Any]


class Verdict(NamedTuple):
    """What came of a model.

    Attributes:
        kind: "refused" by oplet's kernels, "kept" from the engine, "alike", "differs" from oplet's kernels (and from all of LiteRT's
            ways that run it, where they were asked), "like LiteRT" where it differs from oplet's kernels alone,
            "escaped" for an exception outside oplet.errors; "died" and "hung" come from outside.
        text: why, or where.
    """

    kind: str
    text: str = ""


def feeds(details: Sequence[dict[str, Any]], name: str) -> list[list[Array]]:
    """What the inputs are fed with, several times: usual values, small ones that may be indices, zeros, and the ends of each type."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    found = []
    for profile in ("usual", "small", "zeros", "ends"):
        arrays = []
        for detail in details:
            shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
            arrays.append(_value(rng, profile, shape, dtype))
        found.append(arrays)
    return found


def _value(rng: np.random.Generator, profile: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "OSU":
        made = np.empty(shape, object)
        made[...] = rng.choice(np.array([b"", b"a", b"word"], object), shape)
        return made
    if profile == "zeros":
        return np.zeros(shape, dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if profile == "ends":
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return rng.choice(np.array([info.min, info.max, 0, 1], dtype), shape).astype(dtype)
        return rng.choice(np.array([np.inf, -np.inf, np.nan, 3e38, -1e-40, 0]), shape).astype(dtype)
    if profile == "small":
        return rng.integers(0, 3, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)
    return rng.uniform(-3, 3, shape).astype(dtype)


class _Run(NamedTuple):
    """What an interpreter made of a model: for each of the feeds its outputs, or the error."""

    outputs: list[list[Array] | str]
    claimed: int


def _run(model: bytes, name: str, **arguments: Any) -> _Run:
    interpreter = Interpreter(model_content=model, limits=LIMITS, **arguments)
    try:
        interpreter.allocate_tensors()
        claimed = sum(len(nodes) for report in interpreter.delegation_reports() for nodes in report.partitions)
        if arguments and not claimed:
            return _Run([], 0)
        outputs: list[list[Array] | str] = []
        for arrays in feeds(interpreter.get_input_details(), name):
            try:
                outputs.append(_invoked(interpreter, arrays))
            except OpletError as error:
                outputs.append(str(error))
                if isinstance(error, LimitError):
                    break  # once is enough to see that it ends
        return _Run(outputs, claimed)
    finally:
        interpreter.close()


def _invoked(interpreter: Any, arrays: Sequence[Array]) -> list[Array]:
    for detail, array in zip(interpreter.get_input_details(), arrays):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def bare(model: bytes, name: str, way: str) -> list[list[Array] | str]:
    """LiteRT's answers, or its complaints."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    try:
        interpreter = LiteRT(model_content=model, num_threads=1, experimental_op_resolver_type=OpResolverType[way])
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]
    outputs: list[list[Array] | str] = []
    for arrays in feeds(details, name):
        try:
            outputs.append(_invoked(interpreter, arrays))
        except Exception as error:
            outputs.append(f"{type(error).__name__}: {error}")
    return outputs


def examine(
    model: bytes, name: str, delegate: str, options: dict[str, Any], at: Callable[[str], None], *, every_way: bool = False
) -> Verdict:
    """Run a model and say what came of it.

    Args:
        delegate: its name.
        at: is told what comes next, so that a death can be laid to it.
        every_way: ask LiteRT by itself also where the delegate agrees with oplet's kernels.
    """
    random.seed(0)
    with np.errstate(all="ignore"):
        at("oplet")
        try:
            own = _run(model, name)
        except OpletError as error:
            return Verdict("refused", str(error))
        except Exception as error:
            return Verdict("oplet escaped", f"{type(error).__name__}: {error}")
        at("delegate")
        try:
            found = _run(model, name, experimental_delegates=[load_delegate(delegate, options)])
        except OpletError as error:
            return Verdict("failed", str(error))
        except Exception as error:
            return Verdict("escaped", f"{type(error).__name__}: {error}")
        differing = _difference(own.outputs, found.outputs, delegate, options) if found.claimed else ""
        if not differing and not every_way:
            return Verdict("alike" if found.claimed else "kept")
        asked = []
        plain = _with_shapes(model, own.outputs)
        for way in WAYS:
            at(way)
            theirs = bare(plain, name, way)
            if found.claimed and differing and not _difference(found.outputs, theirs, delegate, options):
                asked.append(way)
        if not found.claimed:
            return Verdict("kept")
        if not differing:
            return Verdict("alike")
        return Verdict("like LiteRT" if asked else "differs", differing)


def _with_shapes(model: bytes, outputs: Sequence[list[Array] | str]) -> bytes:
    """The model with the shapes that its outputs have: with others, LiteRT chooses other kernels than for a model that says them."""
    found = next((answer for answer in outputs if not isinstance(answer, str)), None)
    if found is None:
        return model
    root = Model.from_bytes(model).root
    [graph] = root.subgraphs or []
    for index, array in zip(graph.outputs, found):
        graph.tensors[int(index)].shape = np.array(array.shape, np.int32)
    return Model(root).to_bytes()


def _difference(
    ours: Sequence[list[Array] | str], theirs: Sequence[list[Array] | str], delegate: str, options: dict[str, Any]
) -> str:
    """Where answers differ, but where one side refuses the values; "" if nowhere."""
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if isinstance(a, str) or isinstance(b, str):
            continue
        for place, (x, y) in enumerate(zip(a, b)):
            if (x.dtype, x.shape) != (y.dtype, y.shape):
                return f"feed {number}, output {place}: {x.dtype} {list(x.shape)} or {y.dtype} {list(y.shape)}"
            if number == 3 and (x.dtype.kind in "fc" or delegate == "openvino"):
                continue  # of infinities and what is no number, summed in another order, anything comes; OpenVINO quantizes NaN to either end
            wrong = _wrong(x, y, steps=2 if options.get("quantized") else 1 if delegate == "openvino" else 0)
            if wrong.any():
                return f"feed {number}, output {place}: {int(wrong.sum())} of {x.size}, {x[wrong][:3].tolist()} or {y[wrong][:3].tolist()}"
    return ""


def _wrong(x: Array, y: Array, steps: int) -> NDArray[np.bool_]:
    if x.dtype.kind in "fc":
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        tolerance = 2e-2 if x.dtype.itemsize == 2 else 1e-4
        x, y = x.astype(wide), y.astype(wide)
        largest = float(np.abs(y[np.isfinite(y)]).max(initial=1e-30))
        return ~np.isclose(x, y, tolerance, tolerance * largest, equal_nan=True)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 1:
        return np.abs(x.astype(int) - y.astype(int)) > steps
    return np.asarray(x != y)
