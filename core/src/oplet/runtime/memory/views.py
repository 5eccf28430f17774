"""The numpy views of tensors' memory that a program has: while one is alive, the memory must not be replaced."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet.errors import ViewError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Views"]

_ALIVE = """There is at least 1 reference to internal data
      in the interpreter in the form of a numpy array or slice. Be sure to
      only hold the function returned from tensor() if you are using raw
      data access."""


class Views:
    """Tracks the views that one interpreter has returned.

    Attributes:
        handed_out: weak references to the views' base arrays; those of views that are gone are dead.
    """

    def __init__(self) -> None:
        self.handed_out: list[weakref.ref[NDArray[Any]]] = []

    def make(self, data: NDArray[Any]) -> NDArray[Any]:
        """Return a view of a tensor's array, which counts as alive until the last reference to it or to a slice of it is gone."""
        if data.dtype.hasobject or not data.size:
            return cast("NDArray[Any]", data.view())
        # numpy's views refer to the array at the end of their chain of bases. This chain ends at `flat`, which is made from a
        # memoryview, so that `flat` is alive as long as the view or a slice of it is.
        flat: NDArray[Any] = np.frombuffer(data.reshape(-1).view(np.uint8).data, data.dtype)
        self.handed_out = [alive for alive in self.handed_out if alive() is not None]
        self.handed_out.append(weakref.ref(flat))
        view: NDArray[Any] = flat.reshape(data.shape)
        return view

    def any_alive(self) -> bool:
        """Return whether the program still holds a view, or a slice of one."""
        return any(alive() is not None for alive in self.handed_out)

    def ensure_none(self) -> None:
        """Check that no view is alive.

        Raises:
            ViewError: one is.
        """
        if self.handed_out:
            if self.any_alive():
                raise ViewError(_ALIVE)
            self.handed_out.clear()
