"""Stand-in for `tf.lite.experimental.Analyzer`: prints a model in the text that LiteRT's analyzer has, for programs and eyes that know it.

What it does not have is the check against LiteRT's GPU delegate, whose rules are LiteRT's own; `oplet inspect` and `oplet explore` tell more.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from oplet import Model
from oplet.errors import OpletError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["Analyzer", "ModelAnalyzer"]

#: The most values of a constant that are shown, and the share of zeros, in per cent, from which a hint stands.
_MOST_VALUES, _MANY_ZEROS = 5, 10.0
_LINE = "-" * 63
_NUMBERS = {TensorType.INT32: "<i4", TensorType.UINT32: "<u4", TensorType.FLOAT32: "<f4"}
_CHARACTERS = (TensorType.INT8, TensorType.UINT8, TensorType.STRING)
_NO_GPU = "\nGPU COMPATIBILITY: not checked, as the rules are those of LiteRT's GPU delegate; run the program without `oplet behind` for them.\n"


class Analyzer:
    """Replacement of `tf.lite.experimental.Analyzer`, which prints a model's structure."""

    @staticmethod
    def analyze(model_path: Any = None, model_content: Any = None, gpu_compatibility: bool = False, **kwargs: Any) -> None:
        """Print the structure of a model.

        Args:
            model_path: the .tflite file.
            model_content: its bytes, in place of `model_path`.
            gpu_compatibility: whether a check against LiteRT's GPU delegate is requested; it is not done, and a line says so.
            kwargs: `experimental_use_mlir` is refused; others have no effect, as in LiteRT.

        Raises:
            ValueError: neither `model_path` nor `model_content` is given, or MLIR is asked for.
        """
        if not model_path and not model_content:
            raise ValueError("neither `model_path` nor `model_content` is provided")
        if kwargs.get("experimental_use_mlir"):
            raise ValueError(
                "oplet has no MLIR to print; leave experimental_use_mlir out, or run the program without `oplet behind`."
            )
        title = f"=== {model_path} ===" if model_path else "=== TFLite ModelAnalyzer ==="
        sys.stdout.write(f"{title}\n\n{ModelAnalyzer(model_path or model_content, bool(model_path), gpu_compatibility)}\n")


def ModelAnalyzer(model: Any, input_is_filepath: bool, gpu_compatibility: bool) -> str:
    """Return the structure of a model as text, or the text of the error if it cannot be read, as in
    `ai_edge_litert._pywrap_analyzer_wrapper`.

    Args:
        model: the .tflite file or its bytes.
        input_is_filepath: whether it is the file.
        gpu_compatibility: whether a check against LiteRT's GPU delegate is requested; it is not done, and a line says so.
    """
    try:
        opened = Model.open(model) if input_is_filepath else Model.from_bytes(model.encode() if isinstance(model, str) else model)
        text = "".join(_text(opened, gpu_compatibility))
    except OpletError as error:
        what = f"model {model}" if input_is_filepath else "the given model buffer."
        return f"{error}Failed to mmap {what}"
    return "".join(each if each == "\n" or " " <= each <= "~" else "." for each in text)


def _text(model: Model, gpu_compatibility: bool) -> Iterator[str]:
    root = model.root
    graphs = root.subgraphs or ()
    yield from _summary(model, graphs)
    usage = []
    for index, graph in enumerate(graphs):
        name = "" if graph.name is None else f" {_bytes_of(graph.name)}"
        yield f"Subgraph#{index}{name}({_list(graph.inputs, index)}) -> [{_list(graph.outputs, index)}]\n"
        for number, node in enumerate(graph.operators or ()):
            inputs = _list(node.inputs, index, root, graph) + _called(model, node)
            yield f"  Op#{number} {_op(model, node)}({inputs}) -> [{_list(node.outputs, index)}]\n"
        yield f"\nTensors of Subgraph#{index}\n"
        used = 0
        for number, tensor in enumerate(graph.tensors or ()):
            detail, size = _tensor(root, tensor)
            used += size
            yield f"  {_tensor_name(number, index)}{detail}\n"
        usage.append(used)
        yield "\n"
    if gpu_compatibility:
        yield _NO_GPU
    yield from _signatures(root)
    yield from _sizes(root, len(model.data), usage)


def _summary(model: Model, graphs: Any) -> Iterator[str]:
    yield f"Your TFLite model has '{len(graphs)}' subgraph(s). In the subgraph description below,\nT# represents the Tensor numbers. "
    if len(graphs) and len(graphs[0].operators or ()):
        first = graphs[0].operators[0]
        takes, makes = (" and ".join(f"tensor #{int(i)}" for i in _numbers(side)) for side in (first.inputs, first.outputs))
        yield f"For example, in Subgraph#0, the {_op(model, first)} op takes\n{takes} as input and produces {makes} as output.\n\n"


def _op(model: Model, node: tables.Operator) -> str:
    return _bytes_of(model.op_of(node)[1])


def _called(model: Model, node: tables.Operator) -> str:
    """Return the subgraphs that a node of control flow calls, as the analyzer writes them behind its inputs."""
    op, options = model.op_of(node)[0], node.builtin_options
    fields = {
        BuiltinOperator.CALL_ONCE: (("", "init_subgraph_index"),),
        BuiltinOperator.IF: ((", Then: ", "then_subgraph_index"), (", Else: ", "else_subgraph_index")),
        BuiltinOperator.WHILE: ((", Cond: ", "cond_subgraph_index"), (", Body: ", "body_subgraph_index")),
    }
    return "".join(f"{what}Subgraph#{getattr(options, field, 0)}" for what, field in fields.get(op, ()))


def _numbers(values: Any) -> list[int]:
    return [] if values is None else [int(value) for value in values]


def _tensor_name(index: int, subgraph: int) -> str:
    return f"T#{subgraph}_{index}" if subgraph and index != -1 else f"T#{index}"


def _list(indices: Any, subgraph: int, root: tables.Model | None = None, graph: tables.SubGraph | None = None) -> str:
    """Return tensors by their numbers; with `root` and `graph` int32 constants with their values."""
    told = []
    for index in _numbers(indices):
        values = ""
        if root is not None and graph is not None and index >= 0:
            tensor = (graph.tensors or ())[index]
            values = _values(root, tensor) if tensor.type is TensorType.INT32 else ""
        told.append(_tensor_name(index, subgraph) + values)
    return ", ".join(told)


def _constant(root: tables.Model, tensor: tables.Tensor) -> Any:
    """Return the bytes of a constant inside the FlatBuffer; None if the tensor has none there."""
    buffers = root.buffers or ()
    return buffers[tensor.buffer].data if 0 < tensor.buffer < len(buffers) else None


def _values(root: tables.Model, tensor: tables.Tensor) -> str:
    data = _constant(root, tensor)
    if data is None:
        return ""
    content = np.asarray(data, np.uint8).tobytes()
    told: Iterable[str]
    if (number := _NUMBERS.get(tensor.type)) is not None:
        count = len(content) // 4
        told = map(_number, np.frombuffer(content, number, min(count, _MOST_VALUES)))
    else:
        count = len(content)
        told = content[:_MOST_VALUES].decode("latin-1") if tensor.type in _CHARACTERS else ["??"] * min(count, _MOST_VALUES)
    return f"[{', '.join(told)}{', ...' if count > _MOST_VALUES else ''}]"


def _number(value: Any) -> str:
    if isinstance(value, np.floating):
        sign = "-" if np.isnan(value) and np.signbit(value) else ""
        return f"{sign}{float(value):g}"
    return str(int(value))


def _tensor(root: tables.Model, tensor: tables.Tensor) -> tuple[str, int]:
    """Return what is said of a tensor behind its number, and the size of its constant."""
    name = "" if tensor.name is None else f"({_bytes_of(tensor.name)}) "
    if tensor.shape_signature is not None:
        shape = f"shape_signature:{_numbers(tensor.shape_signature)}"
    else:
        shape = "shape:n/a" if tensor.shape is None else f"shape:{_numbers(tensor.shape)}"
    told = f"{name}{shape}, type:{getattr(tensor.type, 'name', '')}"
    data = _constant(root, tensor)
    if data is None or not len(data):
        return told, 0
    return f"{told} RO {len(data)} bytes, buffer: {tensor.buffer}, data:{_values(root, tensor)}", len(data)


def _signatures(root: tables.Model) -> Iterator[str]:
    if not root.signature_defs:
        return
    yield f"{_LINE}\nYour TFLite model has '{len(root.signature_defs)}' signature_def(s).\n\n"
    for index, signature in enumerate(root.signature_defs):
        yield f"Signature#{index} key: '{_bytes_of(signature.signature_key or '')}'\n- Subgraph: Subgraph#{signature.subgraph_index}\n"
        for what, tensors in (("Inputs", signature.inputs), ("Outputs", signature.outputs)):
            yield f"- {what}: \n"
            for each in tensors or ():
                yield f"    '{_bytes_of(each.name or '')}' : {_tensor_name(each.tensor_index, signature.subgraph_index)}\n"
        yield "\n"


def _sizes(root: tables.Model, size: int, usage: list[int]) -> Iterator[str]:
    constants = [buffer.data for buffer in root.buffers or () if buffer.data is not None]
    total = sum(len(data) for data in constants)
    zeros = sum(len(data) for data in constants if not np.any(data))

    def part(what: str, size_of_part: int, label: str = "{:>24}") -> str:
        share = np.float32(size_of_part) / np.float32(size) * np.float32(100)
        return f"{label.format(what)}: {size_of_part:>10} bytes ({share:05.2f} %)\n"

    yield f"{_LINE}\n{'Model size':>24}: {size:>10} bytes\n"
    yield part("Non-data buffer size", size - total) + part("Total data buffer size", total)
    if len(usage) > 1:
        for index, used in enumerate(usage):
            yield part(f"Subgraph#{index}", used, "          - {:<12}")
    yield part("(Zero value buffers)", zeros)
    yield "\n* Buffers of TFLite model are mostly used for constant tensors.\n"
    yield "  And zero value buffers are buffers filled with zeros.\n"
    if size and zeros / size * 100 > _MANY_ZEROS:
        yield "  (Consider use `converter._experimental_unfold_large_splat_constant` to save the model size.)\n"
    yield "  Non-data buffers area are used to store operators, subgraphs and etc.\n"
    yield "  You can find more details from https://github.com/tensorflow/tensorflow/blob/master/tensorflow/lite/schema/schema.fbs\n"


def _bytes_of(text: str) -> str:
    """Return a text with a character for each of its bytes in UTF-8, as LiteRT prints bytes and has a dot for each that is not ASCII."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")
