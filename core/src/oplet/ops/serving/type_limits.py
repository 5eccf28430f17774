"""Limits on the tensor types that a registration serves, for builds that contain only some types."""

from __future__ import annotations

from oplet.ops.context import Context, Node, decline
from oplet.ops.serving.registration import Registration
from oplet.records import Record
from oplet.schema.enums import TensorType

__all__ = ["REBUILD", "TypeLimit"]

#: The advice for a type that a build does not contain.
REBUILD = "rebuild with `oplet build` including a model of that type, or install oplet-builtin-ops"


class TypeLimit(Record):
    """The tensor types that a build, a package with a part of the kernels, serves.

    Attributes:
        types: the types that nodes may read and write.
        build: the build's name in messages, "my_app_ops 1.0".
        remedy: the advice in messages; "" for the default, to build again.
    """

    types: tuple[TensorType, ...]
    build: str = ""
    remedy: str = ""

    def check(self, node: Node) -> None:
        """Decline a node that reads or writes a tensor of another type.

        Raises:
            Declined: it does; the message names the tensor, the build and the remedy.
        """
        for tensor in (*node.inputs, *node.outputs):
            if tensor is not None and tensor.type not in self.types:
                name = node.composite_name or node.op_name
                build = f"{name} of {self.build}" if self.build else name
                names = ", ".join(type.name for type in sorted({*self.types}))
                decline(f"{build} was built for {names} only, and {tensor} is {tensor.type.name}; {self.remedy or REBUILD}.")

    def applied_to(self, registration: Registration) -> Registration:
        """Return a copy of the registration that declines nodes which read or write tensors of other types; itself if there are no types.

        Examples:
            >>> from oplet import Registration, TensorType
            >>> TypeLimit((TensorType.INT8,), "my_app_ops 1.0").applied_to(Registration(invoke=lambda context, node: None)).types
            (<TensorType.INT8: 9>,)
        """
        if not self.types:
            return registration
        inner = registration.prepare

        def prepare(context: Context, node: Node) -> None:
            self.check(node)
            if inner is not None:
                inner(context, node)

        kept = tuple(type for type in registration.types if type in self.types)
        return registration.__replace__(prepare=prepare, types=kept or self.types)
