"""What the delegate takes, what it leaves alone and why, its options, and what stays on the device."""

from __future__ import annotations

import re
import threading
from typing import Any

import jax
import numpy as np
import pytest
from tests.lifecycle.growth import resident

from oplet import Interpreter, Limits, load_delegate
from oplet.errors import InvokeError
from oplet.schema.options import AddOptions, FullyConnectedOptions, LocalResponseNormalizationOptions, MulOptions
from oplet_testing import Graph, Op, Spec, graph_model, invoke, run_op
from oplet_xla_delegate import device as devices
from oplet_xla_delegate import ops, partition

F32 = np.float32
MAP = Spec(F32, [1, 1, 1, 4])
NORM = LocalResponseNormalizationOptions(radius=1, bias=1, alpha=1, beta=0.5)
CHAIN = graph_model(
    Graph(
        dict.fromkeys("abcdef", MAP),
        "a",
        "f",
        [
            Op("TANH", "a", "b"),
            Op("ABS", "b", "c"),
            Op("LOCAL_RESPONSE_NORMALIZATION", "c", "d", NORM),
            Op("NEG", "d", "e"),
            Op("ADD", "e e", "f", AddOptions()),
        ],
    )
)
WHOLE = graph_model(Graph(dict.fromkeys("abc", MAP), "a", "c", [Op("TANH", "a", "b"), Op("ADD", "b a", "c", AddOptions())]))
X = np.array([-1, 0, 1, 2], F32).reshape(1, 1, 1, 4)


def opened(model: bytes, limits: Limits | None = None, **options: object) -> Interpreter:
    delegate = load_delegate("xla", {"device": "cpu", **options})
    return Interpreter(model_content=model, experimental_delegates=[delegate], limits=limits)


def report(model: bytes, **options: object) -> tuple[list[list[int]], dict[int, str]]:
    [found] = opened(model, **options).delegation_reports()
    return found.partitions, found.unsupported


def test_it_takes_what_it_translates_and_says_why_not_the_rest() -> None:
    partitions, refused = report(CHAIN)
    assert partitions == [[0, 1], [3, 4]]
    assert refused == {2: "LOCAL_RESPONSE_NORMALIZATION is none of the operators that are translated"}


def test_it_says_where_a_partition_runs_and_what_crosses() -> None:
    ops = [
        Op("TANH", "a", "b"),
        Op("LOCAL_RESPONSE_NORMALIZATION", "b", "c", NORM),
        Op("ADD", "b c", "d", AddOptions()),
        Op("MUL", "d w", "e", MulOptions()),
    ]
    tensors = {**dict.fromkeys("abcd", Spec(F32, [1, 1, 4, 5])), "w": np.ones((1, 1, 4, 5), F32), "e": Spec(F32, [1, 1, 4, 5])}
    interpreter = opened(graph_model(Graph(tensors, "a", "e", ops)))
    first, _, second = interpreter.explain()
    assert first.is_claimed
    assert re.search(r"; one function on cpu:0 \(cpu\), compiled in \d+\.\d\d s; an invoke copies 80 bytes there", first.why)
    assert first.why.endswith("80 back as far as they are read; 0 bytes of constants are there")
    # What the first partition made is on the device; only the kernel's values are copied.
    assert "an invoke copies 80 bytes there" in second.why
    assert second.why.endswith("80 bytes of constants are there")


def test_options_limit_the_partitions() -> None:
    assert report(CHAIN, max_partitions=1)[0] == [[0, 1]]
    partitions, refused = report(CHAIN, min_nodes=3)
    assert not partitions
    assert refused[0] == "its partition of 2 nodes is left out (min_nodes=3, max_partitions=0)"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_nodes": "many"}, "'min_nodes=many' is none of its options"),
        ({"threads": 1}, "'threads=1' is none of its options"),
        ({"device": "npu"}, "device=npu is none of auto, cpu, gpu, tpu"),
        ({"device": "cpu:9999"}, "device=cpu:9999 is not there"),
        ({"precision": "double"}, "precision=double is none of highest, tf32, bf16"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        load_delegate("xla", options)


def test_a_device_that_is_not_there_is_refused_with_those_that_are() -> None:
    missing = "tpu" if jax.default_backend() != "tpu" else "gpu"
    with pytest.raises(ValueError, match=f"device={missing} is not there: on this machine jax finds "):
        load_delegate("xla", {"device": missing})


def test_a_partition_that_answers_otherwise_is_given_back_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from oplet_xla_delegate import translators

    translators.translator("TANH")
    wrong = translators._KNOWN["TANH"]._replace(translate=lambda trace, node, x: jax.numpy.sin(x))
    monkeypatch.setitem(translators._KNOWN, "TANH", wrong)
    partitions, refused = report(CHAIN)
    assert partitions == [[3, 4]]
    assert refused[0].startswith("XLA on cpu:0 (cpu) answers otherwise than oplet's kernels: tensor 2 'c'")
    unchecked = opened(CHAIN, check=0)
    assert unchecked.delegation_reports()[0].partitions == [[0, 1], [3, 4]]
    np.testing.assert_array_equal(invoke(opened(CHAIN), X)[0], run_op(CHAIN, X)[0])


def test_a_function_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = opened(WHOLE)
    monkeypatch.setattr(partition, "_compare", lambda *_: pytest.fail("it is compared again"))
    assert opened(WHOLE).delegation_reports()[0].partitions == kept.delegation_reports()[0].partitions == [[0, 1]]


def test_a_partition_that_does_not_compile_is_given_back_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(self: Any, lowered: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes.\nA page of numbers")

    monkeypatch.setattr(devices.Device, "compile", refuses)
    interpreter = opened(CHAIN)
    [found] = interpreter.delegation_reports()
    assert not found.partitions
    assert found.unsupported[0] == "XLA does not run its partition: RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."
    np.testing.assert_array_equal(invoke(interpreter, X)[0], run_op(CHAIN, X)[0])


def test_a_device_without_memory_fails_an_invoke_with_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = opened(WHOLE)
    for rows in (2, 1):  # for both there is a function now
        interpreter.resize_tensor_input(0, [rows, 1, 1, 4])
        interpreter.allocate_tensors()

    def refuses(self: Any, array: Any) -> Any:
        raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory\nA page of numbers")

    monkeypatch.setattr(devices.Device, "put", refuses)
    interpreter.resize_tensor_input(0, [2, 1, 1, 4])
    interpreter.allocate_tensors()
    with pytest.raises(InvokeError, match=r"XLA fails on cpu:0 \(cpu\): RESOURCE_EXHAUSTED: Out of memory") as caught:
        interpreter.invoke()
    assert "A page" not in str(caught.value)


def test_results_stay_on_the_device_and_go_there_again() -> None:
    delegate = load_delegate("xla", {"device": "cpu"})
    interpreter = Interpreter(model_content=WHOLE, experimental_delegates=[delegate])
    interpreter.allow_buffer_handle_output = True
    invoke(interpreter, X)
    [source], [out] = interpreter.get_input_details(), interpreter.get_output_details()
    wanted = np.tanh(X) + X
    for _ in range(3):
        handle, owner = interpreter.get_buffer_handle(out["index"])
        assert isinstance(handle, jax.Array)
        assert owner is delegate
        np.testing.assert_allclose(np.from_dlpack(handle), wanted, rtol=1e-5, atol=1e-6)
        interpreter.set_buffer_handle(source["index"], handle, delegate)
        interpreter.invoke()
        wanted = np.tanh(wanted) + wanted
    np.testing.assert_allclose(interpreter.get_tensor(out["index"]), wanted, rtol=1e-5)
    interpreter.set_buffer_handle(source["index"], np.array(X), delegate)  # whatever has __dlpack__
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(out["index"]), np.tanh(X) + X, rtol=1e-5)
    interpreter.set_buffer_handle(source["index"], None, delegate)
    interpreter.set_tensor(source["index"], X + 1)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(out["index"]), np.tanh(X + 1) + X + 1, rtol=1e-5)


def weighted(seed: int = 1) -> bytes:
    weights = np.random.default_rng(seed).standard_normal((32, 4)).astype(F32)
    tensors = {"x": Spec(F32, [3, 4]), "w": weights, "y": Spec(F32, [3, 32])}
    return graph_model(Graph(tensors, "x", "y", [Op("FULLY_CONNECTED", "x w", "y", FullyConnectedOptions())]))


def test_constants_are_on_the_device_once_for_all_interpreters() -> None:
    before = jax.live_arrays()
    first, second = opened(weighted(7)), opened(weighted(7))  # constants that no other test has
    assert first.delegation_reports()[0].partitions == second.delegation_reports()[0].partitions == [[0]]
    assert len([a for a in jax.live_arrays() if not any(a is b for b in before) and a.shape == (32, 4)]) == 1


def test_a_shape_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[Any] = []
    lower = devices.Device.compile
    monkeypatch.setattr(devices.Device, "compile", lambda self, lowered: (compiled.append(1), lower(self, lowered))[1])
    interpreter = opened(WHOLE)
    for rows in (2, 1, 2, 3, 2):
        interpreter.resize_tensor_input(0, [rows, 1, 1, 4])
        interpreter.allocate_tensors()
        x = np.repeat(X, rows, 0)
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(2), np.tanh(x) + x, rtol=1e-5)
    assert len(compiled) == 3


def test_changing_inputs_of_many_invokes_in_two_threads_give_their_own_answers() -> None:
    wrong: list[Any] = []

    def work(seed: int) -> None:
        interpreter, random = opened(WHOLE), np.random.default_rng(seed)
        interpreter.allocate_tensors()
        for _ in range(100):
            x = random.standard_normal(X.shape).astype(F32)
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            if not np.allclose(interpreter.get_tensor(2), np.tanh(x) + x, rtol=1e-4, atol=1e-5):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_thousand_invokes_with_changing_inputs_keep_no_memory_on_the_host_or_the_device() -> None:
    interpreter = opened(WHOLE)
    interpreter.resize_tensor_input(0, [4096, 1, 1, 4])
    interpreter.allocate_tensors()
    x = np.repeat(X, 4096, 0)

    def run(times: int) -> None:
        for number in range(times):
            interpreter.set_tensor(0, x + F32(number))
            interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(2), np.tanh(x + number) + x + number, rtol=1e-4, atol=1e-5)

    run(50)
    arrays, before = len(jax.live_arrays()), resident()
    run(1000)
    assert len(jax.live_arrays()) <= arrays
    assert resident() - before < 16 << 20  # one of its 64 kB tensors kept by each invoke would be 64 MB


@pytest.mark.parametrize(("precision", "most"), [("tf32", 1e-2), ("bf16", 5e-2)])
def test_less_precision_is_near(precision: str, most: float) -> None:
    x = np.random.default_rng(2).standard_normal((3, 4)).astype(F32)
    interpreter = opened(weighted(), precision=precision)
    assert interpreter.delegation_reports()[0].partitions == [[0]]
    [got], [wanted] = invoke(interpreter, x), run_op(weighted(), x)
    assert np.abs(got - wanted).max() <= most * np.abs(wanted).max()


def test_every_module_of_operators_registers_some() -> None:
    from pathlib import Path

    from oplet_xla_delegate import translators

    translators.translator("ADD")
    homes = {found.translate.__module__.rpartition(".")[2] for found in translators._KNOWN.values()}
    assert homes == {path.stem for path in Path(ops.__path__[0]).glob("*.py")} - {"__init__"}
