"""What a kernel is given: its node, and the context in which it prepares and runs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from oplet.errors import CustomOptionsError, PrepareError
from oplet.ops.callee import Callee
from oplet.ops.checkpoint import charge
from oplet.ops.tensor import Allocation, Array, Tensor, TensorBuilder, numpy_dtype, tensor_type
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.table import Table
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.ops.providers import Providers
    from oplet.ops.registration import Registration

__all__ = ["Context", "Declined", "EnsureError", "Node", "decline", "ensure", "ensure_eq", "ensure_type"]

Options = TypeVar("Options", bound=Table)
Value = TypeVar("Value")
#: Arrays of less bytes than these are not counted, nor the parts of values that have more.
_SMALL, _FEW = 1 << 16, 64
#: What a kernel keeps for a node from one prepare to the next.
Kept = tuple["dict[Hashable, tuple[list[Array | None], Any]] | None", "dict[int, Tensor] | None"]


class EnsureError(PrepareError):
    """A kernel's own reason, before the runtime adds which node it was."""


class Declined(EnsureError):
    """A kernel leaves the node to the next one in the order of precedence; where there is none, it is refused for this reason."""


def decline(reason: str) -> NoReturn:
    """Leave the node to the next provider, from `prepare`, before anything of the node or its tensors is changed.

    For what the kernel does not do and another may: an attribute, a type, a shape. What is wrong whoever serves the node is
    for `ensure`. The first provider is asked again in each prepare, as the reason may be gone with other shapes.

    Args:
        reason: what it does not do, and the values in question; `explain()` tells it.

    Raises:
        Declined: always.
    """
    raise Declined(reason)


def ensure(condition: object, message: str | Callable[[], str]) -> None:
    """Refuse the node unless `condition` holds.

    Args:
        condition: what must be true.
        message: the rule that was broken and the values that broke it; the runtime adds the node's number, op and
            tensors. Or a function that says so, where it would take long to write though nothing is wrong: to write of a
            tensor takes longer than most checks.

    Raises:
        EnsureError: the condition is false.
    """
    if not condition:
        raise EnsureError(message if isinstance(message, str) else message())


def ensure_eq(got: object, expected: object, what: str) -> None:
    """Refuse the node unless two values are equal.

    Args:
        what: what is compared, "the number of inputs".

    Raises:
        EnsureError: they differ; the message has both.
    """
    if got != expected:
        raise EnsureError(f"{what} is {got}, it must be {expected}.")


def ensure_type(tensor: Tensor, *types: Any) -> None:
    """Refuse the node unless the tensor's type is one of `types`, each a TensorType or a numpy dtype.

    Raises:
        EnsureError: the type is another one.
    """
    if tensor.type not in types:
        if tensor.type in (known := [tensor_type(each) for each in types]):
            return
        wanted = " or ".join(each.name for each in known)
        raise EnsureError(f"{tensor} is of type {tensor.type.name}, this op takes {wanted} here.")


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
        registration: Registration | None = None,
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
        self.providers: Providers | None = None
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
    def kept(self) -> Kept:
        """What `cached` and `persistent` hold, for whoever gives the node to another kernel and back."""
        return self._cache, self._persistent

    @kept.setter
    def kept(self, values: Kept) -> None:
        self._cache, self._persistent = values

    def forget(self) -> None:
        """Drop everything made for running the node; it is called when the interpreter closes."""
        self.prepared = None
        self.providers = None
        self.temporaries = []
        self.in_place = ()
        self._cache = None
        self._persistent = None

    def profiling_string(self, context: Context) -> str:
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


class Context:
    """What a kernel may ask of the graph that it is part of; the runtime implements it."""

    #: Threads that a kernel may use.
    num_threads: int = 1
    #: How often a loop may go round before it is taken for endless.
    max_while_iterations: int = 10_000_000
    #: How often a caller started this subgraph afresh. A kernel with a state of its own that `prepare` sets up, such as
    #: a random generator, sets it up again when this number has changed.
    restarts: int = 0

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        """Set a tensor's shape: an output or temporary in `prepare`, a dynamic output in `invoke`.

        In `invoke` the tensor's `data` is a fresh array of the new shape afterwards, or the one it has if that fits.

        Raises:
            EnsureError: a dimension is negative or the shape holds more elements than can be addressed.
        """
        raise NotImplementedError

    def set_type(self, tensor: Tensor, type: Any) -> None:
        """Correct, in `prepare`, an output's element type: some kernels derive it from their inputs, as LiteRT's do.

        Args:
            type: a TensorType or a numpy dtype.

        Raises:
            EnsureError: the tensor is a constant of another type.
        """
        if tensor.type is type:
            return
        type = tensor_type(type)
        ensure(not tensor.is_constant and not tensor.is_variable, f"{tensor} cannot become {type.name}.")
        tensor.type = type
        tensor.dtype = numpy_dtype(type)
        tensor.provide(None)

    def set_dynamic(self, tensor: Tensor) -> None:
        """Say, in `prepare`, that the output's shape depends on data; `invoke` then calls `resize_tensor`."""
        raise NotImplementedError

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        """Give, in `prepare`, the output's value, which follows from shapes alone (SHAPE, RANK); it need not run."""
        raise NotImplementedError

    def add_tensor(self, builder: TensorBuilder) -> int:
        """Add a tensor to the graph, in `init` or `prepare`, and return its index in `tensors`.

        It gets memory when it is one of `node.temporaries` after `prepare`, which forgets those of the time before:

            node.temporaries = [context.tensors[node.user_data.index]]

        `add_temporary` does both in one call. A tensor belongs to one node.

        Raises:
            EnsureError: the allocation is none that a kernel may ask for.
        """
        raise NotImplementedError

    def add_temporary(
        self,
        node: Node,
        shape: Sequence[int],
        type: Any = TensorType.FLOAT32,
        *,
        allocation: Allocation = Allocation.ARENA,
        name: str = "",
    ) -> Tensor:
        """Ask, in `prepare`, for scratch memory; it is there in `bind` and `invoke`, also in `node.temporaries`.

        Args:
            type: a TensorType or a numpy dtype.
            allocation: ARENA (valid during the node's own invoke), PERSISTENT (kept between invokes, and between
                prepares that leave its shape alone) or DYNAMIC (resized in `invoke`). A PERSISTENT one whose
                `is_variable` the kernel sets is zeroed where the model's variables are.
        """
        raise NotImplementedError

    def offer_memory(self, tensor: Tensor, array: Array) -> None:
        """Offer, in `prepare`, memory for an input or output of the node to live in, so that nothing need be copied there.

        For kernels that hand their work to an engine with memory of its own. Others write into an input's and read an
        output's, so they must find there, until the next run, what was written. The offer is good for this prepare; the
        first one for a tensor counts, and it is left if the tensor cannot move (a constant, a state, one that was
        prepared before). In `bind`, `tensor.data is array` says whether it was taken.

        Args:
            array: of the tensor's shape and dtype, writeable; it must stay good as long as somebody holds it.
        """

    def drop_computed(self, node: Node) -> None:
        """Let go, in a delegate's kernel's `bind`, of what its nodes computed for one another while shapes were worked out.

        Those are constants, unpacked weights for instance, which an engine has from the file. They are computed again when the
        graph is prepared next.

        Args:
            node: the kernel's own.
        """

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, temporaries included."""
        raise NotImplementedError

    def callee(self, index: int) -> Callee:
        """Another subgraph of the model, for a node that calls it. Each has one `Callee`, shared by all its callers.

        Raises:
            EnsureError: the model has no such subgraph, or the call would lead back to its caller.
        """
        raise NotImplementedError

    def parallel(self, parts: Sequence[Callable[[], None]]) -> Callable[[], None]:
        """Have, in `bind`, parts of a kernel's work run at once: a thunk that runs them all and returns when all are done.

        Args:
            parts: at most `num_threads`; none may change what another one reads or writes. They should be long compared
                with the 50 microseconds or so that it takes to hand them over, and let go of Python's lock, as numpy does.
        """
        steps = tuple(parts)

        def run() -> None:
            for step in steps:
                step()

        return run

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        """Tell the profiler, from a delegate's kernel, of one operator that it ran; see `DelegateFlags.PER_OPERATOR_PROFILING`.

        Args:
            node: one of the nodes that the kernel replaces.
            start: when it began, in seconds on the clock of `time.perf_counter`.
            seconds: how long it took.
        """
        raise NotImplementedError

    @property
    def resources(self) -> dict[Any, Any]:
        """State that outlives an invoke and is shared by all subgraphs of the interpreter: variables, tables.

        The built-in ops keep resource variables and hash tables here, by their number. Other packages use keys of
        their own, such as `("my_package", name)`.
        """
        raise NotImplementedError


def _nbytes_of(value: object, sources: Sequence[Array | None]) -> int:
    """The memory of the larger arrays in a value, less those that are views of what it is made from."""
    if type(value) is np.ndarray:
        if value.nbytes < _SMALL or any(source is not None and np.may_share_memory(value, source) for source in sources):
            return 0
        return value.nbytes
    if isinstance(value, (tuple, list)) and len(value) <= _FEW:
        return sum(_nbytes_of(part, sources) for part in value)
    return 0
