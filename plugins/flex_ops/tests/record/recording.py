"""One recording: `recorded/<name>.tflite`, and `recorded/<name>.npz` with the inputs and outputs of one or more calls in a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

#: The recordings.
RECORDED = Path(__file__).parents[1] / "recorded"
#: Bytes of the largest model, and of the largest file of inputs and outputs.
LARGEST = 60_000


class Call:
    """The inputs and outputs of one call of a model's signature, by name; strings as arrays of bytes objects."""

    def __init__(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
        self.inputs, self.outputs = dict(inputs), dict(outputs)


def record(
    name: str,
    function: Callable[..., Any],
    calls: Sequence[Mapping[str, Any]],
    *,
    free: Mapping[str, Sequence[int | None]] = {},
    keep: Any = None,
    converter: Mapping[str, Any] = {},
    user_ops: Sequence[str] = (),
    folder: Path = RECORDED,
) -> None:
    """Convert a function of tensors and write the model with what TensorFlow answers to each call.

    Args:
        name: the recording's name.
        function: takes tensors by name and returns a dict of tensors, or one tensor; converted as a `tf.function`.
        calls: the inputs of each call, by the function's argument names; calls run in a row, so that state goes on.
        free: the shapes of inputs whose shape is not that of the first call, None where a dimension is free.
        keep: the object that holds the function's variables and tables (a `tf.Module` or a Keras model), if there are any.
        converter: further attributes of the TFLiteConverter, such as `allow_custom_ops`.
        user_ops: operators beyond the converter's own list (`experimental_select_user_tf_ops`).
        folder: where the recording is kept.

    Raises:
        ValueError: the model or its calls are larger than `LARGEST`.
    """
    import tensorflow as tf

    given = [{key: _array(value) for key, value in call.items()} for call in calls]
    specs = {
        key: tf.TensorSpec(free.get(key, value.shape), tf.string if value.dtype == object else value.dtype, name=key)
        for key, value in given[0].items()
    }

    class Holder(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.kept = keep
            self.weights = [weight.value for weight in getattr(keep, "weights", ())]  # Keras' own, which a tf.Module does not see
            self.call = tf.function(lambda **inputs: _named(function(**inputs)))

    holder = Holder()
    concrete = holder.call.get_concrete_function(**specs)
    made = tf.lite.TFLiteConverter.from_concrete_functions([concrete], holder)
    made.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    made.target_spec.experimental_select_user_tf_ops = list(user_ops)
    made._experimental_lower_tensor_list_ops = False
    for key, value in converter.items():
        setattr(made, key, value)
    model = made.convert()
    answers = [concrete(**{key: tf.constant(value, specs[key].dtype) for key, value in call.items()}) for call in given]
    arrays: dict[str, Array] = {}
    for number, (inputs, outputs) in enumerate(zip(given, answers)):
        for key, value in inputs.items():
            _pack(arrays, f"{number}/in/{key}", value)
        for key, value in outputs.items():
            _pack(arrays, f"{number}/out/{key}", _array(value.numpy()))
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tflite").write_bytes(model)
    np.savez_compressed(folder / f"{name}.npz", **arrays)
    for path in folder.glob(f"{name}.*"):
        if path.stat().st_size > LARGEST:
            raise ValueError(f"{path.name} has {path.stat().st_size} bytes; a recording has at most {LARGEST}")


def read_calls(name: str, folder: Path = RECORDED) -> list[Call]:
    """The calls of a recording, in order."""
    with np.load(folder / f"{name}.npz") as arrays:
        keys = [key.removesuffix("#sizes") for key in arrays if not key.endswith("#bytes")]
        count = 1 + max(int(key.split("/")[0]) for key in keys)
        sides: list[tuple[dict[str, Array], dict[str, Array]]] = [({}, {}) for _ in range(count)]
        for key in keys:
            number, side, tensor = key.split("/", 2)
            sides[int(number)][side == "out"][tensor] = _unpack(arrays, key)
    return [Call(inputs, outputs) for inputs, outputs in sides]


def _named(result: Any) -> dict[str, Any]:
    return result if isinstance(result, dict) else {"output": result}


def _array(value: Any) -> Array:
    array = np.asarray(value, object) if isinstance(value, (bytes, str)) else np.asarray(value)
    if array.dtype.kind in "SUO":
        flat = [item.encode() if isinstance(item, str) else item for item in np.asarray(value, object).ravel()]
        array = np.empty(array.shape, object)
        array.reshape(-1)[:] = flat
    return array


def _pack(arrays: dict[str, Array], key: str, array: Array) -> None:
    """Add an array; strings as their sizes and their bytes, as numpy's own type for them drops trailing NULs."""
    if array.dtype.kind not in "SUO":
        arrays[key] = array
        return
    items = [bytes(item) for item in array.ravel().tolist()]
    arrays[key + "#sizes"] = np.array([len(item) for item in items], np.int64).reshape(array.shape)
    arrays[key + "#bytes"] = np.frombuffer(b"".join(items), np.uint8)


def _unpack(arrays: Mapping[str, Array], key: str) -> Array:
    if key in arrays:
        return arrays[key]
    sizes, joined = arrays[key + "#sizes"], arrays[key + "#bytes"].tobytes()
    ends = np.cumsum(sizes.ravel()).tolist()
    strings = np.empty(sizes.shape, object)
    for position, (start, end) in enumerate(zip([0, *ends], ends)):
        strings.reshape(-1)[position] = joined[start:end]
    return strings
