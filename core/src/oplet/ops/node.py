"""Nodes: the operators of a graph, with the state that their kernels keep."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from oplet.ops.ensure import EnsureError, charge
from oplet.ops.shared_values import Derived, NodeValues, Source, nbytes_of
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator
from oplet.schema.table import Table
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.ops.serving.kernel import Kernel, ProviderChain
    from oplet.schema.stablehlo_options import StableHLOCompositeOptions

__all__ = ["KernelCache", "Node", "Thunk"]

#: A function without arguments or result that runs a node, bound to the node's arrays.
Thunk = Callable[[], None]
Options = TypeVar("Options", bound=Table)
Value = TypeVar("Value")
#: Values that a kernel keeps for a node between prepares: those of `Node.cached`, and persistent temporaries by their position.
KernelCache = tuple["dict[Hashable, Derived] | None", "dict[int, Tensor] | None"]


class Node:
    """One operator of the graph.

    Attributes:
        index: its number in the subgraph.
        op: the built-in operator; CUSTOM for custom ops, DELEGATE for a delegate's kernel.
        op_name: the op's name, "CONV_2D" or "Atan".
        version: the version that the model requires.
        inputs: its input tensors; None where an optional one is omitted.
        outputs: its output tensors.
        intermediates: tensors of which only the quantization matters (LSTM, SVDF).
        temporaries: scratch tensors, added with `Context.add_temporary`; emptied before each prepare.
        in_place: the inputs whose memory the first output may share; set by `prepare`, emptied before each prepare. The kernel must
            compute the same result there: it never overwrites a value of such an input before it has read it. The runtime uses
            at most one of them, of the output's size and without later readers.
        absorbed: the nodes that were fused into it and do not run themselves (`Registration.fuses`).
        main: the one of `absorbed` under whose op profiles show the time of the fused node; None for the node itself. Set by `prepare`,
            which finds None there.
        custom_options: the custom options, as bytes; of a custom op.
        registration: the registration (kernel) that serves it; None for a custom op that nothing serves.
        origin: the composite from whose decomposition the node was inlined, "odml.rms_norm"; of composites in composites all of
            them, the outer first: "my.block > odml.rms_norm". "" for a node that the subgraph itself has in the model.
        delegate: the delegate whose kernel it is; None for a node of the model.
        user_data: the result of the registration's `init`.
        prepared: the kernel's own: what `prepare` passes to `bind`.
        providers: the kernels that declined it in the last prepare, and the one that serves it; None until one declines.
        shared: where values made of constants (`cached`) are kept for all interpreters of the model; None where it shares none.
    """

    __slots__ = (
        "_cache",
        "_left",
        "_options",
        "_persistent",
        "_resolve",
        "absorbed",
        "charged",
        "custom_options",
        "delegate",
        "in_place",
        "index",
        "inputs",
        "intermediates",
        "main",
        "op",
        "op_name",
        "origin",
        "outputs",
        "prepared",
        "providers",
        "registration",
        "shared",
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
        self.index, self.op, self.op_name, self.version = index, op, op_name, version
        # The type has no None, so that kernels can index without a check for each input; `ensure_operands` refuses omitted ones.
        self.inputs: list[Tensor] = list(inputs)  # type: ignore[arg-type]
        self.outputs = list(outputs)
        self.intermediates: Sequence[Tensor] = tuple(intermediates)
        self.temporaries: list[Tensor] = []
        self.in_place: Sequence[Tensor] = ()
        self.absorbed: Sequence[Node] = ()
        self.main: Node | None = None
        self.custom_options = custom_options
        self.origin = ""
        self.registration = registration
        self.delegate: Any = None
        self.user_data: Any = None
        self.prepared: Any = None
        self.providers: ProviderChain | None = None
        self._options = options
        self.shared: NodeValues | None = None
        self._left: dict[int, tuple[Any, KernelCache]] | None = None  # by number: what kernels keep of it while another serves it
        self._cache: dict[Hashable, Derived] | None = None
        self._persistent: dict[int, Tensor] | None = None
        self.charged: set[Hashable] | None = None  # keys of cached values, since the last prepare; set by the runtime

    def resolve_late(self, resolve: Callable[[], None]) -> None:
        """Defer the look-up of the registration to its first use: `resolve` then sets those of all nodes. For the runtime."""
        self._resolve, self.registration = resolve, None
        del self.registration

    if not TYPE_CHECKING:  # for type checkers every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            if name != "registration":
                raise AttributeError(f"'Node' object has no attribute {name!r}")
            self.registration = None  # which it stays where the interpreter is gone
            try:
                self._resolve()
            except BaseException:
                del self.registration
                raise
            return self.registration

    def options(self, cls: type[Options]) -> Options:
        """Return the options of a built-in operator, of the table `cls`; its defaults if the model has none.

        Raises:
            PrepareError: the model has options of another table.
        """
        if isinstance(self._options, cls):
            return self._options
        if self._options is not None:
            raise EnsureError(f"the options are {type(self._options).__name__} where {self.op_name} takes {cls.__name__}.")
        return cls()

    @property
    def raw_options(self) -> Table | None:
        """The options of a built-in operator, of any table; None if the model has none."""
        return self._options

    def custom_map(self) -> dict[str, Any]:
        """Return the custom options as a FlexBuffers map, the form that TensorFlow's converter writes; {} if they are empty.

        Raises:
            CustomOptionsError: the bytes are not a FlexBuffers map.
        """
        from oplet.schema.flexbuffers import flexbuffer_map  # imported late, as below: few nodes have them

        return flexbuffer_map(bytes(self.custom_options), "custom options", "hold")

    @property
    def composite_name(self) -> str:
        """The name of the composite, such as "odml.rms_norm"; "" if the node is not a composite or has no name."""
        return self._composite.name or "" if self.op is BuiltinOperator.STABLEHLO_COMPOSITE else ""

    @property
    def composite_version(self) -> int:
        """The version of the composite; converters write 0."""
        return self._composite.version

    def composite_map(self) -> dict[str, Any]:
        """Return the attributes of the composite, a FlexBuffers map; {} if it has none.

        Raises:
            CustomOptionsError: the bytes are not a FlexBuffers map.
        """
        from oplet.schema.flexbuffers import flexbuffer_map

        attributes = self._composite.composite_attributes
        return flexbuffer_map(b"" if attributes is None else attributes.tobytes(), "composite attributes", "are")

    @property
    def _composite(self) -> StableHLOCompositeOptions:
        from oplet.schema.stablehlo_options import StableHLOCompositeOptions  # here, as few nodes are asked

        options = self._options
        return options if isinstance(options, StableHLOCompositeOptions) else StableHLOCompositeOptions()

    def cached(
        self, key: Hashable, sources: Sequence[Tensor | None], make: Callable[[], Value], *, shared: bool | str = False
    ) -> Value:
        """Compute a value from constants, and cache it while they stay the same: packed weights, for instance, survive a resize.

        Constants that are computed from shapes change with a resize, and so do values made from them. If a source is not constant,
        the value is computed at each call.

        Args:
            key: identifies the value within the node. It includes everything that the value depends on besides the sources' values:
                types, shapes, decisions of `prepare`; not the node's options and quantization, which never change.
            sources: the tensors whose values `make` reads; None for an omitted one.
            make: computes the value. Its arrays, except views of the sources, count against the memory limit (`oplet.charge`).
            shared: whether all interpreters that were opened from the same file or `bytes` object have one value, as they should where
                it is large. It is then made once, freed with the last of them, and read by several threads, so that nothing may write
                into it: arrays in it, also in tuples, lists and dictionaries, become read-only. `key` then includes whatever differs
                from one interpreter to another, such as `context.num_threads`. "everywhere" shares it with all nodes of the kernel in
                all signatures; `key` then includes their options and quantization, as far as the value depends on them.

        Raises:
            LimitError: the memory exceeds the limit.
        """
        constants: list[Source] = []
        for tensor in sources:
            if tensor is not None and not tensor.is_constant:
                if self._cache is not None:
                    self._cache.pop(key, None)
                return make()
            constants.append(None if tensor is None else tensor.source)
        if self._cache is None:
            self._cache = {}
        kept = self._cache.get(key)
        if kept is None or not kept.is_of(constants):
            everywhere = shared == "everywhere"
            kept = self.derive(key, constants, make, everywhere=everywhere) if shared else Derived(constants, make())
            self._cache[key] = kept
        if self.charged is None:
            self.charged = set()
        if key not in self.charged:
            self.charged.add(key)
            if nbytes := nbytes_of(kept.value, constants):
                charge(nbytes)
        value: Value = kept.value
        return value

    def has_made_of(self, tensor: Tensor) -> bool:
        """Return whether a value that `cached` keeps was computed from this constant. For the runtime."""
        wanted = tensor.source
        return any(source is wanted for made in (self._cache or {}).values() for source in made.sources)

    def derive(self, key: Hashable, sources: Sequence[Source], make: Callable[[], Any], *, everywhere: bool = False) -> Derived:
        """Return the value that the same kernel has made from the same constants for this node in another interpreter, or for any
        node, if it is shared `everywhere`; else make it. For `cached` and the runtime.
        """
        kernel = self.registration
        if self.shared is None or kernel is None or kernel.user_data is not None:
            return Derived(sources, make())
        functions = kernel.init, kernel.prepare, kernel.bind, kernel.invoke
        return self.shared.derive(None if everywhere else self.index, functions, key, sources, make)

    def persistent(self, tensor: Tensor) -> Tensor:
        """Return the PERSISTENT temporary that the last prepare requested at this position, if shape and type are equal, else
        `tensor`.

        For the runtime's `Context.add_temporary`.
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
        """What the kernel keeps in `cached` and as persistent temporaries, to be saved while another kernel serves the node."""
        return self._cache, self._persistent

    @kernel_cache.setter
    def kernel_cache(self, values: KernelCache) -> None:
        self._cache, self._persistent = values

    def hand_to(self, providers: ProviderChain) -> None:
        """Let another kernel serve the node. What the present one keeps of it stays, as a node may go back and forth between kernels when
        its shapes change. For the runtime.
        """
        if self.user_data is not None or self._cache is not None or self._persistent is not None or self._left is not None:
            left = self._left = self._left or {}
            left[len(self.declined)] = self.user_data, self.kernel_cache
            self.user_data, self.kernel_cache = left.pop(len(providers.declined), (None, (None, None)))
        self.providers, self.registration, self.prepared = providers, providers.kernel, None

    @property
    def declined(self) -> Sequence[tuple[Kernel, str]]:
        """The kernels that declined it in the last prepare, with their reasons, in the order of precedence."""
        return () if self.providers is None else self.providers.declined

    def data_of(self, number: int) -> Any:
        """Return the result of the `init` of the kernel that comes so many places after the first in the order of precedence."""
        return self.user_data if number == len(self.declined) else (self._left or {}).get(number, (None, None))[0]

    def release(self) -> None:
        """Free everything that was made to run the node, when the interpreter closes."""
        self.prepared = None
        self.providers = None
        self.temporaries = []
        self.in_place = ()
        self._left = None
        self._cache = None
        self._persistent = None

    def profiling_string(self, context: object) -> str:
        """Return the name of the node in profiles: that of its registration's `profiling_string`, else the op's name; "PAD +
        CONV_2D" if the node is fused with others.
        """
        label = None if self.registration is None else self.registration.profiling_string
        own = self.op_name if label is None else label(context, self)
        return " + ".join((*(node.op_name for node in self.absorbed), own)) if self.absorbed else own

    def has_input(self, position: int) -> bool:
        """Return whether the input at `position` is present and not omitted."""
        return position < len(self.inputs) and self.inputs[position] is not None

    def optional_input(self, position: int) -> Tensor | None:
        """Return the input at `position`; None if it is omitted."""
        return self.inputs[position] if position < len(self.inputs) else None

    def writes_over(self, tensor: Tensor) -> bool:
        """Return whether the first output shares the memory of this input, whose value is then overwritten."""
        if tensor not in self.in_place or not self.outputs:
            return False
        output = self.outputs[0]
        return tensor.has_data and output.has_data and np.may_share_memory(tensor.data, output.data)

    def __repr__(self) -> str:
        return f"node {self.index} ({shown(self.op_name)})"
