"""OpenVinoDelegate: claims nodes whose results in OpenVINO equal LiteRT's, compiling before it claims."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

try:
    import openvino  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"The delegate 'openvino' needs the package openvino, which cannot be imported ({error}): pip install openvino"
    ) from error

from oplet import (
    BuiltinOperator,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    NodeSubset,
    Tensor,
    kernel_registration,
    largest_partitions,
)
from oplet.errors import LimitError
from oplet_openvino_delegate import compiling
from oplet_openvino_delegate.graph import Untranslatable
from oplet_openvino_delegate.kernel import PartitionKernel
from oplet_openvino_delegate.partition import Engine, Partition, compile_partition, first_line
from oplet_openvino_delegate.translators import refusal

_NUMBERS = ("num_threads", "min_nodes", "max_partitions", "quantized")
_OPTIONS = ("device", "cache_dir", *_NUMBERS)
_DEVICES = ("CPU", "GPU", "NPU", "AUTO")
#: Operators that copy their input as it is.
_COPIES = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE")


class OpenVinoDelegate(Delegate):
    """The delegate that runs nodes in OpenVINO.

    Options: `device` (CPU, GPU, NPU, AUTO; also GPU.1), `num_threads` (of a CPU; default: the interpreter's), `cache_dir` (a
    folder for compiled partitions), `min_nodes` (smaller partitions are left to other kernels), `max_partitions` (the most
    partitions to run, the largest first), `quantized` (1: run quantized layers too, whose results may differ by quantization
    steps).
    """

    name = "openvino"
    #: Nodes of known shapes are claimed, also beside others; what a resize makes of them is compiled anew.
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
    constants_first = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        for key, value in self.options.items():
            if key not in _OPTIONS or (key in _NUMBERS and not value.isdecimal()):
                raise ValueError(
                    f"'{key}={value}' is none of its options: {', '.join(_OPTIONS)}; {', '.join(_NUMBERS)} are numbers."
                )
        self.device = self.options.get("device", "CPU").upper()
        kind = self.device.split(".")[0]
        if kind not in _DEVICES:
            raise ValueError(f"device={self.device} is none of {', '.join(_DEVICES)}.")
        found = compiling.devices()
        if kind != "AUTO" and kind not in found:
            raise ValueError(f"device={self.device} is not there: on this machine OpenVINO finds {', '.join(found)}.")
        self.min_nodes = int(self.options.get("min_nodes", 0))
        self.max_partitions = int(self.options.get("max_partitions", 0))
        self.num_threads = int(self.options.get("num_threads", 0))

    def wanted_composites(self, context: DelegateContext, composites: Sequence[Node]) -> Collection[Node]:
        return ()  # OpenVINO gets the nodes of their decompositions

    def prepare(self, context: DelegateContext) -> None:
        threads = self.num_threads or context.num_threads
        told = compiling.settings(self.device, threads, self.options.get("cache_dir", ""))
        engine = Engine(self.device, told, self.options.get("quantized") == "1", context.max_seconds)
        refused = _refusals(context, engine)
        partitions = self._partitions(context, refused, engine)
        for index, reason in refused.items():
            context.report_unsupported(index, reason)
        claimed = [index for nodes in partitions for index in nodes]

        def create_kernel(params: DelegateParams) -> PartitionKernel:
            return PartitionKernel(partitions.get(tuple(node.index for node in params.nodes)), engine)

        context.replace_node_subsets_with_delegate_kernels(kernel_registration(self.name, create_kernel), claimed)

    def _partitions(self, context: DelegateContext, refused: dict[int, str], engine: Engine) -> dict[tuple[int, ...], Partition]:
        """Compile the partitions to claim, by their node indices; write reasons for unclaimed nodes to `refused`."""
        made: dict[tuple[int, ...], Partition] = {}
        while True:
            claimed = [index for index in context.execution_plan if index not in refused]
            subsets = [subset for subset in context.preview_delegate_partitioning(claimed) if subset.claimed]
            useful = _more_than_copies(context, subsets, refused)
            kept = largest_partitions(useful, self.min_nodes, self.max_partitions, refused)
            if len(kept) < len(subsets):
                continue  # what is left may be cut otherwise
            wanted = {tuple(subset.nodes): subset for subset in subsets}
            for nodes, subset in wanted.items():
                if nodes not in made:
                    inputs, outputs = ([context.tensors[i] for i in indices] for indices in (subset.inputs, subset.outputs))
                    taken = sum(partition.nbytes for key, partition in made.items() if key in wanted)
                    charge = partial(_charge, context, taken)
                    trouble = _attempt(made, nodes, [context.node(i) for i in nodes], inputs, outputs, engine, charge)
                    refused.update(trouble)
            if not any(nodes not in made for nodes in wanted):
                return {nodes: made[nodes] for nodes in wanted}


def _more_than_copies(
    context: DelegateContext, partitions: Sequence[NodeSubset], refused: dict[int, str]
) -> Sequence[NodeSubset]:
    """Drop partitions that only copy, if there are others: starting a request costs more than the runtime's copy."""
    copies = [subset for subset in partitions if all(context.node(index).op_name in _COPIES for index in subset.nodes)]
    if len(partitions) == 1 or not copies:
        return partitions
    for subset in copies:
        refused.update(dict.fromkeys(subset.nodes, "its partition would only copy, which the runtime does faster"))
    return [subset for subset in partitions if subset not in copies]


def _charge(context: DelegateContext, taken: int, nbytes: int) -> None:
    """Raise an error if a partition's memory, added to the `taken` bytes, exceeds the limit."""
    context.charge(taken + nbytes)


def _refusals(context: DelegateContext, engine: Engine) -> dict[int, str]:
    """Return why nodes cannot be claimed, as far as is known without compiling."""
    refused: dict[int, str] = {}
    for index in context.execution_plan:
        node = context.node(index)
        if node.op is BuiltinOperator.DELEGATE:
            reason = "it is another delegate's"
        elif node.outputs and all(tensor.is_constant for tensor in node.outputs):
            reason = "its result is constant, nothing needs to run"
        elif node.registration is None:
            reason = "no package serves it, so that nobody knows its shapes"
        else:
            reason = refusal(node, layers_of_8_bits=engine.layers_of_8_bits)
        if reason:
            refused[index] = reason
    return refused


def _attempt(
    made: dict[tuple[int, ...], Partition],
    indices: tuple[int, ...],
    nodes: Sequence[Node],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    engine: Engine,
    charge: Callable[[int], None],
) -> dict[int, str]:
    """Compile a partition into `made`; return, with reasons, the nodes to leave to other kernels after all."""
    try:
        made[indices] = compile_partition(nodes, inputs, outputs, engine, charge)
    except LimitError as error:
        return dict.fromkeys(indices, f"OpenVINO would take more memory than is allowed: {error}")
    except Untranslatable as error:
        return {error.node.index: error.reason}
    except RuntimeError as error:
        return dict.fromkeys(indices, f"OpenVINO does not run its partition: {first_line(error)}")
    return {}
