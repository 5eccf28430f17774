"""The generated plugin module of a selective build, which registers its ops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from oplet.schema.enums import TensorType
from oplet_build.building.kernels import Kernel
from oplet_build.selection.needs import Key

__all__ = ["plugin_module"]

_HEAD = '''"""Operators for oplet: {count} of {sources}, selected by `oplet build`."""

from __future__ import annotations

{imports}
#: Below plugins, above the packages of built-in operators.
OPLET_TIER = "selection"
OPLET_API = {api}
'''
_HOOK = '''

@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Bring the operators, in the versions that the models have; nothing is imported yet."""
'''
_FROM_HOOK = '''

def _add_from_hook(
    resolver: MutableOpResolver, op: str, module: str, hook: str, first: int, last: int | None = None, **how: Any
) -> None:
    """Take an op over from the hook of the package that it was cut out of, where its registration has no name."""
    found = MutableOpResolver()
    attrgetter(hook)(import_module(f"{__name__}.{module}"))(resolver=found)
    for version in range(first, (last or first) + 1):
        for entry in found.entries():
            if op_label(entry.op) == op and entry.min_version <= version <= entry.max_version:
                if isinstance(entry.op, Composite):
                    resolver.add_composite(op, entry.target, version, **how)
                elif isinstance(entry.op, str):
                    resolver.add_custom(op, entry.target, version, **how)
                else:
                    resolver.add_builtin(entry.op, entry.target, version, **how)
'''


def plugin_module(
    kernels: Iterable[Kernel],
    homes: Mapping[str, str],
    sources: str,
    api: int,
    types: Mapping[Key, tuple[TensorType, ...]] = MappingProxyType({}),
) -> str:
    """Return the source of the built package's `__init__.py`, which registers the kernels.

    Args:
        kernels: the kernels to register.
        homes: new names of the source packages, by their old names.
        sources: names of the distributions that the kernels come from, in one text.
        api: the version of the plugin contract.
        types: the tensor types that nodes of an op may have, by the op's `Kernel.key`; ops that are not listed take any.
    """
    kernels = list(kernels)
    imports = _imports(any(kernel.by_hook for kernel in kernels), any(types.values()))
    lines = [_HEAD.format(count=_count(kernels), sources=sources, imports=imports, api=api), _HOOK]
    for kernel in kernels:
        last = [] if kernel.min_version == kernel.max_version else [str(kernel.max_version)]
        arguments = [str(kernel.min_version), *last]
        if only := types.get(kernel.key):
            names = ", ".join(f"TensorType.{type.name}" for type in only)
            arguments.append(f"limit=TypeLimit(({names}{',' if len(only) == 1 else ''}))")
        if kernel.fallback:
            arguments.append("fallback=True")
        place = _here(kernel.module, homes)
        if kernel.by_hook:
            call, target = "_add_from_hook(resolver, ", f"{_text(place)}, {_text(kernel.attribute)}"
        else:
            call = f"resolver.add_{'composite' if kernel.composite else 'custom' if kernel.custom else 'builtin'}("
            target = f'f"{{__name__}}.{place}:{kernel.attribute}"'
        lines.append(f"    {call}{_text(kernel.op)}, {target}, {', '.join(arguments)})\n")
    if any(kernel.by_hook for kernel in kernels):
        lines.append(_FROM_HOOK)
    return "".join(lines)


def _imports(by_hook: bool, limited: bool) -> str:
    lines = []
    if by_hook:
        lines += ["from importlib import import_module", "from operator import attrgetter", "from typing import Any", ""]
    lines.append(f"from oplet import MutableOpResolver, {'TensorType, TypeLimit, ' if limited else ''}hookimpl")
    if by_hook:
        lines += ["from oplet import Composite", "from oplet.toolkit import op_label"]
    return "\n".join(lines) + "\n"


def _count(kernels: list[Kernel]) -> str:
    ops = {kernel.key for kernel in kernels}
    return f"{len(ops)} operator{'s'[: len(ops) != 1]}"


def _here(module: str, homes: Mapping[str, str]) -> str:
    """Return the new name of a source package's module, relative to the new package."""
    top, dot, rest = module.partition(".")
    return (homes[top].partition(".")[2] + dot + rest).lstrip(".")


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' if text.isprintable() else repr(text)
