"""The package is found where it is installed, and a network of all its operators runs by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.larq_ops.tests.layers import packed

from oplet import Interpreter, ModelBuilder, MutableOpResolver, PluginManager
from oplet.toolkit import tensor_type
from oplet_larq_ops import OPS, register_ops
from oplet_testing.one_op import Spec
from oplet_tools.describing.work import work_of_nodes


@pytest.mark.parametrize("op", OPS)
def test_it_serves(op: str) -> None:
    resolver = MutableOpResolver()
    register_ops(resolver)
    found = resolver.find_op(op, 1)
    assert found is not None
    assert (found.name, found.pure, resolver.versions(op)) == (op, True, [1])


def test_pip_installs_it_as_a_plugin() -> None:
    [plugin] = PluginManager(load=["oplet-larq-ops"]).providers("LceBconv2d")
    assert (plugin.name, plugin.distribution) == ("larq_ops", "oplet-larq-ops")


def test_a_network_is_its_training_time_arithmetic() -> None:
    """Signs, a convolution to bits, a pool, a convolution to floats, as floats of +1 and -1 give them."""
    random = np.random.default_rng(0)
    image = random.normal(size=(1, 8, 8, 40)).astype(np.float32)
    first, second = random.choice([-1, 1], (64, 3, 3, 40)), random.choice([-1, 1], (5, 1, 1, 64))
    options = {
        "channels_in": 40, "dilation_height_factor": 1, "dilation_width_factor": 1, "fused_activation_function": 0, "pad_values": 1,
        "padding": 0, "stride_height": 1, "stride_width": 1,
    }  # fmt: skip
    window = {"padding": 1, "filter_height": 2, "filter_width": 2, "stride_height": 2, "stride_width": 2}
    tensors: dict[str, Any] = {
        "image": Spec("float32", image.shape), "a": Spec("int32", (1, 8, 8, 2)), "b": Spec("int32", (1, 8, 8, 2)),
        "c": Spec("int32", (1, 4, 4, 2)), "d": Spec("float32", (1, 4, 4, 5)), "f": packed(first), "g": packed(second),
        "t": np.full(64, 180, np.int32), "m": np.ones(5, np.float32), "z": np.zeros(5, np.float32),
    }  # fmt: skip
    nodes = [
        ("LceQuantize", "image", "a", {}),
        ("LceBconv2d", "a f - - t", "b", options),
        ("LceBMaxPool2d", "b", "c", window),
        ("LceBconv2d", "c g m z -", "d", {**options, "channels_in": 64}),
    ]
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    numbers = {"-": -1}
    for name, value in tensors.items():
        type = tensor_type(value.type if isinstance(value, Spec) else value.dtype)
        numbers[name] = graph.add_tensor(name, type, value.shape, data=None if isinstance(value, Spec) else value)
    for op, reads, write, written in nodes:
        graph.add_operator(op, [numbers[name] for name in reads.split()], [numbers[write]], custom_options=written)
    graph.set_inputs(numbers["image"])
    graph.set_outputs(numbers["d"])
    interpreter = Interpreter(model_content=builder.to_bytes())
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
    interpreter.invoke()
    padded = np.pad(np.where(image < 0, -1, 1), ((0, 0), (1, 1), (1, 1), (0, 0)), constant_values=1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    signs = np.where((360 - np.einsum("nyxcij,fijc->nyxf", windows, first)) / 2 > 180, -1, 1)
    pooled = signs.reshape(1, 4, 2, 4, 2, 64).max(axis=(2, 4))
    wanted = np.einsum("nyxc,fc->nyxf", pooled, second[:, 0, 0])
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), wanted)
    macs = [work.macs for work in work_of_nodes(interpreter).values()]
    assert macs == [0, 64 * 64 * 9 * 64, 0, 16 * 5 * 64]
