"""Generator of code that registers only the ops that models need; the code is a plugin module and a resolver in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from oplet.toolkit import ResolverEntry
from oplet_build.selection.generated_files import file_labels
from oplet_build.selection.needs import OpNeed
from oplet_build.selection.providers import ServedOp, kernel_path

__all__ = ["resolver_code"]

_TEMPLATES = Path(__file__).parent / "templates"
_WIDTH = 130
_IMPORTS = "from oplet import MutableOpResolver, hookimpl"
_IMPORTS_WITH_TYPES = "from oplet import MutableOpResolver, TensorType, TypeLimit, hookimpl"


def resolver_code(served: Sequence[ServedOp], *, types: bool = False) -> str:
    """Return the source of a module with `register_ops(resolver)` and `resolver()`; the same needs give the same text.

    Args:
        served: the ops with the kernels for them.
        types: refuse nodes with other tensor types than those of the models' nodes.

    Raises:
        SelectionError: a registration has no name to import it by.
    """
    from oplet import __version__

    limited = types and any(each.need.types for each in served)
    return _template("resolver").substitute(
        what=_what([each.need for each in served]),
        oplet=__version__,
        imports=_IMPORTS_WITH_TYPES if limited else _IMPORTS,
        helpers=_template("only").template if limited else "",
        registrations="\n".join(_registrations(served, types)) or "    # No model needs any.",
    )


def _template(name: str) -> Template:
    return Template((_TEMPLATES / f"{name}.py.in").read_text(encoding="utf-8"))


def _what(needs: Sequence[OpNeed]) -> str:
    """Return the first line of the generated module's docstring, which names what needs the ops."""
    models = file_labels(model for need in needs for model in need.models)
    more = ", and others asked for by name" if any(not need.models for need in needs) else ""
    if not models:
        return "Operators that were asked for by name."
    listed = ", ".join(models)
    if len(listed) > 60:
        listed = f"{len(models)} models" if len(models) > 1 else "a model"
    return f"The operators that {listed} need{'s' if len(models) == 1 else ''}, in just these versions{more}."


def _registrations(served: Sequence[ServedOp], types: bool) -> list[str]:
    """Return blocks of code: the registrations of each package, then those of kernels for nodes that others decline."""
    lines = _blocks([(each.need, each.entries) for each in served], types)
    for place in range(max((len(each.fallbacks) for each in served), default=0)):
        behind = [(each.need, each.fallbacks[place]) for each in served if place < len(each.fallbacks)]
        lines += _blocks(behind, types, fallback=True)
    return lines


def _blocks(served: Sequence[tuple[OpNeed, tuple[ResolverEntry, ...]]], types: bool, fallback: bool = False) -> list[str]:
    blocks: dict[str, list[str]] = {}
    for need, entries in served:
        for entry in entries:
            arguments = [_quoted(need.name), _quoted(kernel_path(entry))]
            first = 0 if need.composite else 1
            if (entry.min_version, entry.max_version) != (first, first):
                arguments.append(str(entry.min_version))
            if entry.max_version != entry.min_version:
                arguments.append(str(entry.max_version))
            if types and need.types:
                arguments.append(f"limit=_only({', '.join(f'TensorType.{type.name}' for type in need.types)})")
            if fallback:
                arguments.append("fallback=True")
            call = _call(f"resolver.add_{'composite' if need.composite else 'custom' if need.custom else 'builtin'}", arguments)
            blocks.setdefault(ascii(str(entry.provenance))[1:-1], []).extend(call)
    told = ", for nodes that those above decline" if fallback else ""
    return [line for origin in sorted(blocks) for line in (f"    # {origin}{told}", *blocks[origin])]


def _call(function: str, arguments: Sequence[str]) -> list[str]:
    """Format a call as a code formatter writes it: on one line, or one argument per line."""
    line = f"    {function}({', '.join(arguments)})"
    return [line] if len(line) <= _WIDTH else [f"    {function}(", *(f"        {a}," for a in arguments), "    )"]


def _quoted(text: str) -> str:
    """Format an ASCII string literal, in double quotes unless it contains some."""
    literal = ascii(text)
    if literal.startswith("'") and '"' not in literal and "\\'" not in literal:
        literal = f'"{literal[1:-1]}"'
    return literal
