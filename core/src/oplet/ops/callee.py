"""How a control-flow kernel runs other subgraphs of its model."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.ops.node import Node, Thunk
from oplet.ops.tensor import Shape, Tensor
from oplet.schema.enums import TensorType
from oplet.texts import shown

__all__ = ["Callee"]


class Callee:
    """A subgraph that a node calls; what `Context.callee` returns, one object per subgraph.

    The order of things: in `prepare` the kernel hands each input its shape with `set_input` and calls `prepare`; the
    callee's outputs then have their shapes, unless `is_dynamic`. In `bind`, and again whenever `generation` has
    changed since (another node or a signature called the same subgraph in between), it does both once more, keeps
    the inputs' and outputs' arrays, and asks `bind` for what runs it. When the node runs, it calls `restart`, copies its
    inputs into `inputs[i].data`, runs the callee, and copies `outputs[i].data` out. The arrays of a dynamic callee's
    outputs may be others after each run.

    Attributes:
        index: its number in the model.
        name: its name in the model, "" if it has none.
        inputs: the tensors that the caller feeds.
        outputs: the tensors that the caller reads; an input may be an output too.
        initialized: free for CALL_ONCE: whether it ran this subgraph. False when the model is loaded.
    """

    index: int
    name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    initialized: bool = False

    @property
    def generation(self) -> int:
        """A number that changes when the callee is resized or prepared again: what was bound before is stale."""
        raise NotImplementedError

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape of some tensor is known only while running. Valid once it is prepared."""
        raise NotImplementedError

    @property
    def is_pure(self) -> bool:
        """Whether its outputs depend on nothing but its inputs."""
        raise NotImplementedError

    @property
    def nodes(self) -> Sequence[Node]:
        """Its nodes as the model has them, for an op that asks what a body does instead of running it (a reduction)."""
        raise NotImplementedError

    def reads(self, position: int) -> bool:
        """Whether anything reads the input at `position`; if not, it need not be fed. Valid once it is prepared."""
        raise NotImplementedError

    def set_input(self, position: int, shape: Shape, type: TensorType) -> None:
        """Give the input at `position` the shape and type that the caller's tensor has; call `prepare` afterwards.

        Raises:
            EnsureError: the input is a constant.
        """
        raise NotImplementedError

    def prepare(self) -> None:
        """Prepare the callee's nodes for the shapes of its inputs; nothing happens when they have not changed.

        Raises:
            PrepareError: a kernel refuses its node, or the subgraphs call each other in a circle.
        """
        raise NotImplementedError

    def bind(self) -> Thunk:
        """What runs the callee, looked up once: valid while `generation` stays the same."""
        raise NotImplementedError

    def restart(self) -> None:
        """Put the callee's state back to what it is after `prepare`: no variable tensor outlives a run of the caller.

        Kernels learn of it from `Context.restarts`. Resources are not touched.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Give back the memory of its tensors; `prepare` is needed before it can run again."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"subgraph {self.index}" + (f" '{shown(self.name)}'" if self.name else "")
