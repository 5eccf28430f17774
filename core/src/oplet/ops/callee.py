"""Calls of other subgraphs, for kernels of control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oplet.ops.node import Node, Thunk
from oplet.ops.tensor import Shape, Tensor
from oplet.schema.enums import TensorType
from oplet.texts import shown

__all__ = ["Callee"]


class Callee:
    """A subgraph that nodes call. `Context.callee` returns it, one object per subgraph.

    A kernel uses it in this order:

    1. In `prepare`: give each input its shape with `set_input` and call `prepare`. The callee's outputs then have their shapes, unless
       `is_dynamic`.
    2. In `bind`: do both again, keep the arrays of the inputs and outputs, and get the thunk from `bind`. Repeat this at run time
       whenever `generation` has changed, as another node or a signature may have called the same subgraph in between.
    3. At run time: call `restart`, copy the inputs into `inputs[i].data`, run the thunk, and copy `outputs[i].data` out. The outputs of
       a dynamic callee may have other arrays after each run.

    Attributes:
        index: its number in the model.
        name: its name in the model, "" if it has none.
        inputs: the tensors that the caller writes.
        outputs: the tensors that the caller reads; an input may be an output, too.
        initialized: whether CALL_ONCE ran this subgraph; False when the model is loaded. For that kernel alone.
    """

    index: int
    name: str
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    initialized: bool = False

    @property
    def generation(self) -> int:
        """A number that changes when the callee is resized or prepared again, which invalidates earlier arrays and thunks (from `bind`)."""
        raise NotImplementedError

    @property
    def is_dynamic(self) -> bool:
        """Whether the subgraph has a tensor whose shape is known only at run time. Valid after `prepare`."""
        raise NotImplementedError

    @property
    def is_pure(self) -> bool:
        """Whether the subgraph's outputs depend only on its inputs, so that running it changes nothing else."""
        raise NotImplementedError

    @property
    def nodes(self) -> Sequence[Node]:
        """The subgraph's nodes as in the model, for kernels that recognize a known body (a reduction) and do not run it."""
        raise NotImplementedError

    def reads(self, position: int) -> bool:
        """Return whether the input at `position` is read or an output; if not, it need not be written. Valid after `prepare`."""
        raise NotImplementedError

    def set_input(self, position: int, shape: Shape, type: TensorType) -> None:
        """Set the shape and type of the input at `position` to those of the caller's tensor; call `prepare` afterwards.

        Raises:
            EnsureError: the input is a constant.
        """
        raise NotImplementedError

    def prepare(self) -> None:
        """Prepare the callee's nodes for the shapes of its inputs, if they have changed.

        Raises:
            PrepareError: a kernel refuses its node, or the subgraphs call each other recursively.
        """
        raise NotImplementedError

    def bind(self) -> Thunk:
        """Return the function without arguments that runs the callee; valid while `generation` stays the same."""
        raise NotImplementedError

    def rounds(self, condition: Callee, before: Thunk, step: Thunk, after: Thunk) -> Callable[[int], bool | None] | None:
        """Return a function that runs a whole loop, of which this subgraph is the body, in machine code.

        The function takes the largest number of iterations, and returns whether the condition became false before it; None, without
        having run anything, if it cannot run now or any more: the caller then runs the loop itself.

        Args:
            condition: the condition, which gives one value of BOOL.
            before: an `oplet.kernels.arrays.Copies`, as the next two are: copies the first iteration's inputs into condition and body.
            step: copies the next iteration's inputs from the body's outputs.
            after: copies the results, when the condition is false.

        Returns:
            The function, valid while both `generation` stay the same; None if there is none, or none yet: kernels are fused after their
            first run.
        """
        return None

    def restart(self) -> None:
        """Reset the callee's variable tensors to their state after `prepare`; they do not outlive a run of the caller.

        Kernels with a state of their own see it in `Context.restarts`. Resources are not reset.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Free the memory of the subgraph's tensors; it must be prepared before it can run again."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"subgraph {self.index}" + (f" '{shown(self.name)}'" if self.name else "")
