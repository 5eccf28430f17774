"""Optimizer update ops, which change variables in place. Numerics: tensorflow/core/kernels/training_ops.cc.

Halves are computed in single precision and rounded once for each variable. The attribute `use_locking` is ignored, as nodes never
run concurrently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import attributes_of
from oplet_flex_ops.numerics.operator import quietly
from oplet_flex_ops.numerics.resources import value_of
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX, WIDE_FLOATS, WITH_HALF
from oplet_flex_ops.ops.gradients.variables import rows_of
from oplet_flex_ops.signature import Signature, Types

_RESOURCE = TensorType.RESOURCE
_ANALYTIC = (*FLOATS, *COMPLEX)


def _step(
    operands: str, step: Callable[..., None], types: Types = FLOATS, flags: Sequence[tuple[str, bool]] = ()
) -> Registration:
    """Build the registration of one ResourceApply... update op.

    Args:
        operands: the names of its inputs: variables, "|", the others, of which "grad" or "delta" has the variables' shape and the
            rest are scalars. With "indices" the gradient is of those rows only.
        step: changes the arrays of the variables, the first arguments, by those of the others; the flags are the last ones.
        types: what the attribute `T` may be.
        flags: Booleans among the attributes, with their defaults.
    """
    held, _, others = (part.split() for part in operands.partition("|"))
    sparse = "indices" in others
    kinds = ["RESOURCE"] * len(held) + ["Tindices" if name == "indices" else "T" for name in others]
    signature = Signature(f"{', '.join(kinds)} -> ", {"T": types} | ({"Tindices": INDEX} if sparse else {}))

    def prepare(context: Context, node: Node) -> None:
        signature.ensure(node)
        for name, tensor in zip(others, node.inputs[len(held) :]):
            whole = name in ("grad", "delta", "indices")
            ensure(whole or tensor.size == 1, f"{tensor} is {name} of {attributes_of(node).op}; it must be one number.")

    def bind(context: Context, node: Node) -> Thunk:
        attributes = attributes_of(node)
        chosen = [attributes.flag(name, default=default) for name, default in flags]
        type = attributes.type("T")
        short = type in (TensorType.FLOAT16, TensorType.BFLOAT16)

        def run() -> None:
            variables = [value_of(context, tensor, type) for tensor in node.inputs[: len(held)]]
            given = dict(zip(others, node.inputs[len(held) :]))
            gradient = given.get("grad", given.get("delta"))
            rows: Any = rows_of(given["indices"].data, variables[0]) if sparse else slice(None)
            for name, value in zip(held, variables):
                same = value.shape == variables[0].shape
                ensure(same, f"the variable '{name}' has the shape {list(value.shape)}, 'var' {list(variables[0].shape)}.")
            if gradient is not None:
                wanted = (*rows.shape, *variables[0].shape[1:]) if sparse else variables[0].shape
                ensure(gradient.shape == wanted, f"the gradient {gradient} must have the shape {list(wanted)}.")
            arguments = [tensor.data for name, tensor in given.items() if name != "indices"]
            if sparse:
                _by_rows(step, variables, rows, [name for name in others if name != "indices"], arguments, chosen)
            elif short:
                wide = [value.astype(np.float32) for value in variables]
                step(*wide, *(each.astype(np.float32) for each in arguments), *chosen)
                for value, result in zip(variables, wide):
                    value[...] = result
            else:
                step(*variables, *arguments, *chosen)

        return quietly(run)

    return Registration(prepare=prepare, bind=bind, types=(_RESOURCE,))


def _by_rows(
    step: Callable[..., None], variables: list[Array], rows: Array, names: list[str], arguments: list[Array], chosen: list[bool]
) -> None:
    """Apply the update step row by row in index order; a repeated index is updated repeatedly."""
    gradient = names.index("grad")
    flat = arguments[gradient].reshape(rows.size, *variables[0].shape[1:])
    for row, part in paced(zip(listed(rows), flat), 64):
        # Of one row, so that vectors do not become scalars, which cannot be changed in place.
        parts = [value[row : row + 1] for value in variables]
        given = [part[None] if number == gradient else each for number, each in enumerate(arguments)]
        step(*parts, *given, *chosen)


def _descent(var: Array, alpha: Array, delta: Array) -> None:
    var -= alpha * delta


def _momentum(var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, nesterov: bool) -> None:
    accum *= momentum
    accum += grad
    var -= grad * lr + accum * momentum * lr if nesterov else accum * lr


def _keras_momentum(var: Array, accum: Array, lr: Array, grad: Array, momentum: Array, nesterov: bool) -> None:
    accum *= momentum
    accum -= grad * lr
    var += accum * momentum - grad * lr if nesterov else accum


def _moments(m: Array, v: Array, beta1: Array, beta2: Array, grad: Array) -> None:
    m += (grad - m) * (1 - beta1)
    v += (grad * grad - v) * (1 - beta2)


def _adam(
    var: Array, m: Array, v: Array, power1: Array, power2: Array, lr: Array, beta1: Array, beta2: Array, epsilon: Array,
    grad: Array, nesterov: bool,
) -> None:  # fmt: skip
    rate = lr * np.sqrt(1 - power2) / (1 - power1)
    _moments(m, v, beta1, beta2, grad)
    direction = grad * (1 - beta1) + beta1 * m if nesterov else m
    var -= direction * rate / (np.sqrt(v) + epsilon)


def _amsgrad(
    var: Array, m: Array, v: Array, largest: Array, power1: Array, power2: Array, lr: Array, beta1: Array, beta2: Array,
    epsilon: Array, grad: Array,
) -> None:  # fmt: skip
    rate = lr * np.sqrt(1 - power2) / (1 - power1)
    _moments(m, v, beta1, beta2, grad)
    np.maximum(largest, v, out=largest)
    var -= m * rate / (np.sqrt(largest) + epsilon)


def _ada_max(
    var: Array, m: Array, v: Array, power1: Array, lr: Array, beta1: Array, beta2: Array, epsilon: Array, grad: Array
) -> None:  # fmt: skip
    m += (grad - m) * (1 - beta1)
    np.maximum(beta2 * v, np.abs(grad), out=v)
    var -= lr / (1 - power1) * (m / (v + epsilon))


def _adagrad(var: Array, accum: Array, lr: Array, grad: Array, update_slots: bool) -> None:
    if update_slots:
        accum += grad * grad
    var -= grad * lr / np.sqrt(accum)


def _adagrad_v2(var: Array, accum: Array, lr: Array, epsilon: Array, grad: Array, update_slots: bool) -> None:
    if update_slots:
        accum += grad * grad
    var -= grad * lr / (np.sqrt(accum) + epsilon)


def _adadelta(var: Array, accum: Array, accum_update: Array, lr: Array, rho: Array, epsilon: Array, grad: Array) -> None:
    accum *= rho
    accum += grad * grad * (1 - rho)
    update = np.sqrt(accum_update + epsilon) / np.sqrt(accum + epsilon) * grad
    var -= update * lr
    accum_update *= rho
    accum_update += update * update * (1 - rho)


def _rms_prop(var: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array) -> None:
    ms += (grad * grad - ms) * (1 - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt(ms + epsilon)
    var -= mom


def _centred_rms_prop(
    var: Array, mg: Array, ms: Array, mom: Array, lr: Array, rho: Array, momentum: Array, epsilon: Array, grad: Array
) -> None:  # fmt: skip
    ms += (grad * grad - ms) * (1 - rho)
    mg += (grad - mg) * (1 - rho)
    mom *= momentum
    mom += grad * lr / np.sqrt(ms - mg * mg + epsilon)
    var -= mom


def _add_sign(var: Array, m: Array, lr: Array, alpha: Array, decay: Array, beta: Array, grad: Array) -> None:
    m *= beta
    m += grad * (1 - beta)
    var -= lr * (alpha + decay * np.sign(grad) * np.sign(m)) * grad


def _power_sign(var: Array, m: Array, lr: Array, logbase: Array, decay: Array, beta: Array, grad: Array) -> None:
    m *= beta
    m += grad * (1 - beta)
    var -= lr * np.exp(logbase * decay * np.sign(grad) * np.sign(m)) * grad


def _shrunk(values: Array, rate: Array, l1: Array, l2: Array) -> Array:
    """Apply the proximal operator of the L1 and L2 penalties (soft thresholding and shrinking)."""
    result: Array = np.sign(values) * np.maximum(np.abs(values) - rate * np.maximum(l1, 0), 0) / (1 + l2 * rate)
    return result


def _proximal_descent(var: Array, alpha: Array, l1: Array, l2: Array, delta: Array) -> None:
    var[...] = _shrunk(var - alpha * delta, alpha, l1, l2)


def _proximal_adagrad(var: Array, accum: Array, lr: Array, l1: Array, l2: Array, grad: Array) -> None:
    accum += grad * grad
    rate = lr / np.sqrt(accum)
    var[...] = _shrunk(var - grad * rate, rate, l1, l2)


def _ftrl(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, power: Array, scaled: bool
) -> None:
    _ftrl_v2(var, accum, linear, grad, lr, l1, l2, np.zeros_like(l2), power, scaled)


def _ftrl_v2(
    var: Array, accum: Array, linear: Array, grad: Array, lr: Array, l1: Array, l2: Array, shrinkage: Array, power: Array,
    scaled: bool,
) -> None:  # fmt: skip
    """Do the FTRL-V2 update step; with `scaled` (multiply_linear_by_lr) the linear slot is stored times the learning rate."""
    rate = lr if scaled else np.ones_like(lr)
    new = accum + grad * grad
    before, after = accum ** (-power), new ** (-power)
    linear += (grad + 2 * shrinkage * var) * rate - (after - before) / (lr / rate) * var
    threshold = l1 * rate
    var[...] = np.where(
        np.abs(linear) > threshold, (threshold * np.sign(linear) - linear) / (after / (lr / rate) + 2 * l2 * rate), 0
    )  # fmt: skip
    accum[...] = new


_NESTEROV, _SLOTS, _SCALED = ("use_nesterov", False), ("update_slots", True), ("multiply_linear_by_lr", False)
_ADAM = "| beta1_power beta2_power lr beta1 beta2 epsilon grad"

RESOURCEAPPLYADAMAX = _step("var m v | beta1_power lr beta1 beta2 epsilon grad", _ada_max, WITH_HALF)
RESOURCEAPPLYADADELTA = _step("var accum accum_update | lr rho epsilon grad", _adadelta, _ANALYTIC)
RESOURCEAPPLYADAGRAD = _step("var accum | lr grad", _adagrad, _ANALYTIC, [_SLOTS])
RESOURCEAPPLYADAGRADV2 = _step("var accum | lr epsilon grad", _adagrad_v2, _ANALYTIC, [_SLOTS])
RESOURCEAPPLYADAM = _step(f"var m v {_ADAM}", _adam, _ANALYTIC, [_NESTEROV])
RESOURCEAPPLYADAMWITHAMSGRAD = _step(f"var m v vhat {_ADAM}", _amsgrad)
RESOURCEAPPLYADDSIGN = _step("var m | lr alpha sign_decay beta grad", _add_sign)
RESOURCEAPPLYCENTEREDRMSPROP = _step("var mg ms mom | lr rho momentum epsilon grad", _centred_rms_prop, _ANALYTIC)
RESOURCEAPPLYFTRL = _step("var accum linear | grad lr l1 l2 lr_power", _ftrl, FLOATS, [_SCALED])
RESOURCEAPPLYFTRLV2 = _step("var accum linear | grad lr l1 l2 l2_shrinkage lr_power", _ftrl_v2, FLOATS, [_SCALED])
RESOURCEAPPLYGRADIENTDESCENT = _step("var | alpha delta", _descent, _ANALYTIC)
RESOURCEAPPLYKERASMOMENTUM = _step("var accum | lr grad momentum", _keras_momentum, _ANALYTIC, [_NESTEROV])
RESOURCEAPPLYMOMENTUM = _step("var accum | lr grad momentum", _momentum, _ANALYTIC, [_NESTEROV])
RESOURCEAPPLYPOWERSIGN = _step("var m | lr logbase sign_decay beta grad", _power_sign)
RESOURCEAPPLYPROXIMALADAGRAD = _step("var accum | lr l1 l2 grad", _proximal_adagrad, WIDE_FLOATS)
RESOURCEAPPLYPROXIMALGRADIENTDESCENT = _step("var | alpha l1 l2 delta", _proximal_descent, WIDE_FLOATS)
RESOURCEAPPLYRMSPROP = _step("var ms mom | lr rho momentum epsilon grad", _rms_prop, _ANALYTIC)
RESOURCESPARSEAPPLYADAGRADV2 = _step("var accum | lr epsilon grad indices", _adagrad_v2, _ANALYTIC, [_SLOTS])
RESOURCESPARSEAPPLYKERASMOMENTUM = _step("var accum | lr grad indices momentum", _keras_momentum, _ANALYTIC, [_NESTEROV])
RESOURCESPARSEAPPLYMOMENTUM = _step("var accum | lr grad indices momentum", _momentum, _ANALYTIC, [_NESTEROV])
