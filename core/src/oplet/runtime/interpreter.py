"""The interpreter: LiteRT's Python API, with additions of oplet's own.

Source of names, dictionaries and messages: tflite/python/interpreter.py and interpreter_wrapper.cc of google-ai-edge/LiteRT.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.collector import collecting_rarely
from oplet.errors import StateError, TensorError, text_of
from oplet.ops.ensure import index_of
from oplet.plugins.selection import Preference
from oplet.runtime.descriptions import Descriptions, only_signature
from oplet.runtime.execution.loaded_model import LoadedModel, verify_once
from oplet.runtime.execution.model_runtime import ModelRuntime
from oplet.runtime.execution.session import Session, resolver_of
from oplet.runtime.loading import OpResolverType, check_types, manager_of, open_model
from oplet.runtime.memory.accounting import USUAL, Limits
from oplet.runtime.memory.remembered import settings_of, stores_plans
from oplet.runtime.memory.values import Variables, check_strict, set_buffer_handle

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.delegates.delegate import Delegate
    from oplet.model.model import Model
    from oplet.ops.serving.resolver import OpResolver
    from oplet.plugins.engine_choice import Choice
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.delegation.applied import AppliedDelegates
    from oplet.runtime.describe.profiler import Profiler
    from oplet.runtime.signature_runner import SignatureRunner

__all__ = ["Interpreter", "OpResolverType"]


class Interpreter(Variables, Descriptions):
    """Runs a .tflite model; a drop-in for `ai_edge_litert.interpreter.Interpreter` and `tf.lite.Interpreter`.

    Args:
        model_path: the model's file, which is memory-mapped.
        model_content: the model's bytes, in place of a file; or an open `Model`, for this interpreter alone.
        experimental_delegates: delegates to apply, in order; `load_delegate` makes them from names. "auto" for the fastest of the
            installed kernels and delegates: measured once for this model on this machine, then read from a cache; see `choice`.
        num_threads: the number of threads that kernels may use, at least 1; 1 if None.
        experimental_op_resolver_type: which results to reproduce where LiteRT's default delegate and its own kernels differ; see
            `OpResolverType`.
        experimental_preserve_all_tensors: keep every intermediate tensor's value readable after `invoke`.
        experimental_disable_delegate_clustering: keep the original order of nodes when partitions are cut.
        experimental_default_delegate_latest_features: accepted for compatibility; there is no default delegate.
        experimental_compress_quantization_zero_points: accepted for compatibility.
        experimental_disable_delegate_node_fusion: one partition per claimed node.
        experimental_force_delegate_node_profiling: profile delegates' kernels as a whole, also where they report their
            operators one by one.
        op_resolver: the application's own registrations; they go before those of plugins.
        plugins: the plugins to use: a PluginManager, or names of distributions or plugins, or such names after "no:" for
            all but these; all installed ones by default.
        prefer: the package to take where several serve one op: names, the most preferred first, or a mapping from op to name.
        profiler: records an event for each run of a node; an `oplet.Profiler`.
        release_dynamic_tensors: release, at the end of each `invoke`, the memory of intermediate tensors of dynamic shape
            (LiteRT's SetEnsureDynamicTensorsAreReleased).
        limits: limits of memory, nodes, call depth, loop iterations and time; `Limits()` unless given.
        checks: check after each node whether its kernel changed what it may only read, and raise a PluginError that names
            the package; slow, for finding the package that gives wrong numbers.
        checkpoint_folder: the only folder in which the model may save and restore trained variables; None for nowhere.
        use_mmap: False to read the model's file into memory in place of mapping it: this takes as much memory as the file has
            bytes, but truncating the file afterwards cannot crash the process (see docs/reliability.md).

    Raises:
        ModelError: the file cannot be read or is not a valid model (a ValueError).
        OpNotFoundError: a built-in operator has no kernel; OpVersionError: not in the model's version (ValueErrors).
        PluginError: `plugins` names one that is not installed.

    Examples:
        >>> from oplet import Interpreter
        >>> interpreter = Interpreter(model_path="model.tflite")  # doctest: +SKIP
        >>> interpreter.allocate_tensors()  # doctest: +SKIP
        >>> interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)  # doctest: +SKIP
        >>> interpreter.invoke()  # doctest: +SKIP
        >>> interpreter.get_tensor(interpreter.get_output_details()[0]["index"])  # doctest: +SKIP
    """

    @collecting_rarely
    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | memoryview | Model | None = None,
        experimental_delegates: Sequence[Delegate] | str | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: OpResolverType = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        op_resolver: OpResolver | None = None,
        plugins: PluginManager | Sequence[str] | None = None,
        prefer: Sequence[str] | Mapping[str, str] | Preference | None = None,
        profiler: Profiler | None = None,
        release_dynamic_tensors: bool = False,
        limits: Limits | None = None,
        checks: bool = False,
        checkpoint_folder: str | os.PathLike[str] | None = None,
        use_mmap: bool = True,
    ) -> None:
        check_types(experimental_op_resolver_type, num_threads)
        model = open_model(model_path, model_content, use_mmap)
        default_delegates = experimental_op_resolver_type.name in ("AUTO", "BUILTIN")
        manager = manager_of(plugins)
        settings = None
        if op_resolver is None and not checks and not experimental_delegates:
            settings = settings_of(manager, Preference.read(prefer))
        changes = (
            profiler
            or limits
            or checkpoint_folder is not None
            or experimental_preserve_all_tensors
            or not default_delegates
            or release_dynamic_tensors
        )
        stores = not changes and num_threads in (None, 1) and not isinstance(plugins, Sequence) and stores_plans()
        bounds = limits or USUAL
        bounds.check_nodes(model)
        choice: Choice | None = None
        delegates = experimental_delegates or ()
        is_new = isinstance(delegates, str) and verify_once(model, is_known=False)
        if isinstance(delegates, str):
            from oplet.plugins.engine_choice import installed_chooser

            again = partial(
                Interpreter,
                model_path,
                model_content,
                num_threads=num_threads,
                experimental_op_resolver_type=OpResolverType.AUTO if default_delegates else experimental_op_resolver_type,
                experimental_preserve_all_tensors=experimental_preserve_all_tensors,
                experimental_disable_delegate_clustering=experimental_disable_delegate_clustering,
                experimental_disable_delegate_node_fusion=experimental_disable_delegate_node_fusion,
                op_resolver=op_resolver,
                plugins=manager,
                limits=bounds,
                use_mmap=use_mmap,
            )
            choose = installed_chooser(delegates)
            choice, delegates, prefer = choose(delegates, model, manager, again, prefer)
        session = Session(
            model,
            partial(resolver_of, manager, prefer, op_resolver),
            num_threads=1 if num_threads is None else num_threads,
            preserve_all_tensors=experimental_preserve_all_tensors,
            profiler=profiler,
            limits=bounds,
        )
        session.default_delegates = default_delegates
        session.release_dynamic_tensors = release_dynamic_tensors
        session.checks = checks
        session.checkpoint_folder = None if checkpoint_folder is None else os.fsdecode(checkpoint_folder)
        session.force_delegate_profiling = experimental_force_delegate_node_profiling
        loaded = LoadedModel(session, manager, settings=settings, stores=stores)
        if not isinstance(experimental_delegates, str):
            is_new = verify_once(model, is_known=loaded.has_plan)
        if not loaded.has_plan:
            session.resolver  # noqa: B018  # plugins that fail say so when an interpreter is made

        def applied() -> AppliedDelegates:
            from oplet.runtime.delegation.applied import AppliedDelegates  # imported late: most models have no delegates

            fuse = not (experimental_disable_delegate_node_fusion or experimental_preserve_all_tensors)
            return AppliedDelegates(manager, prefer, cluster=not experimental_disable_delegate_clustering, fuse=fuse)

        runtime = ModelRuntime(loaded, applied)
        self._runtime: ModelRuntime = runtime
        super().__init__(
            model,
            runtime.subgraphs,
            lambda: session.resolver,
            choice=choice,
            default_delegates=default_delegates,
            compress_zero_points=experimental_compress_quantization_zero_points,
        )
        if is_new:
            model.release_pages()
        for delegate in delegates:
            self.modify_graph_with_delegate(delegate)

    # Running -------------------------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Prepare the graph for the inputs' shapes and give every tensor its memory. Call it before `invoke`.

        Raises:
            UnresolvedOpError: the model has custom ops that no package serves (a RuntimeError).
            PrepareError: a kernel refuses its node (a RuntimeError).
            ViewError: a numpy view of a tensor is still alive (a RuntimeError).
        """
        self._runtime.views.ensure_none()
        self._runtime.allocate(0)

    def invoke(self) -> None:
        """Run the model on the inputs that were set.

        Raises:
            StateError: `allocate_tensors` was not called (a RuntimeError).
            InvokeError: a kernel failed (a RuntimeError).
            ViewError: a numpy view of a tensor is still alive (a RuntimeError).
        """
        runtime = self._runtime
        if runtime.views.handed_out:
            runtime.views.ensure_none()
        runtime.invoke(0)

    def cancel(self) -> None:
        """Stop the `invoke` or `allocate_tensors` that another thread is in, before its next node; it raises CancelledError.

        Without a running one it has no effect; later calls are not affected.
        """
        self._runtime.session.meter.stop()

    def close(self) -> None:
        """Free the kernels' state and the tensors' memory, and end the threads; the interpreter cannot run afterwards.

        One that is dropped without is freed too, or leaves what it has prepared to the next interpreter of the same model, for a minute.

        Raises:
            StateError: another thread is using the interpreter (a RuntimeError).
        """
        self._runtime.close()

    # Tensors -------------------------------------------------------------------------------------------------

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy `value` into a tensor.

        Args:
            tensor_index: the 'index' of its details.
            value: an array of exactly the tensor's dtype and shape; for string tensors an array of bytes or str.

        Raises:
            TensorError: the index, dtype or shape is wrong, or the tensor has no memory yet (a ValueError).
        """
        self._runtime.set_value(tensor_index, value, 0)

    def tensor(self, tensor_index: int) -> Callable[[], NDArray[Any]]:
        """Return a function that returns a numpy view of a tensor's memory. Keep the function, not the views.

        While a view is alive, `allocate_tensors`, `invoke` and `resize_tensor_input` raise a ViewError.
        """
        runtime = self._runtime
        return lambda: runtime.views.make(runtime.readable(tensor_index, 0).data)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> NDArray[Any]:
        """Return a copy of a tensor's value; a numpy scalar for a number without dimensions, as in LiteRT.

        Args:
            tensor_index: the 'index' of its details.
            subgraph_index: the subgraph that the tensor is in.

        Raises:
            TensorError: there is no such tensor, it has no memory yet, or it is an intermediate one whose memory
                another tensor uses since (LiteRT returns that tensor's bytes); a ValueError.
            LimitError: there is no memory for the copy.
            ModelError: the model's file was cut short.
        """
        return self._runtime.value(tensor_index, subgraph_index)

    def _safe_to_run(self) -> bool:
        """Tell whether no numpy view of a tensor is alive."""
        return not self._runtime.views.any_alive()

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int] | NDArray[Any], strict: bool = False) -> None:
        """Give an input another shape; call `allocate_tensors` afterwards.

        Args:
            input_index: the 'index' of its details.
            tensor_size: the new shape.
            strict: refuse to change dimensions other than those that are -1 in the `shape_signature`.

        Raises:
            StateError: the index is wrong or strictness forbids it (a RuntimeError).
        """
        runtime = self._runtime
        runtime.views.ensure_none()
        try:
            dims = np.asarray(tensor_size)
            if dims.ndim != 1:
                raise ValueError(f"Shape should be 1D instead of {dims.ndim}")
            shape = tuple(int(dim) for dim in dims)
        except (TypeError, ValueError, OverflowError) as error:
            raise TensorError(
                f"Cannot resize tensor {input_index} to {tensor_size!r}, which is no shape: {text_of(error)}."
            ) from error
        tensors, input_index = runtime.subgraphs[0].tensors, index_of(input_index)
        if not 0 <= input_index < len(tensors):
            raise StateError(f"There is no tensor {input_index} to resize; the model has {len(tensors)} tensors.")
        if strict:
            check_strict(tensors[input_index], shape)
        runtime.resize(input_index, shape, 0)

    def release_non_persistent_memory(self) -> None:
        """Release the memory of all tensors but constants and variables; `allocate_tensors` allocates it again.

        Raises:
            ViewError: a numpy view of a tensor is still alive (a RuntimeError).
        """
        self._runtime.release_memory()

    # Signatures ----------------------------------------------------------------------------------------------

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """Return a callable that runs one signature.

        Args:
            signature_key: the signature's key; None is allowed when the model has exactly one signature.

        Raises:
            SignatureError: there is no such signature (a ValueError).
        """
        from oplet.runtime.signature_runner import SignatureRunner

        return SignatureRunner(self, only_signature(self._model) if signature_key is None else signature_key)

    def get_async_signature_runner(self, signature_key: str | None = None) -> Any:
        """Return an `AsyncSignatureRunner` of a signature, on the application's buffers, for a model that one delegate runs whole.

        Args:
            signature_key: the signature's key; None for the first one of the primary subgraph, or for a model without signatures.

        Raises:
            SignatureError: there is no such signature (a ValueError).
            DelegateError: the model is not fully delegated by one backend, or that one cannot run asynchronously (a
                RuntimeError).
            ImportError: the package that brings it is not installed.
        """
        from oplet.companions import companion

        return companion("AsyncSignatureRunner")(self, signature_key)

    # Delegates -----------------------------------------------------------------------------------------------

    def modify_graph_with_delegate(self, delegate: Delegate, subgraphs: Collection[int] | None = None) -> None:
        """Apply a delegate: it claims nodes of every subgraph, but for subgraphs that a delegate has marked as skippable.

        With a delegate of static shapes the tensors are allocated and the graph is immutable afterwards: a resize restores the
        original nodes, and the next `allocate_tensors` applies the delegates again.

        Args:
            delegate: the delegate.
            subgraphs: indices of the subgraphs to apply it to; all of them unless given.

        Raises:
            DelegateApplicationError: the delegate is incompatible with the graph or with delegates applied before; the graph is usable.
            DelegateError: the delegate failed; the graph is the model's, without any delegate (a RuntimeError).
        """
        self._runtime.apply_delegate(delegate, subgraphs)

    def remove_all_delegates(self) -> None:
        """Remove all delegates: the model's own nodes run again, on the inputs that were set."""
        self._runtime.remove_delegates()

    def set_buffer_handle(self, tensor_index: int, handle: Any, delegate: Delegate, subgraph_index: int = 0) -> None:
        """Bind a delegate's buffer to a tensor, typically an input; the buffer that was bound before is freed.

        Args:
            tensor_index: the 'index' of its details.
            handle: the delegate's handle of the buffer; None to bind no buffer.
            delegate: the delegate.
            subgraph_index: the subgraph that the tensor is in.

        Raises:
            DelegateError: the tensor belongs to another delegate.
        """
        tensor = self._runtime.tensor(tensor_index, subgraph_index)
        executor = self._runtime.executors[subgraph_index]
        is_first = tensor.delegate is None
        self._runtime.loaded.part()
        set_buffer_handle(executor.context, tensor, handle, delegate)
        if is_first:
            executor.guard_readers(tensor)

    def get_buffer_handle(self, tensor_index: int, subgraph_index: int = 0) -> tuple[Any, Delegate | None]:
        """Return the handle of the buffer that is bound to a tensor, and its delegate; (None, None) if there is none."""
        tensor = self._runtime.tensor(tensor_index, subgraph_index)
        return tensor.buffer_handle, tensor.delegate

    @property
    def allow_buffer_handle_output(self) -> bool:
        """Whether a delegate's outputs stay in its buffers after `invoke`, and are copied when they are read."""
        return not self._runtime.copies_outputs

    @allow_buffer_handle_output.setter
    def allow_buffer_handle_output(self, allowed: bool) -> None:
        self._runtime.copies_outputs = not allowed
