"""Functions of jax, through StableHLO and TensorFlow's converter."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from jax import lax
from jax import numpy as jnp
from jax.experimental import jax2tf

from ..cases import Case, Step

__all__ = ["NETS", "convert", "models"]

Array = np.ndarray[Any, Any]

_KERNEL = np.random.default_rng(7).standard_normal((3, 3, 3, 4)).astype(np.float32)
_EVEN = np.random.default_rng(8).standard_normal((4, 4, 3, 4)).astype(np.float32)
_W = np.random.default_rng(9).standard_normal((8, 6)).astype(np.float32)


def _window(x: Any, start: float, fold: Any) -> Any:
    return lax.reduce_window(x, start, fold, (1, 3, 2, 1), (1, 2, 1, 1), ((0, 0), (1, 1), (0, 1), (0, 0)))


def _cell(state: Any, x: Any) -> Any:
    state = jnp.tanh(x @ _W[:, :6] + state)
    return state, state * 2


def _attention(q: Any, k: Any, v: Any) -> Any:
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def _norm(x: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5)


#: Name: the function, and its inputs: a shape for floats; a shape and a bound for whole numbers.
NETS: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "mlp": (lambda x: jax.nn.gelu(x @ _W) @ _W.T, [(3, 8)]),
    "activations": (
        lambda x: jnp.stack(
            [jax.nn.silu(x), jax.nn.selu(x), jax.nn.softplus(x), jax.nn.hard_swish(x), jax.nn.log_sigmoid(x), jax.nn.relu6(x)]
        ),
        [(3, 8)],
    ),
    "conv_same": (
        lambda x: lax.conv_general_dilated(x, _KERNEL, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        [(1, 7, 8, 3)],
    ),
    "conv_dilated": (
        lambda x: lax.conv_general_dilated(
            x, _KERNEL, (1, 1), "VALID", rhs_dilation=(2, 2), dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [(1, 7, 8, 3)],
    ),
    "conv_nchw": (
        lambda x: lax.conv_general_dilated(x, _KERNEL, (1, 1), ((1, 0), (0, 1)), dimension_numbers=("NCHW", "HWIO", "NCHW")),
        [(1, 3, 6, 7)],
    ),
    "conv_depthwise": (
        lambda x: lax.conv_general_dilated(
            x, _KERNEL[:, :, :1], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=4
        ),
        [(1, 6, 6, 4)],
    ),
    "conv_transpose_same": (lambda x: lax.conv_transpose(x, _KERNEL, (2, 2), "SAME"), [(1, 4, 5, 3)]),
    "conv_transpose_valid": (lambda x: lax.conv_transpose(x, _KERNEL, (2, 2), "VALID"), [(1, 4, 5, 3)]),
    "conv_transpose_even": (lambda x: lax.conv_transpose(x, _EVEN, (2, 2), "SAME"), [(1, 4, 5, 3)]),
    "conv_transpose_stride3": (lambda x: lax.conv_transpose(x, _KERNEL, (3, 3), "SAME"), [(1, 4, 5, 3)]),
    "max_window": (lambda x: _window(x, -jnp.inf, lax.max), [(1, 7, 6, 2)]),
    "sum_window": (lambda x: _window(x, 0.0, lax.add), [(1, 7, 6, 2)]),
    "min_window": (lambda x: _window(x, jnp.inf, lax.min), [(1, 7, 6, 2)]),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)), [(3, 7)]),
    "segment_sum": (lambda x, at: jax.ops.segment_sum(x, at, 4), [(6, 3), ((6,), 4)]),
    "scatter": (lambda x, at: (x.at[at].set(0.5), x.at[at].add(1.0), x.at[at].max(0.2)), [(5, 3), ((2,), 5)]),
    "gather": (lambda x, at: (x[at], jnp.take(x, at, axis=1, mode="clip"), x[:, at % 3]), [(5, 3), ((4,), 3)]),
    "slices": (
        lambda x, at: (lax.dynamic_slice(x, (at[0], 0), (2, 3)), lax.dynamic_update_slice(x, jnp.ones((2, 2)), (at[0], at[1]))),
        [(6, 4), ((2,), 3)],
    ),
    "scan": (lambda x: lax.scan(_cell, jnp.zeros((2, 6)), x), [(5, 2, 8)]),
    "while": (lambda x: lax.while_loop(lambda s: s.sum() < 50, lambda s: s * 1.5 + 1, jnp.abs(x)), [(4,)]),
    "fori": (lambda x: lax.fori_loop(0, 4, lambda i, s: s.at[i].add(s[i - 1]), x), [(5, 2)]),
    "cond": (lambda x: lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x), [(4, 3)]),
    "switch": (lambda x, at: lax.switch(at[0], [lambda v: v, lambda v: -v, lambda v: v * v], x), [(4,), ((1,), 3)]),
    "attention": (_attention, [(1, 4, 2, 3), (1, 5, 2, 3), (1, 5, 2, 3)]),
    "norms": (lambda x: (_norm(x), x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)), [(3, 8)]),
    "reductions": (
        lambda x: (x.sum((0, 2)), x.max(1), x.min(), x.prod(2), x.argmax(1), jnp.var(x, 1), jax.nn.logsumexp(x, 2)),
        [(3, 5, 2)],
    ),
    "elementwise": (
        lambda x: jnp.stack(
            [jnp.sinh(x), jnp.arctan(x), jnp.log1p(jnp.abs(x)), jnp.cbrt(x), lax.erf(x), jnp.sign(x), jnp.round(x), jnp.exp2(x)]
        ),
        [(3, 4)],
    ),
    "integers": (lambda a, b: (a // (b + 1), a % (b + 1), jnp.maximum(a, b), a * b, a > b), [((3, 4), 99), ((3, 4), 9)]),
    "shapes": (
        lambda x: (
            jnp.tile(x, (2, 1)),
            jnp.flip(x, (0, 1)),
            jnp.roll(x, 2, 1),
            jnp.pad(x, 1, mode="reflect"),
            jnp.repeat(x, 2, 1),
            jnp.tril(x),
        ),
        [(4, 5)],
    ),
    "pad_negative": (lambda x: lax.pad(x, 0.5, ((1, -1, 0), (0, 2, 1))), [(4, 5)]),
    "one_hot": (lambda at: jax.nn.one_hot(at, 6) @ jnp.eye(6, 3), [((5,), 6)]),
    "fft": (lambda x: jnp.abs(jnp.fft.rfft(x)), [(2, 16)]),
    "einsum": (lambda a, b: jnp.einsum("abc,cde->bade", a, b), [(2, 3, 4), (4, 3, 2)]),
    "resize": (
        lambda x: (jax.image.resize(x, (1, 7, 9, 2), "bilinear"), jax.image.resize(x, (1, 8, 10, 2), "nearest")),
        [(1, 4, 5, 2)],
    ),
}


def convert(name: str, compute: Callable[..., Any], inputs: Sequence[Any]) -> Case:
    """The function, with two inputs and jax's own answers."""
    generator = np.random.default_rng(zlib.crc32(name.encode()))

    def draw(spec: Any) -> Array:
        if isinstance(spec[0], tuple):
            shape, high = spec
            return generator.integers(0, high, shape).astype(np.int32)
        return generator.standard_normal(spec).astype(np.float32)

    feeds = [[draw(spec) for spec in inputs] for _ in range(2)]
    names = [f"x{index}" for index in range(len(inputs))]

    def flat(*values: Any) -> dict[str, Any]:
        return {f"y{index}": value for index, value in enumerate(jax.tree_util.tree_leaves(compute(*map(jnp.asarray, values))))}

    module = tf.Module()
    signature = [tf.TensorSpec(value.shape, value.dtype, name=key) for key, value in zip(names, feeds[0])]
    module.f = tf.function(jax2tf.convert(flat, with_gradient=False), autograph=False, input_signature=signature)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([module.f.get_concrete_function()], module)
    content = converter.convert()
    entries = tf.lite.Interpreter(model_content=content).get_signature_list()["serving_default"]["inputs"]
    order = dict(zip(sorted(entries), names)) if set(entries) != set(names) else dict(zip(names, names))
    places = {key: int(order[key][1:]) for key in entries}
    steps = []
    for feed in feeds:
        own = {key: np.asarray(value) for key, value in flat(*feed).items()}
        steps.append(Step({key: feed[place] for key, place in places.items()}, {"own": own}, "serving_default"))
    return Case(name, "jax", content, steps)


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each function as a case."""
    for short, (compute, inputs) in NETS.items():
        name = f"jax_nets-{short}"
        yield name, partial(convert, name, compute, inputs)
