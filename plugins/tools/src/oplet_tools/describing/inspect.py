"""Description of a model file: its contents, and the packages that would run it."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Composite, Model, OpResolver, Provenance
from oplet.errors import ModelError, OpletError
from oplet.schema import tables
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.toolkit import PACKED_BITS, Op, bytes_needed, made_tensors, numpy_dtype, read_strings, unpack, verify
from oplet_tools.describing.operators import composite_of, version_of
from oplet_tools.describing.printable import MOST_VALUES, custom_options_of, plain_options, plain_values
from oplet_tools.describing.verdicts import Verdict, try_model
from oplet_tools.metadata.attached_files import attached_files
from oplet_tools.metadata.reading import to_dict
from oplet_tools.metadata.tables import model_metadata
from oplet_tools.metadata.ultralytics import ultralytics_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet import PluginManager

__all__ = ["inspect_model"]

#: The most reasons that are listed of an op's nodes.
_LISTED = 3

#: Longest metadata that is shown as text, and longest string among the values of a constant, in bytes.
_LONGEST_TEXT, _LONGEST_STRING = 1000, 1000


def inspect_model(model: str | os.PathLike[str] | Model, plugins: PluginManager | None = None) -> dict[str, Any]:
    """Describe a model in plain dictionaries and lists, ready for JSON.

    Args:
        model: the .tflite file, or an open model.
        plugins: the plugins that would provide kernels; all installed ones by default.

    Returns:
        The keys are `file`, `schema_version`, `description`, `min_runtime_version` (the converter's note, None without one),
        `subgraphs` (each with `inputs`, `outputs`, `tensors` and `nodes`), `ops` (each op and version with the number of its
        nodes and the package that serves it), `signatures`, `metadata` (the entries), `tflite_metadata`, `ultralytics` (metadata
        in these two formats), `files` (attached ones) and `metadata_errors` (why metadata cannot be read).

    Raises:
        ModelError: the file cannot be read or is not a valid model.
    """
    if not isinstance(model, Model):
        model = Model.open(model)
    verify(model)
    root = model.root
    metadata = [_metadata(model, entry) for entry in root.metadata or []]
    return {
        "file": model.name,
        "schema_version": root.version,
        "description": root.description or "",
        "min_runtime_version": next((entry["text"] for entry in metadata if entry["name"] == "min_runtime_version"), None),
        "signatures": [_signature(signature) for signature in root.signature_defs or []],
        "ops": _ops(model, plugins),
        "subgraphs": [_subgraph(model, index, subgraph) for index, subgraph in enumerate(root.subgraphs or [])],
        "metadata": metadata,
        **_said(model),
    }


def _said(model: Model) -> dict[str, Any]:
    """Describe the metadata of TFLite's tools and of ultralytics, each by itself: damaged ones leave the others readable."""
    told: dict[str, Any] = {"tflite_metadata": None, "ultralytics": None, "files": [], "metadata_errors": []}
    for key, read in (
        ("tflite_metadata", lambda: None if (said := model_metadata(model)) is None else to_dict(said)),
        ("files", lambda: [file._asdict() for file in attached_files(model)]),
        ("ultralytics", lambda: None if (said := ultralytics_of(model)) is None else dict(said.content)),
    ):
        try:
            told[key] = read()
        except OpletError as error:
            told["metadata_errors"].append(str(error))
    told["metadata_errors"] = list(dict.fromkeys(told["metadata_errors"]))
    return told


def _metadata(model: Model, entry: tables.Metadata) -> dict[str, Any]:
    data = model.buffer(entry.buffer)
    size = 0 if data is None else data.size
    text = None
    if data is not None and size <= _LONGEST_TEXT:
        try:
            decoded = data.tobytes().rstrip(b"\0").decode()
        except UnicodeDecodeError:
            decoded = "\0"
        if all(character.isprintable() or character in "\r\n\t" for character in decoded):
            text = decoded
    return {"name": entry.name or "", "bytes": size, "text": text}


def _signature(signature: tables.SignatureDef) -> dict[str, Any]:
    return {
        "key": signature.signature_key or "",
        "subgraph": signature.subgraph_index,
        "inputs": {entry.name or "": entry.tensor_index for entry in signature.inputs or []},
        "outputs": {entry.name or "": entry.tensor_index for entry in signature.outputs or []},
    }


def _ops(model: Model, plugins: PluginManager | None) -> list[dict[str, Any]]:
    from oplet.toolkit import default_manager

    manager = plugins or default_manager()
    resolver = manager.resolver()
    trial = try_model(model, manager)
    counts: Counter[tuple[BuiltinOperator, str, int]] = Counter()
    verdicts: dict[tuple[BuiltinOperator, str, int], list[Verdict]] = {}
    composites: Counter[tuple[Composite, int]] = Counter()
    for number, subgraph in enumerate(model.root.subgraphs or []):
        for place, node in enumerate(subgraph.operators or []):
            key = model.op_of(node)
            counts[key] += 1
            if (verdict := trial.verdicts.get((number, place))) is not None:
                verdicts.setdefault(key, []).append(verdict)
            if composite := composite_of(node):
                composites[composite, version_of(node)] += 1
    ops = []
    for key, count in sorted(counts.items(), key=lambda item: (item[0][1], item[0][2])):
        op, name, version = key
        entry = _op(name, name if op is BuiltinOperator.CUSTOM else op, version, count, manager, resolver, verdicts.get(key, ()))
        if refusal := trial.refused.get((name, version)):
            entry["advice"] = entry["advice"] or refusal
        ops.append(entry)
    ops += [_op(op.name, op, version, count, manager, resolver) for (op, version), count in sorted(composites.items())]
    return ops


def _op(
    name: str, op: Op, version: int, nodes: int, manager: PluginManager, resolver: OpResolver, verdicts: Sequence[Verdict] = ()
) -> dict[str, Any]:
    """Describe one op in one version, and the package that serves most of its nodes; a composite without a kernel runs as its
    decomposition.
    """
    custom, composite = isinstance(op, str), isinstance(op, Composite)
    entry: dict[str, Any] = {"op": name, "version": version, "custom": custom, "composite": composite, "nodes": nodes}
    entry |= {"distribution": "", "distribution_version": "", "plugin": "", "library": "", "advice": ""}
    try:
        registration = resolver.find_op(op, version)
        entry["why"] = resolver.why(op, version)
        declined = dict.fromkeys(verdict.why for verdict in verdicts if verdict.why)
        if registration is not None:
            origin, library = registration.provenance, registration.library
            if not composite and (served := Counter((v.provenance, v.library) for v in verdicts if v.provenance is not None)):
                [((origin, library), _)] = served.most_common(1)
                chosen = [entry["why"]] if origin == registration.provenance else []  # else why the first one does not serve it
                entry["why"] = "; ".join([*chosen, *list(declined)[:_LISTED]])
            entry |= _named(origin) | {"library": os.path.basename(library)}
        elif isinstance(op, str) and (delegate := manager.delegate_for(op)) is not None:
            if all(verdict.provider for verdict in verdicts):
                entry |= _named(delegate.provenance) | {"why": f"the delegate {delegate.name} exists for it"}
            else:
                entry["advice"] = "; ".join(list(declined)[:_LISTED]) or manager.advice(op)
        elif composite:
            entry["why"] += "; its decomposition runs"
        else:
            entry["advice"] = manager.advice(op)
    except OpletError as error:  # a conflict between packages, or a kernel that cannot be imported
        entry["why"] = str(error)
    return entry


def _named(origin: Provenance) -> dict[str, str]:
    return {"distribution": origin.distribution, "distribution_version": origin.version, "plugin": origin.plugin}


def _subgraph(model: Model, index: int, subgraph: tables.SubGraph) -> dict[str, Any]:
    made = made_tensors(subgraph)
    return {
        "index": index,
        "name": subgraph.name or "",
        "inputs": _list(subgraph.inputs),
        "outputs": _list(subgraph.outputs),
        "tensors": [_tensor(model, place, tensor, place in made) for place, tensor in enumerate(subgraph.tensors or [])],
        "nodes": [_node(model, place, node) for place, node in enumerate(subgraph.operators or [])],
    }


def _tensor(model: Model, index: int, tensor: tables.Tensor, is_made: bool) -> dict[str, Any]:
    shape = _list(tensor.shape)
    data = model.tensor_bytes(tensor)
    return {
        "index": index,
        "name": tensor.name or "",
        "type": tensor.type.name,
        "shape": shape,
        "shape_signature": shape if tensor.shape_signature is None else _list(tensor.shape_signature),
        "quantization": _quantization(tensor.quantization),
        "bytes": bytes_needed(shape, tensor.type) if data is None else data.size,
        "constant": data is not None and not is_made,
        "variable": tensor.is_variable,
        "sparse": tensor.sparsity is not None,
        "values": None if is_made or (values := _small_constant(model, tensor)) is None else plain_values(values),
    }


def _small_constant(model: Model, tensor: tables.Tensor) -> NDArray[Any] | None:
    """Return the values of a constant in its shape; None if the tensor is no constant, has many elements, is stored sparse, or its bytes
    are not those of its type and shape.
    """
    shape = () if tensor.shape is None else tuple(map(int, tensor.shape))
    count = math.prod(shape)
    raw = model.tensor_bytes(tensor)
    if raw is None or not 0 <= count <= MOST_VALUES or tensor.sparsity is not None:
        return None
    try:
        if tensor.type is TensorType.STRING:
            values = read_strings(raw, "") if raw.size <= MOST_VALUES * _LONGEST_STRING else None
        elif tensor.type in PACKED_BITS:
            values = unpack(raw, tensor.type, count)
        else:
            dtype = numpy_dtype(tensor.type)
            values = raw.view(dtype) if not dtype.hasobject and raw.size == count * dtype.itemsize else None
    except (ModelError, ValueError, ImportError):  # describing a damaged constant is no reason to describe nothing
        return None
    return values.reshape(shape) if values is not None and values.size == count else None


def _quantization(quantization: tables.QuantizationParameters | None) -> dict[str, Any] | None:
    if quantization is None:
        return None
    details = quantization.details
    if isinstance(details, tables.BlockwiseQuantization):
        return {"scales_tensor": details.scales, "zero_points_tensor": details.zero_points, "block_size": details.block_size}
    scales = _list(quantization.scale)
    if not scales:
        return None
    return {
        "scales": scales,
        "zero_points": _list(quantization.zero_point) or [0] * len(scales),
        "quantized_dimension": quantization.quantized_dimension,
    }


def _node(model: Model, index: int, node: tables.Operator) -> dict[str, Any]:
    _, name, version = model.op_of(node)
    custom = model.custom_options(node)
    options = node.builtin_options if node.builtin_options is not None else node.builtin_options_2
    return {
        "index": index,
        "op": name,
        "version": version,
        "inputs": _list(node.inputs),
        "outputs": _list(node.outputs),
        "options": {} if options is None else plain_options(options),
        "custom_options": custom_options_of(custom),
        "custom_options_bytes": len(custom),
    }


def _list(values: Iterable[Any] | None) -> list[Any]:
    return [] if values is None else np.asarray(values).tolist()
