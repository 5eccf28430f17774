"""Operators that can crash the process in TensorFlow's kernels or shape functions, each with a check as narrow as its cause.

Found by `python -m plugins.flex_delegate.tests.sweep` with TensorFlow 2.21.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from oplet_flex_delegate.guards.served import SERVED
from oplet_flex_delegate.library import executor, reason_of, tensorflow

__all__ = ["CONDITIONS", "is_cut"]

Attributes = Mapping[str, Any]
Inputs = Sequence[Any]
Condition = Callable[[Attributes, Inputs], str]


def is_cut(op: str, attributes: Attributes) -> bool:
    """Return whether shape inference must leave out the operator, as TensorFlow's shape function can crash on its inputs."""
    return op == "GatherV2" and attributes["batch_dims"] != 0


def _ranks(*wanted: int) -> Condition:
    """Build a check that the inputs have these ranks."""

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        for place, (tensor, rank) in enumerate(zip(inputs, wanted)):
            if tensor.shape.rank != rank:
                return f"input {place} has {tensor.shape.rank} dimensions; it must have {rank}"
        return ""

    return condition


def _convolution(sizes: int, rank: int) -> Condition:
    """Build a check for convolution gradients: input number `sizes` is a shape vector, the others have rank `rank`."""
    ranks = _ranks(*(1 if place == sizes else rank for place in range(3)))

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        if why := ranks(attributes, inputs):
            return why
        for name in ("strides", "dilations"):
            given = attributes.get(name, ())
            if given and (len(given) != rank or not all(0 < each < 1 << 20 for each in given)):
                return f"the attribute '{name}' is {given}; it must be {rank} sizes from 1 on"
        if sizes >= 0 and (inputs[sizes].numpy() < 0).any():
            return f"input {sizes} has negative sizes"
        return ""

    return condition


def _fourier(attributes: Attributes, inputs: Inputs) -> str:
    """Return why an FFT would crash: its library aborts if a length is 0; "" if not."""
    lengths = inputs[1].numpy()
    if lengths.size and (lengths <= 0).any():
        return f"the length of the transform is {lengths.tolist()}; it must be from 1 on"
    return ""


def _gather(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a gather would crash: its shape function aborts for more batch dimensions than the rank; "" if not."""
    batches, data, indices = attributes["batch_dims"], inputs[0].shape.rank, inputs[1].shape.rank
    if not -indices <= batches <= min(indices, data):
        return f"batch_dims is {batches}, with {data} and {indices} dimensions"
    return ""


def _ragged_gather(attributes: Attributes, inputs: Inputs) -> str:
    """Return why RaggedGather would crash: it reads as many splits as the attributes say, unchecked; "" if not."""
    *splits, values, indices = inputs
    rank = attributes["PARAMS_RAGGED_RANK"] + indices.shape.rank - 1
    if attributes["OUTPUT_RAGGED_RANK"] != rank:
        return f"OUTPUT_RAGGED_RANK is {attributes['OUTPUT_RAGGED_RANK']}; it must be {rank}"
    if not values.shape.rank:
        return "its values are a single one"
    for place, (each, after) in enumerate(zip(splits, [*splits[1:], values])):
        rows = each.numpy()
        last = after.shape.as_list()[0] - (after is not values) if after.shape.rank else -1
        if rows.ndim != 1 or not rows.size or rows[0] or (np.diff(rows) < 0).any() or rows[-1] > last:
            return f"its row splits {place} do not go from 0 up to {last}"
    return ""


def _finite(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a random op would hang: its loop never ends for NaN parameters, or ones so large that steps of 1 vanish; "" if
    not.
    """
    for place, tensor in enumerate(inputs):
        values = tensor.numpy() if tensor.dtype.is_floating else np.zeros(0)
        if not (np.abs(values.astype(np.float64)) < 1e15).all():
            return f"input {place} has values that are not finite, or beyond 1e15"
    return ""


def _variables(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a variable op would misread memory: the attribute's type must be the variable's, verified by a read; "" if not."""
    kind = attributes.get("T", attributes.get("dtype"))
    return _are_variables(inputs, kind)


def _generator(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a random generator's state is unsafe: it must be an int64 variable; "" if it is."""
    return _are_variables(inputs, 9)


def _are_variables(inputs: Inputs, kind: Any) -> str:
    tf = tensorflow()
    for place, tensor in enumerate(inputs):
        if tensor.dtype == tf.resource:
            try:
                executor()(b"ReadVariableOp", 1, [tensor], ("dtype", kind))
            except tf.errors.OpError as error:
                return f"input {place} is not the variable that it should be: {reason_of(error)}"
    return ""


def _exporting(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a table export would misread memory: attribute types must be the table's, verified by an empty lookup; "" if
    not.
    """
    tf = tensorflow()
    keys, values = attributes["Tkeys"], attributes["Tvalues"]
    asked = [inputs[0], tf.zeros([0], tf.as_dtype(keys)), tf.zeros([], tf.as_dtype(values))]
    try:
        executor()(b"LookupTableFindV2", 1, asked, ("Tin", keys, "Tout", values))
    except (tf.errors.OpError, TypeError) as error:
        return f"its input is not the table that it should be: {reason_of(error)}"
    return ""


def _list_places(place: int) -> Condition:
    """Build a check that list indices in input `place` are not negative."""

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        places = inputs[place].numpy()
        return f"it writes or reads the element {places.min()} of a list" if places.size and places.min() < 0 else ""

    return condition


def _single(*places: int) -> Condition:
    """Build a check that these inputs are scalars: kernels abort on others, and shape functions do not always check."""

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        for place in places:
            if inputs[place].shape.rank != 0:
                return f"input {place} has the shape {inputs[place].shape.as_list()}; it must be a single value"
        return ""

    return condition


def _crossing(*wanted: list[int]) -> Condition:
    """Build a check of the shapes of a feature cross's trailing inputs (separator, hash settings)."""

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        given = [each.shape.as_list() for each in inputs[-len(wanted) :]]
        return "" if given == list(wanted) else f"its last inputs have the shapes {given}; they must have {list(wanted)}"

    return condition


def _splitting(attributes: Attributes, inputs: Inputs) -> str:
    """Return why a split would crash: it reads int8 sizes as int64, and checks only their number; "" if not."""
    if attributes["Tlen"] == 6:
        return "the sizes are int8, which its kernel does not read"
    return "" if inputs[1].shape.rank == 1 else f"the sizes have the shape {inputs[1].shape.as_list()}; they must be a vector"


def _at_most(most: int, *names: str) -> Condition:
    """Build a check that size attributes are at most `most`, as the kernel allocates before checking its inputs."""

    def condition(attributes: Attributes, inputs: Inputs) -> str:
        for name in names:
            if attributes[name] > most:
                return f"the attribute '{name}' is {attributes[name]}; it must be at most {most}"
        return ""

    return condition


#: Operators that draw from a distribution with parameters, by rejecting what does not fit.
_REJECT = (
    "ParameterizedTruncatedNormal", "RandomGamma", "RandomPoisson", "RandomPoissonV2",
    "StatelessParameterizedTruncatedNormal", "StatelessRandomBinomial", "StatelessRandomGammaV2", "StatelessRandomGammaV3",
    "StatelessRandomPoisson",
)  # fmt: skip

#: Operators that draw from a generator whose state is a variable.
_GENERATORS = (
    "NonDeterministicInts", "RngReadAndSkip", "RngSkip", "StatefulStandardNormal", "StatefulStandardNormalV2", "StatefulTruncatedNormal",
    "StatefulUniform", "StatefulUniformFullInt", "StatefulUniformInt",
)  # fmt: skip

#: By operator, a function of the attributes and inputs that says what is wrong with them; "" if nothing is.
CONDITIONS: dict[str, Condition] = {
    "Conv2DBackpropFilter": _convolution(1, 4),
    "Conv2DBackpropInput": _convolution(0, 4),
    "DepthwiseConv2dNativeBackpropFilter": _convolution(1, 4),
    "DepthwiseConv2dNativeBackpropInput": _convolution(0, 4),
    "Conv3DBackpropFilter": _convolution(-1, 5),
    "Conv3DBackpropFilterV2": _convolution(1, 5),
    "Conv3DBackpropInput": _convolution(-1, 5),
    "Conv3DBackpropInputV2": _convolution(0, 5),
    "AudioSpectrogram": _at_most(1 << 20, "window_size", "stride"),
    "GatherV2": _gather,
    "LookupTableExportV2": _exporting,
    "Mfcc": _at_most(1 << 16, "filterbank_channel_count", "dct_coefficient_count"),
    "SparseCrossHashed": _crossing([], [], [2]),
    "SparseCrossV2": _crossing([]),
    "SplitV": _splitting,
    "RaggedGather": _ragged_gather,
    **{op: _variables for op in SERVED if op.startswith("Resource")},
    **dict.fromkeys(_GENERATORS, _generator),
    **dict.fromkeys(_REJECT, _finite),
    **dict.fromkeys(("TensorListGather", "TensorListScatter", "TensorListScatterV2"), _list_places(1)),
    "TensorListScatterIntoExistingList": _list_places(2),
    **dict.fromkeys(
        ("EmptyTensorList", "TensorListGetItem", "TensorListReserve", "TensorListResize", "TensorListSetItem"), _single(1)
    ),
    **dict.fromkeys(("IRFFT", "IRFFT2D", "IRFFT3D", "RFFT", "RFFT2D", "RFFT3D"), _fourier),
}
