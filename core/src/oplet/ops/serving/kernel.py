"""Protocols of kernels and of their order, as nodes see them; for type checkers: no module imports this one when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from oplet.ops.serving.provenance import Provenance

__all__ = ["Kernel", "ProviderChain"]


class Kernel(Protocol):
    """The members of `Registration` that nodes and the runtime use; a protocol, to avoid a circular import."""

    @property
    def custom_name(self) -> str: ...

    @property
    def init(self) -> Callable[[Any, Any], Any] | None: ...

    @property
    def free(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def prepare(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def bind(self) -> Callable[[Any, Any], Callable[[], None]] | None: ...

    @property
    def invoke(self) -> Callable[[Any, Any], None] | None: ...

    @property
    def async_kernel(self) -> Callable[[Any, Any], Any] | None: ...

    @property
    def profiling_string(self) -> Callable[[Any, Any], str] | None: ...

    @property
    def remark(self) -> Callable[[Any, bool], str] | None: ...

    @property
    def library(self) -> str: ...

    @property
    def user_data(self) -> Any: ...

    @property
    def pure(self) -> bool: ...

    @property
    def fuses(self) -> Callable[[Any, Any], Sequence[Any]] | None: ...

    @property
    def speculative(self) -> bool: ...

    @property
    def absorbable(self) -> bool: ...

    @property
    def sparse(self) -> frozenset[int]: ...

    @property
    def expands(self) -> Callable[[Any, Any], Callable[[Any, Any], object] | None] | None: ...

    @property
    def limits(self) -> Any: ...

    @property
    def decomposes(self) -> bool: ...

    @property
    def provenance(self) -> Provenance: ...


class ProviderChain(Protocol):
    """The kernels that may serve a node, in order of precedence; a protocol for `Providers`, to avoid a circular import."""

    @property
    def declined(self) -> Sequence[tuple[Kernel, str]]: ...

    @property
    def kernel(self) -> Kernel | None: ...

    def after(self, reason: str) -> ProviderChain | None: ...
