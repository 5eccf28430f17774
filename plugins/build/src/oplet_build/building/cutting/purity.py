"""Purity analysis: finds top-level statements without side effects, which can be removed when nothing uses the names that they
bind.

The analysis is conservative: whatever is not known to be pure counts as a side effect, which keeps the statement.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterator, Mapping

__all__ = ["HARMLESS_MODULES", "Purity"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Builtins without side effects.
_BUILTINS = _words(
    """
    abs all any bool bytes complex dict divmod enumerate float frozenset hasattr hash int isinstance issubclass len list
    max min object pow property range repr reversed round set slice sorted staticmethod classmethod str sum tuple type zip
    bytearray TypeError ValueError RuntimeError KeyError
    """
)
#: Modules whose functions all have no side effects.
HARMLESS_MODULES = _words(
    """
    _thread collections collections.abc dataclasses decimal enum fractions itertools math re string struct threading types typing
    typing_extensions uuid weakref os.path pathlib datetime abc
    """
)
_FUNCTIONS = _words(
    """
    functools.cache functools.cached_property functools.lru_cache functools.partial functools.partialmethod
    functools.singledispatch functools.total_ordering functools.wraps functools.cmp_to_key operator.attrgetter
    operator.itemgetter operator.methodcaller logging.getLogger os.environ.get os.getenv os.cpu_count
    contextlib.contextmanager contextlib.suppress contextlib.nullcontext oplet.hookimpl
    """
)
_NUMPY = _words(
    """
    arange array asarray bool_ complex128 complex64 concatenate diag dtype empty eye finfo float16 float32 float64
    frombuffer frompyfunc full iinfo int16 int32 int64 int8 intp linspace longdouble nextafter ones promote_types
    result_type stack tile uint16 uint32 uint64 uint8 vectorize zeros repeat reshape cumsum
    """
)
#: numpy's functions of one array; a second positional argument would be their output array.
_NUMPY_UNARY = _words(
    """
    abs absolute arctan ceil cos exp expm1 floor log log1p log2 negative rint round sign sin sqrt square tanh trunc
    """
)
#: What the names of functions end in that build a registration, and do nothing else.
_BUILDERS = ("registration", "takes_halves")
#: Methods that do not change their object.
_METHODS = _words(
    """
    astype copy count decode encode endswith format fromkeys get items join keys lower lstrip newbyteorder removeprefix
    removesuffix replace reshape rstrip split startswith strip title tobytes tolist transpose union upper values view
    """
)
_DECORATOR_MODULES = (
    "functools.",
    "contextlib.",
    "dataclasses.",
    "typing.",
    "typing_extensions.",
    "abc.",
    "enum.",
    "oplet.hookimpl",
)


class Purity:
    """Analysis of which statements of one module have no side effects ("pure").

    Args:
        origins: the dotted name that each imported name stands for: "numpy", "functools.partial".
        local: names that the module itself defines.
        sources: the top-level packages from which code is extracted.
        plain_classes: whether subclassing the classes of `sources` has no side effects.
    """

    def __init__(self, origins: Mapping[str, str], local: set[str], sources: set[str], plain_classes: bool) -> None:
        self._origins = origins
        self._local = local
        self._sources = sources
        self._plain_classes = plain_classes
        self._imported = {origin.partition(".")[0] for origin in origins.values()}

    def has_no_effect(self, node: ast.stmt) -> bool:
        """Return whether executing a statement is known to have no effect besides binding names."""
        if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
            return self.has_harmless_decorators(node) and all(map(self.is_pure, defaults))
        if isinstance(node, ast.ClassDef):
            return self.is_harmless_class(node) and all(map(self.has_no_effect, node.body))
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return all(map(_is_name, targets)) and (node.value is None or self.is_pure(node.value))
        if isinstance(node, ast.If):
            return self.is_pure(node.test) and all(map(self.has_no_effect, [*node.body, *node.orelse]))
        if isinstance(node, ast.Try):
            handlers = [inner for handler in node.handlers for inner in handler.body]
            return all(map(self.has_no_effect, [*node.body, *handlers, *node.orelse, *node.finalbody]))
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)

    def has_harmless_decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
        """Return whether all decorators are known to register nothing and, except dataclass, not to read annotations."""
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = self.origin(called)
            setter = isinstance(called, ast.Attribute) and called.attr in ("setter", "getter", "deleter")
            if not setter and name not in ("property", "staticmethod", "classmethod") and not name.startswith(_DECORATOR_MODULES):
                return False
            if isinstance(decorator, ast.Call) and not all(map(self.is_pure, _arguments(decorator))):
                return False
        return True

    def is_harmless_class(self, node: ast.ClassDef) -> bool:
        """Return whether a class's decorators, bases and metaclass are known to have no side effects; its body may have some."""
        if not self.has_harmless_decorators(node) or any(
            k.arg != "metaclass" or self.origin(k.value) != "abc.ABCMeta" for k in node.keywords
        ):
            return False
        return all(map(self._known_base, node.bases))

    def _known_base(self, base: ast.expr) -> bool:
        if isinstance(base, ast.Subscript):
            base = base.value
        if isinstance(base, ast.Call):
            return self.is_pure(base)
        name = self.origin(base)
        top = name.partition(".")[0]
        if name in self._local or top in self._sources:
            return self._plain_classes
        return bool(name) and (hasattr(builtins, name) or top in sys.stdlib_module_names or top in ("oplet", "numpy"))

    def is_pure(self, node: ast.expr) -> bool:
        """Return whether evaluating an expression is known to have no side effects."""
        return all(self._pure_part(part) for part in _computed(node))

    def _pure_part(self, node: ast.AST) -> bool:
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return False
        return not isinstance(node, ast.Call) or self._pure_call(node)

    def _pure_call(self, node: ast.Call) -> bool:
        name = self.origin(node.func)
        module, _, last = name.rpartition(".")
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        key = keywords.get("key")
        if "out" in keywords or (key is not None and not isinstance(key, ast.Lambda)):
            return False
        if not module and last in _BUILTINS and last not in self._local:
            return True
        if name in _FUNCTIONS or module in HARMLESS_MODULES or name.endswith(_BUILDERS):
            return True
        if module == "numpy":
            return last in _NUMPY or (last in _NUMPY_UNARY and len(node.args) == 1)
        if name.startswith("oplet.") and last[:1].isupper():
            return True
        # An imported name may be a module, one of whose functions has the name of a harmless method.
        return (
            isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS and name.partition(".")[0] not in self._imported
        )

    def origin(self, node: ast.expr) -> str:
        """Return an expression's dotted name with imports resolved: "numpy.array" for np.array; "" if it is no name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self._origins.get(node.id, node.id), *reversed(parts)])


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name) or (isinstance(target, ast.Starred) and _is_name(target.value))


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _computed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the subexpressions that are evaluated with an expression; a lambda's body is not."""
    yield node
    if isinstance(node, ast.Lambda):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            yield from _computed(default)
        return
    for child in ast.iter_child_nodes(node):
        yield from _computed(child)
