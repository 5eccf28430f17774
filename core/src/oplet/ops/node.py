"""Nodes: the operators of a graph, and what their kernels keep with them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from oplet.errors import CustomOptionsError
from oplet.ops.checkpoint import charge
from oplet.ops.ensure import EnsureError
from oplet.ops.serving.provenance import Provenance
from oplet.ops.tensor import Array, Tensor
from oplet.schema.enums import BuiltinOperator
from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.table import Table
from oplet.texts import shown

__all__ = ["Kernel", "KernelCache", "Node", "ProviderChain", "Thunk"]

#: What runs a node, its arrays already looked up: a function without arguments and without result.
Thunk = Callable[[], None]
Options = TypeVar("Options", bound=Table)
Value = TypeVar("Value")
#: Arrays of less bytes than these are not counted, nor the parts of values that have more.
_SMALL, _FEW = 1 << 16, 64
#: What a kernel keeps for a node from one prepare to the next.
KernelCache = tuple["dict[Hashable, tuple[list[Array | None], Any]] | None", "dict[int, Tensor] | None"]


class Kernel(Protocol):
    """What serves a node: a `Registration`, as far as nodes and those who run them ask. Registrations stand above nodes."""

    @property
    def name(self) -> str: ...

    @property
    def builtin_code(self) -> BuiltinOperator: ...

    @property
    def custom_name(self) -> str: ...

    @property
    def init(self) -> Callable[[Any, Any], Any] | None: ...

    @property
    def free(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def prepare(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def bind(self) -> Callable[[Any, Any], Thunk] | None: ...

    @property
    def invoke(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def async_kernel(self) -> Callable[[Any, Any], Any] | None: ...

    @property
    def profiling_string(self) -> Callable[[Any, Any], str] | None: ...

    @property
    def user_data(self) -> Any: ...

    @property
    def pure(self) -> bool: ...

    @property
    def sparse(self) -> frozenset[int]: ...

    @property
    def limits(self) -> Any: ...

    @property
    def provenance(self) -> Provenance: ...


class ProviderChain(Protocol):
    """Who was asked to serve a node, and who is asked next: its `Providers`, which stand above nodes, too."""

    @property
    def declined(self) -> Sequence[tuple[Kernel, str]]: ...

    @property
    def started(self) -> bool: ...

    def start(self) -> None: ...

    def restart(self) -> None: ...

    def advance(self, reason: str) -> bool: ...

    def initialized(self) -> Sequence[tuple[Kernel, Any]]: ...


class Node:
    """One operator of the graph.

    Attributes:
        index: its number in the subgraph.
        op: the built-in operator; CUSTOM for custom ops, DELEGATE for a delegate's kernel.
        op_name: what messages call it: "CONV_2D", "Atan".
        version: the version that the model asks for.
        inputs: its input tensors; None where an optional one is left out.
        outputs: its output tensors.
        intermediates: tensors that only carry quantization parameters (LSTM, SVDF).
        temporaries: scratch tensors, asked for with `Context.add_temporary`; forgotten before each prepare.
        in_place: the inputs in whose memory the first output may lie, as `prepare` says; forgotten before each prepare. The
            kernel must give the same answer there: whatever it still has to read of such an input, it has not overwritten.
            The runtime makes use of it for one of these inputs that is as large as the output and that nobody reads later.
        custom_options: the bytes that came with a custom op.
        registration: the methods that serve it, None while it is unresolved.
        delegate: the delegate whose kernel it is, None for a node of the model.
        user_data: what the registration's `init` returned.
        prepared: free for the kernel: what `prepare` hands to `bind`.
        providers: who was asked to serve it; None until somebody declines.
    """

    __slots__ = (
        "_cache",
        "_options",
        "_persistent",
        "charged",
        "custom_options",
        "delegate",
        "in_place",
        "index",
        "inputs",
        "intermediates",
        "op",
        "op_name",
        "outputs",
        "prepared",
        "providers",
        "registration",
        "temporaries",
        "user_data",
        "version",
    )

    def __init__(
        self,
        index: int,
        op: BuiltinOperator,
        op_name: str,
        version: int,
        inputs: Iterable[Tensor | None],
        outputs: Iterable[Tensor],
        options: Table | None = None,
        *,
        intermediates: Iterable[Tensor] = (),
        custom_options: bytes = b"",
        registration: Kernel | None = None,
    ) -> None:
        self.index = index
        self.op = op
        self.op_name = op_name
        self.version = version
        # Kernels index these freely, so a wrong count must not become an IndexError from the depths: see `input`.
        self.inputs: list[Tensor] = list(inputs)  # type: ignore[arg-type]
        self.outputs = list(outputs)
        self.intermediates: Sequence[Tensor] = tuple(intermediates)
        self.temporaries: list[Tensor] = []
        self.in_place: Sequence[Tensor] = ()
        self.custom_options = custom_options
        self.registration = registration
        self.delegate: Any = None
        self.user_data: Any = None
        self.prepared: Any = None
        self.providers: ProviderChain | None = None
        self._options = options
        self._cache: dict[Hashable, tuple[list[Array | None], Any]] | None = None
        self._persistent: dict[int, Tensor] | None = None
        self.charged: set[Hashable] | None = None  # what was cached and charged since the node was prepared; the runtime's

    def options(self, cls: type[Options]) -> Options:
        """The node's options, which must be of the table `cls`; its defaults when the model has none."""
        if isinstance(self._options, cls):
            return self._options
        if self._options is not None:
            raise EnsureError(f"the options are {type(self._options).__name__} where {self.op_name} takes {cls.__name__}.")
        return cls()

    @property
    def raw_options(self) -> Table | None:
        """The options table as the model has it, of whatever class; None if it has none."""
        return self._options

    def custom_map(self) -> dict[str, Any]:
        """The custom options read as a FlexBuffers map, the form that TensorFlow's converter writes; {} when empty.

        Raises:
            CustomOptionsError: the bytes are not a FlexBuffers map.
        """
        return _flexbuffer_map(bytes(self.custom_options), "custom options", "hold")

    @property
    def composite_name(self) -> str:
        """The name of the composite that it is, such as "odml.rms_norm"; "" if it is none, or has no name."""
        return self._composite.name or "" if self.op is BuiltinOperator.STABLEHLO_COMPOSITE else ""

    @property
    def composite_version(self) -> int:
        """The version of the composite that it is; converters write 0."""
        return self._composite.version

    def composite_map(self) -> dict[str, Any]:
        """The attributes of the composite that it is, a FlexBuffers map; {} when it has none.

        Raises:
            CustomOptionsError: the bytes are not a FlexBuffers map.
        """
        attributes = self._composite.composite_attributes
        return _flexbuffer_map(b"" if attributes is None else attributes.tobytes(), "composite attributes", "are")

    @property
    def _composite(self) -> StableHLOCompositeOptions:
        options = self._options
        return options if isinstance(options, StableHLOCompositeOptions) else _NO_COMPOSITE

    def cached(self, key: Hashable, sources: Sequence[Tensor | None], make: Callable[[], Value]) -> Value:
        """Make a value and keep it as long as what it is made from: constants in the layout that `invoke` wants survive a resize so.

        A constant that follows from shapes is another one after a resize, and so is what is made from it. Nothing is kept of a
        source that is no constant: the value is then made at each call.

        Args:
            key: which of the node's values it is, and whatever it depends on besides the sources' values: types, shapes, what
                `prepare` decided. The options of the node and the quantization of its tensors never change.
            sources: the tensors whose values it is made from; None for one that is left out.
            make: makes it. Arrays in it that are no views of the sources are charged (`oplet.charge`).

        Raises:
            LimitError: the model may not take so much.
        """
        arrays: list[Array | None] = []
        for tensor in sources:
            if tensor is not None and not tensor.is_constant:
                if self._cache is not None:
                    self._cache.pop(key, None)
                return make()
            arrays.append(None if tensor is None else tensor.data)
        if self._cache is None:
            self._cache = {}
        kept = self._cache.get(key)
        # The arrays themselves and not their ids, which others may have once these are gone.
        if kept is None or len(kept[0]) != len(arrays) or not all(map(operator.is_, kept[0], arrays)):
            kept = self._cache[key] = arrays, make()
        if self.charged is None:
            self.charged = set()
        if key not in self.charged:
            self.charged.add(key)
            if nbytes := _nbytes_of(kept[1], arrays):
                charge(nbytes)
        return cast(Value, kept[1])

    def persistent(self, tensor: Tensor) -> Tensor:
        """The PERSISTENT temporary that the next place had in the prepare before, if it is of this one's shape and type; else this one.

        The runtime's, for `Context.add_temporary`.
        """
        if self._persistent is None:
            self._persistent = {}
        place = len(self.temporaries)
        kept = self._persistent.get(place)
        if kept is None or (kept.shape, kept.type) != (tensor.shape, tensor.type):
            kept = self._persistent[place] = tensor
        return kept

    @property
    def kernel_cache(self) -> KernelCache:
        """What `cached` and `persistent` hold, for whoever gives the node to another kernel and back."""
        return self._cache, self._persistent

    @kernel_cache.setter
    def kernel_cache(self, values: KernelCache) -> None:
        self._cache, self._persistent = values

    #: The former name of `kernel_cache`.
    kept = kernel_cache

    def release(self) -> None:
        """Drop everything made for running the node; it is called when the interpreter closes."""
        self.prepared = None
        self.providers = None
        self.temporaries = []
        self.in_place = ()
        self._cache = None
        self._persistent = None

    def profiling_string(self, context: object) -> str:
        """What reports call a run of it: what its registration says of it, else the op's name."""
        registration = self.registration
        if registration is None or registration.profiling_string is None:
            return self.op_name
        return registration.profiling_string(context, self)

    def has_input(self, position: int) -> bool:
        """Whether the input at `position` is given (optional inputs may be left out)."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def optional_input(self, position: int) -> Tensor | None:
        """The input at `position`, or None when it is left out."""
        return self.inputs[position] if self.has_input(position) else None

    def writes_over(self, tensor: Tensor) -> bool:
        """Whether its first output lies in the memory of this input, whose value is gone once it has run."""
        if tensor not in self.in_place or not self.outputs:
            return False
        output = self.outputs[0]
        return tensor.has_data and output.has_data and np.may_share_memory(tensor.data, output.data)

    def __repr__(self) -> str:
        return f"node {self.index} ({shown(self.op_name)})"


#: What a node that is no composite has to say of it.
_NO_COMPOSITE = StableHLOCompositeOptions()


def _flexbuffer_map(data: bytes, what: str, verb: str) -> dict[str, Any]:
    if not data:
        return {}
    try:
        value = read_flexbuffer(data)
    except ValueError as error:
        raise CustomOptionsError(f"the {len(data)} bytes of {what} are not a FlexBuffer ({error}).") from error
    if not isinstance(value, dict):
        raise CustomOptionsError(f"the {what} {verb} a {type(value).__name__}, not a map.")
    return value


def _nbytes_of(value: object, sources: Sequence[Array | None]) -> int:
    """The memory of the larger arrays in a value, less those that are views of what it is made from."""
    if type(value) is np.ndarray:
        if value.nbytes < _SMALL or any(source is not None and np.may_share_memory(value, source) for source in sources):
            return 0
        return value.nbytes
    if isinstance(value, (tuple, list)) and len(value) <= _FEW:
        return sum(_nbytes_of(part, sources) for part in value)
    return 0
