"""`oplet inspect`: the contents of a model file, and the packages that would run it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from oplet.texts import counted
from oplet_tools.cli.settings import Debug, Json, ModelFile, OpLibraries, PluginSwitches, Wide, option, settings_of

if TYPE_CHECKING:
    from oplet_tools.cli.console import Printer

__all__ = ["inspect"]

_Description = dict[str, Any]
_LONGEST_NAME = 36
_LONGEST_VALUES = 40


def inspect(
    context: typer.Context,
    model: ModelFile,
    custom_op_library: OpLibraries = None,
    nodes: Annotated[bool, option("--nodes", help="List the nodes.")] = False,
    tensors: Annotated[bool, option("--tensors", help="List the tensors.")] = False,
    subgraph: Annotated[int | None, option(min=0, metavar="N", help="List what this subgraph has, alone.")] = None,
    op: Annotated[
        str | None, option(metavar="NAME", help="List nodes of this op and the tensors that they read and write.")
    ] = None,
    tensor: Annotated[
        str | None,
        option(
            metavar="TEXT",
            help="List tensors with this number, or with this in their name, and the nodes that read or write them.",
        ),
    ] = None,
    json: Json = False,
    wide: Wide = False,
    p: PluginSwitches = None,
    debug: Debug = False,
) -> None:
    """Show what is in a model file, and who would run it: a summary, or the nodes and tensors that are asked for.

    JSON always has everything.
    """
    settings = settings_of(context, p, debug)
    from oplet_tools.cli.console import Printer, print_json
    from oplet_tools.describing.bundles import open_bundle
    from oplet_tools.describing.inspect import inspect_model

    if tensor is not None and not tensor.strip():
        raise typer.BadParameter("it is empty; give a tensor's number or a part of its name.", param_hint="--tensor")
    plugins, printer = settings.plugins(custom_op_library), Printer(wide)
    bundle = open_bundle(model, plugins)
    description = inspect_model(model, plugins) if bundle is None else bundle.described(plugins)
    if json:
        print_json(description)
        return
    show = partial(_show, printer, nodes=nodes, tensors=tensors, subgraph=subgraph, op=op, tensor=tensor, wide=wide)
    if bundle is None:
        show(model, description)
        return
    bundle.print(printer)
    for name, each in description["models"].items():
        show(name, each)


def _show(
    printer: Printer,
    model: Path | str,
    description: _Description,
    *,
    nodes: bool,
    tensors: bool,
    subgraph: int | None,
    op: str | None,
    tensor: str | None,
    wide: bool,
) -> None:
    """Print what was asked for of one model."""
    subgraphs = description["subgraphs"]
    if subgraph is not None:
        if subgraph >= len(subgraphs):
            raise typer.BadParameter(f"{model} has {counted(len(subgraphs), 'subgraph')}, from 0 on.", param_hint="--subgraph")
        subgraphs = [subgraphs[subgraph]]
    found = [chosen(each, op, tensor) for each in subgraphs]
    if (op is not None or tensor is not None) and not any(each.nodes or each.tensors for each in found):
        what = (
            f"node of the op '{op}'"
            if tensor is None
            else f"tensor '{tensor}'"
            if op is None
            else f"'{op}' with a tensor '{tensor}'"
        )
        raise typer.BadParameter(f"{model} has no {what}.", param_hint="--op" if tensor is None else "--tensor")
    if not (nodes or tensors or op is not None or tensor is not None):
        _print_header(printer, description)
        _print_ops(printer, description["ops"])
        _print_subgraphs(printer, subgraphs)
        _print_metadata(printer, description["metadata"])
        _print_said(printer, description)
        return
    both = not (nodes or tensors)
    for each, part in zip(subgraphs, found):
        if part.nodes and (nodes or both):
            _print_nodes(printer, each, part.nodes)
        if part.tensors and (tensors or both):
            _print_tensors(printer, each, part.tensors, wide)


class Chosen(NamedTuple):
    """Those nodes and tensors of a subgraph that the options select."""

    nodes: list[_Description]
    tensors: list[_Description]


def chosen(subgraph: _Description, op: str | None, tensor: str | None) -> Chosen:
    """Filter the nodes and tensors of a subgraph by an op's name, and by a tensor's number or a part of its name; without filters
    keep all.

    A node is chosen by its op and by the tensors that it has; a tensor by itself and by the nodes that have it.
    """
    nodes, tensors = subgraph["nodes"], subgraph["tensors"]
    if tensor is not None:
        named = {t["index"] for t in tensors if (str(t["index"]) == tensor if tensor.isdecimal() else tensor in t["name"])}
        nodes = [node for node in nodes if named & {*node["inputs"], *node["outputs"]}]
        tensors = [t for t in tensors if t["index"] in named]
    if op is not None:
        nodes = [node for node in nodes if node["op"].lower() == op.lower()]
        near = {index for node in nodes for index in (*node["inputs"], *node["outputs"])}
        tensors = [t for t in tensors if t["index"] in near]
    return Chosen(nodes, tensors)


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
        printer.table("signatures", ["key", "subgraph#?", "inputs~", "outputs~"], rows)


def _print_ops(printer: Printer, ops: list[_Description]) -> None:
    rows = []
    for op in ops:
        who = f"{op['distribution']} {op['distribution_version']}" if op["distribution"] else op["plugin"] or "nobody"
        who += f" ({op['library']})" if op["library"] else ""
        name = f"{op['op']} (custom)" if op["custom"] else f"{op['op']} (composite)" if op["composite"] else op["op"]
        rows.append((name, op["version"], op["nodes"], who, op.get("advice") or op["why"]))
    printer.table("ops", ["op", "version#", "nodes#", "from", "why~?"], rows)


def _print_subgraphs(printer: Printer, subgraphs: list[_Description]) -> None:
    rows = [
        (each["index"], each["name"], len(each["nodes"]), len(each["tensors"]), _signed(each, "inputs"), _signed(each, "outputs"))
        for each in subgraphs
    ]
    columns = ["subgraph#", "name?", "nodes#", "tensors#?", "inputs~", "outputs~"]
    printer.table("subgraphs (--nodes, --tensors, --op NAME and --tensor TEXT list what they have)", columns, rows)


def _signed(subgraph: _Description, side: str) -> str:
    """List the inputs or outputs of a subgraph with types and shapes."""
    found = [subgraph["tensors"][index] for index in subgraph[side]]
    return ", ".join(f"{t['index']}: {t['type']} {_shape(t)}" for t in found)


def _title(subgraph: _Description) -> str:
    return f"subgraph {subgraph['index']}" + (f" '{subgraph['name']}'" if subgraph["name"] else "")


def _print_nodes(printer: Printer, subgraph: _Description, nodes: list[_Description]) -> None:
    rows = [(n["index"], n["op"], n["version"], _indices(n["inputs"]), _indices(n["outputs"]), _options(n)) for n in nodes]
    printer.table(f"{_title(subgraph)}: nodes", ["node#", "op", "version#?", "inputs~", "outputs~", "options~"], rows)


def _print_tensors(printer: Printer, subgraph: _Description, tensors: list[_Description], wide: bool) -> None:
    rows = [
        (
            t["index"],
            t["type"],
            _shape(t),
            _quantization(t["quantization"]),
            _bytes(t),
            _role(t, subgraph),
            t["name"] if wide else _short(t["name"]),
            _values(t, wide),
        )
        for t in tensors
    ]
    columns = ["tensor#", "type", "shape", "quantization??", "bytes#?", "role?", "name", "values~?"]
    printer.table(f"{_title(subgraph)}: tensors", columns, rows)


def _print_metadata(printer: Printer, metadata: list[_Description]) -> None:
    if metadata:
        rows = [(entry["name"], entry["bytes"], entry["text"] or "") for entry in metadata]
        printer.table("metadata", ["name", "bytes#", "text~"], rows)


def _print_said(printer: Printer, description: _Description) -> None:
    """Print what the metadata of TFLite's tools and of ultralytics say, and the attached files."""
    from oplet_tools.describing.said import said_rows

    for title, rows in said_rows(description):
        printer.table(title, ["what", "value~"], rows)
    if description["files"]:
        printer.table("attached files", ["name", "bytes#"], [(file["name"], file["bytes"]) for file in description["files"]])
    for error in description["metadata_errors"]:
        printer.line(error, "yellow")


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


def _options(node: _Description) -> str:
    """Show a node's options, and its custom options as far as their form is known."""
    from oplet_tools.describing.printable import one_line_of

    custom = node["custom_options"]
    shown = (
        f"{node['custom_options_bytes']} bytes: {custom}" if isinstance(custom, str) else one_line_of(custom) if custom else ""
    )
    return ", ".join(filter(None, (one_line_of(node["options"]), shown)))


def _values(tensor: _Description, wide: bool) -> str:
    """Show the values of a small constant; of many, the first ones alone unless all is asked for."""
    from oplet_tools.describing.printable import one_line_of

    text = "" if tensor["values"] is None else one_line_of(tensor["values"])
    return text if wide or len(text) <= _LONGEST_VALUES else f"{text[:_LONGEST_VALUES]}..."


def _short(name: str) -> str:
    """Shorten a long name by leaving its middle out: converters join the names of fused ops, and both ends tell enough."""
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
