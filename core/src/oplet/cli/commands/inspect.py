"""`oplet inspect`: the contents of a model file, and the packages that would run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from oplet.cli.settings import Debug, Json, ModelFile, PluginSwitches, settings_of

if TYPE_CHECKING:
    from oplet.cli.console import Printer

__all__ = ["inspect"]

_Description = dict[str, Any]
_LONGEST_NAME = 50


def inspect(context: typer.Context, model: ModelFile, json: Json = False, p: PluginSwitches = None, debug: Debug = False) -> None:
    """Show what is in a model file, and who would run it."""
    settings = settings_of(context, p, debug)
    from oplet.cli.console import Printer, print_json
    from oplet.tools.describing.inspect import inspect_model

    description = inspect_model(model, settings.plugins())
    if json:
        print_json(description)
        return
    printer = Printer()
    _print_header(printer, description)
    _print_ops(printer, description["ops"])
    for subgraph in description["subgraphs"]:
        _print_subgraph(printer, subgraph)
    _print_metadata(printer, description["metadata"])


def _print_header(printer: Printer, description: _Description) -> None:
    printer.line(description["file"], "bold")
    if description["description"]:
        printer.line(f"description: {description['description']}")
    printer.line(f"schema version: {description['schema_version']}")
    printer.line(f"min runtime version: {description['min_runtime_version'] or 'not said'}")
    rows = [
        (s["key"], s["subgraph"], _names(s["inputs"]), _names(s["outputs"])) for s in description["signatures"]
    ]  # fmt: skip
    if rows:
        printer.table("signatures", ["key", "subgraph#", "inputs", "outputs"], rows)


def _print_ops(printer: Printer, ops: list[_Description]) -> None:
    rows = []
    for op in ops:
        who = f"{op['distribution']} {op['distribution_version']}" if op["distribution"] else op["plugin"] or "nobody"
        name = f"{op['op']} (custom)" if op["custom"] else f"{op['op']} (composite)" if op["composite"] else op["op"]
        rows.append((name, op["version"], op["nodes"], who, op.get("advice") or op["why"]))
    printer.table("ops", ["op", "version#", "nodes#", "from", "why"], rows)


def _print_subgraph(printer: Printer, subgraph: _Description) -> None:
    title = f"subgraph {subgraph['index']}" + (f" '{subgraph['name']}'" if subgraph["name"] else "")
    nodes = [(n["index"], n["op"], n["version"], _indices(n["inputs"]), _indices(n["outputs"])) for n in subgraph["nodes"]]
    printer.table(f"{title}: nodes", ["node#", "op", "version#", "inputs", "outputs"], nodes)
    tensors = [
        (t["index"], t["type"], _shape(t), _quantization(t["quantization"]), _bytes(t), _role(t, subgraph), _short(t["name"]))
        for t in subgraph["tensors"]
    ]
    columns = ["tensor#", "type", "shape", "quantization", "bytes#", "role", "name"]
    printer.table(f"{title}: tensors", columns, tensors)


def _print_metadata(printer: Printer, metadata: list[_Description]) -> None:
    if metadata:
        rows = [(entry["name"], entry["bytes"], entry["text"] or "") for entry in metadata]
        printer.table("metadata", ["name", "bytes#", "text"], rows)


def _names(tensors: dict[str, int]) -> str:
    return ", ".join(f"{name} ({index})" for name, index in tensors.items())


def _indices(indices: list[int]) -> str:
    return " ".join("-" if index < 0 else str(index) for index in indices)


def _shape(tensor: _Description) -> str:
    if -1 in tensor["shape_signature"]:
        return str(["?" if dim == -1 else dim for dim in tensor["shape_signature"]]).replace("'", "")
    return str(tensor["shape"])


def _quantization(quantization: _Description | None) -> str:
    if quantization is None:
        return ""
    if "block_size" in quantization:
        return f"blocks of {quantization['block_size']}, scales in tensor {quantization['scales_tensor']}"
    scales, zero_points = quantization["scales"], quantization["zero_points"]
    if len(scales) == 1:
        shift = f"(q {-zero_points[0]:+d})".replace("+", "+ ").replace("-", "- ")
        return f"{scales[0]:.6g} * {shift if zero_points[0] else 'q'}"
    return f"{len(scales)} scales on axis {quantization['quantized_dimension']}"


def _short(name: str) -> str:
    """A long name with its middle left out: converters join the names of fused ops, and both ends tell enough."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME // 2]}...{name[-_LONGEST_NAME // 2 :]}"


def _bytes(tensor: _Description) -> str:
    return "" if tensor["bytes"] is None else str(tensor["bytes"])


def _role(tensor: _Description, subgraph: _Description) -> str:
    roles = [
        ("input", tensor["index"] in subgraph["inputs"]),
        ("output", tensor["index"] in subgraph["outputs"]),
        ("constant", tensor["constant"]),
        ("variable", tensor["variable"]),
        ("sparse", tensor["sparse"]),
    ]
    return " ".join(role for role, holds in roles if holds)
