"""TensorLists: lists of tensors of one type, possibly of different shapes, some of them not set yet."""

from __future__ import annotations

from collections.abc import Sequence

from oplet import TensorType, charge, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import kept_copy, paced
from oplet.kernels.options import Shape
from oplet_flex_ops.lists.partial_shapes import merged
from oplet_flex_ops.lists.persistent import PersistentList

__all__ = ["Element", "TensorList", "owned", "owned_rows"]

#: An element; None for one that was not set yet.
Element = Array | None
#: Bytes of a reference, and of an array object.
_REFERENCE, _ARRAY = 8, 112


class TensorList:
    """An immutable list of tensors (TensorFlow's TensorList): methods that change it return a new list. Elements, copied by
    `owned` or `owned_rows`, count against the interpreter's memory limit as long as a list refers to them.

    Attributes:
        items: the elements; None for unset ones.
        type: the type of all elements.
        shape: the partial shape of all elements.
        most: the size at which the list is full; -1 for no limit.
    """

    __slots__ = ("items", "most", "shape", "type")

    def __init__(self, items: PersistentList, type: TensorType, shape: Shape, most: int = -1) -> None:
        self.items, self.type, self.shape, self.most = items, type, shape, most

    @classmethod
    def of(cls, elements: Sequence[Element], type: TensorType, shape: Shape, most: int = -1) -> TensorList:
        """Build a list of these elements and take ownership of them."""
        return cls(PersistentList(elements), type, shape, most)

    @classmethod
    def unset(cls, size: int, type: TensorType, shape: Shape) -> TensorList:
        """Build a list of `size` unset elements.

        Raises:
            LimitError: the memory limit does not allow so many.
        """
        charge(_REFERENCE * size)
        return cls(PersistentList([None] * size), type, shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.items.size

    def elements(self) -> list[Element]:
        """Return all elements in order; None for unset ones."""
        return self.items.items()

    def element(self, index: int) -> Element:
        """Return the element at `index`; None if it is unset.

        Raises:
            EnsureError: there is no such element.
        """
        self.ensure_index(index)
        found: Element = self.items.get(index)
        return found

    def replaced(self, index: int, element: Array) -> TensorList:
        """Return a copy with the element at `index` replaced; the copy owns the element's memory.

        Raises:
            EnsureError: there is no such element.
            LimitError: the elements take more memory than is allowed.
        """
        self.ensure_index(index)
        return TensorList(self.items.replaced(index, element), self.type, self.shape, self.most)

    def appended(self, element: Array) -> TensorList:
        """Return a copy with the element appended; the copy owns its memory.

        Raises:
            EnsureError: the list is full.
            LimitError: the elements take more memory than is allowed.
        """
        ensure(
            self.most == -1 or self.size < self.most,
            lambda: f"the list has {self.size} elements and takes at most {self.most} (max_num_elements).",
        )
        return TensorList(self.items.appended(element), self.type, self.shape, self.most)

    def shortened(self) -> TensorList:
        """Return a copy without the last element."""
        return TensorList(self.items.shortened(), self.type, self.shape, self.most)

    def resized(self, size: int) -> TensorList:
        """Return a copy cut to `size` elements, or extended by unset ones.

        Raises:
            LimitError: the memory limit does not allow so many.
        """
        charge(2 * _REFERENCE * (self.size + size))
        elements = self.elements()[:size]
        return TensorList.of(elements + [None] * (size - len(elements)), self.type, self.shape, self.most)

    def ensure_index(self, index: int) -> None:
        """Raise an EnsureError for an index outside the list."""
        if not 0 <= index < self.size:
            ensure(False, f"there is no element {index} in a list of {self.size} elements.")

    def element_shape(self, asked: Shape, elements: Sequence[Element]) -> Shape:
        """Return the partial shape of all `elements`, merged from the list's declared shape, `asked`, and the elements' own
        shapes.

        Args:
            asked: the element shape that the node requests.

        Raises:
            EnsureError: the shapes conflict.
        """
        shape = merged(asked, self.shape, "the elements of the list")
        for element in paced(elements):
            if element is not None and element.shape != shape:
                shape = merged(shape, element.shape, "the elements of the list")
        return shape

    def ensure_element_shape(self, shape: tuple[int, ...]) -> None:
        """Raise an EnsureError for an element shape that the list does not allow."""
        if shape != self.shape:
            merged(self.shape, shape, "an element of the list")

    @property
    def zero(self) -> object:
        """Return the value that unset elements have: 0, False or an empty string."""
        return b"" if self.type is TensorType.STRING else None if self.type is TensorType.VARIANT else 0


def owned(array: Array) -> Array:
    """Return a copy of a tensor's array that a list can keep: the runtime reuses the tensor's memory for other nodes."""
    return kept_copy(array)


def owned_rows(array: Array) -> list[Array]:
    """Return copies of an array's rows that a list can keep."""
    copy = kept_copy(array, besides=_ARRAY * len(array))
    return [copy[row, ...] for row in paced(range(len(copy)), 4096)]  # `...` keeps a row of a vector an array
