"""The constructor arguments of a Predictor: checked when they are given, and pickled so that each process opens its own
interpreters.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from oplet import Delegate, Interpreter, Limits, PluginManager
from oplet.errors import DelegateError, ModelError, PluginError, TensorError, failures, text_of
from oplet.toolkit import is_auto, manager_of

if TYPE_CHECKING:
    from oplet.toolkit import Preference

__all__ = [
    "Arguments",
    "DelegateSpec",
    "batch_argument",
    "delegate_arguments",
    "model_argument",
    "parse_delegate",
    "plugins_argument",
    "positive",
]

#: A delegate that each process can make: its name with options, a pair of both, or a function without arguments that returns it.
DelegateSpec: TypeAlias = "str | tuple[str, Mapping[str, Any]] | Callable[[], Delegate]"


@dataclass(frozen=True)
class Arguments:
    """The checked arguments with which a Predictor opens its interpreters.

    Attributes:
        model: the model's absolute path, or its bytes.
        delegates: delegate specifications; "auto" for the fastest.
        num_threads: threads of each interpreter.
        signature: the key of the signature; None for the only one, or the first subgraph if there are several or none.
        limits: limits of each interpreter.
        plugins: the plugins to use, as `Interpreter` takes them.
        prefer: the preferred packages, as `Interpreter` takes them.
        batch: the largest batch size, True for any, 1 for no batches, None to batch only where results have the same bits.
    """

    model: str | bytes
    delegates: tuple[DelegateSpec, ...] | str
    num_threads: int
    signature: str | None
    limits: Limits | None
    plugins: PluginManager | tuple[str, ...] | None
    prefer: Sequence[str] | Mapping[str, str] | Preference | None
    batch: int | bool | None

    @property
    def name(self) -> str:
        """The model's path, or "<bytes>", for messages."""
        return f"'{self.model}'" if isinstance(self.model, str) else f"a model of {len(self.model)} bytes"

    def open(self, with_delegates: bool = True) -> Interpreter:
        """Open a new interpreter with these arguments.

        Args:
            with_delegates: whether to apply the delegates.

        Raises:
            OpletError: the model cannot be opened, or a delegate cannot be made.
        """
        if isinstance(self.model, str) and not os.path.exists(self.model):
            raise ModelError(
                f"There is no file '{self.model}' here (process {os.getpid()}); a Predictor opens its model in each process that uses it, so "
                "give a path that all of them see, or the model's bytes."
            )
        manager = manager_of(self.plugins)
        specs = self.delegates if with_delegates else ()
        delegates = specs if isinstance(specs, str) else [_made(each, manager) for each in specs]
        return Interpreter(
            model_path=self.model if isinstance(self.model, str) else None,
            model_content=self.model if isinstance(self.model, bytes) else None,
            experimental_delegates=delegates,
            num_threads=self.num_threads,
            plugins=manager,
            prefer=self.prefer,
            limits=self.limits,
        )

    def ensure_picklable(self) -> None:
        """Check that the arguments can be sent to another process.

        Raises:
            PluginError: the plugins are an object of this process.
        """
        if isinstance(self.plugins, PluginManager):
            raise PluginError(
                f"The Predictor of {self.name} has a PluginManager, which stays in its process; for other processes give plugins= the names "
                "of plugins."
            )


def model_argument(model: object) -> str | bytes:
    """Return the absolute path or the bytes of a model.

    Raises:
        ModelError: `model` is neither a path nor bytes.
    """
    if isinstance(model, Interpreter) or hasattr(model, "allocate_tensors"):
        raise ModelError(
            "A Predictor takes the path or the bytes of a model, not an open interpreter: it opens one for each thread and process itself."
        )
    if isinstance(model, (bytes, bytearray, memoryview)) and model:
        return bytes(model)
    if isinstance(model, (str, os.PathLike)) and isinstance(path := os.fspath(model), str) and path:
        return os.path.abspath(path)
    raise ModelError(f"A Predictor takes the path or the bytes of a model, which {model!r:.80} is not.")


def delegate_arguments(delegates: object) -> tuple[DelegateSpec, ...] | str:
    """Check the specifications of delegates, and return them as a tuple; "auto" is returned as it is.

    Raises:
        DelegateError: one of them is not a specification of a delegate.
    """
    if isinstance(delegates, str):
        return delegates if is_auto(delegates) else (_spec(delegates),)
    if isinstance(delegates, (Delegate, Mapping)) or not isinstance(delegates, Sequence):
        raise _spec_error(delegates)
    if len(delegates) == 1 and isinstance(delegates[0], str) and is_auto(delegates[0]):
        return delegates[0]
    return tuple(_spec(each) for each in delegates)


def plugins_argument(plugins: PluginManager | Sequence[str] | None) -> PluginManager | tuple[str, ...] | None:
    """Return the plugins as given: a PluginManager or None, or names as a tuple, so that they can be pickled."""
    if plugins is None or isinstance(plugins, PluginManager):
        return plugins
    return (plugins,) if isinstance(plugins, str) else tuple(plugins)


def positive(name: str, value: object) -> int:
    """Check that an argument is a positive integer, and return it.

    Raises:
        TensorError: the value is not a positive integer (this is a ValueError).
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise TensorError(f"{name} is {value!r}; give a whole number of at least 1.")
    return value


def batch_argument(batch: object) -> int | bool | None:
    """Check the argument `batch`: None, True, or the largest batch as a positive integer; False becomes 1.

    Raises:
        TensorError: `batch` is none of these (a ValueError).
    """
    if batch is False:
        return 1
    if batch is None or (isinstance(batch, int) and batch > 0):
        return batch
    raise TensorError(
        f"batch is {batch!r}; give the largest batch as a whole number, True to have it chosen, False for single rows."
    )


def _spec(each: object) -> DelegateSpec:
    if isinstance(each, str):
        if is_auto(each):
            raise DelegateError(f"'{each}' chooses among all delegates, so it stands alone.")
        parse_delegate(each)  # to refuse malformed text here
        return each
    if isinstance(each, Sequence) and len(each) == 2 and isinstance(each[0], str) and isinstance(each[1], Mapping):
        return each[0], dict(each[1])
    if callable(each) and not isinstance(each, Delegate):
        return each
    raise _spec_error(each)


def _spec_error(each: object) -> DelegateError:
    if isinstance(each, Delegate):
        return DelegateError(
            f"The delegate '{each.name}' is an object, which belongs to one interpreter; give a Predictor its name, a pair (name, options), or "
            "a function that makes it."
        )
    return DelegateError(
        f"{each!r:.80} is no delegate; give names such as 'example:option=value', pairs (name, options), or functions that make one."
    )


def _made(each: DelegateSpec, manager: PluginManager) -> Delegate:
    if isinstance(each, (str, tuple)):
        name, options = parse_delegate(each) if isinstance(each, str) else each
        return manager.registry().find(name).create(options)
    try:
        delegate = each()
    except failures() as error:
        raise DelegateError(f"The function {each!r:.80} makes no delegate: {text_of(error, named=True)}") from error
    if not isinstance(delegate, Delegate):
        raise DelegateError(f"The function {each!r:.80} returns a {type(delegate).__name__}, which is no Delegate.")
    return delegate


def parse_delegate(text: str) -> tuple[str, dict[str, str]]:
    """Parse a delegate specifier into the delegate's name and its options.

    Args:
        text: "NAME" or "NAME:key=value,key=value". NAME ends at the last colon before the first "=", so that it may be
            "distribution:name". Values may contain colons and "=". A value that contains commas or quotes, or that begins or ends with
            a space, is put in quotes (of the other kind). A backslash has no special meaning.

    Raises:
        DelegateError: the text is malformed.

    Examples:
        >>> parse_delegate("some-package:npu:cache=/tmp/a:b,cores='1,2'")
        ('some-package:npu', {'cache': '/tmp/a:b', 'cores': '1,2'})
    """
    if not text.strip(":"):
        raise DelegateError(f"'{text}' names no delegate; write NAME or NAME:key=value,...")
    before, equals, _ = text.partition("=")
    if not equals:
        return text, {}
    name = before.rpartition(":")[0]
    options = {}
    for option in _split(text, text[len(name) + 1 :]):
        key, equals, value = option.partition("=")
        if not name or not key or not equals:
            raise DelegateError(f"'{text}' is not of the form NAME[:key=value,...]; '{option}' is no option.")
        options[key] = value
    return name, options


def _split(text: str, options: str) -> list[str]:
    lexer = shlex.shlex(options, posix=True, punctuation_chars=False)
    lexer.whitespace, lexer.whitespace_split = ",", True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError as error:
        raise DelegateError(f"'{text}' is not of the form NAME[:key=value,...]: {str(error).lower()}.") from error
