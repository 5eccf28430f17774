"""Spies: registrations and resolvers that count the calls of kernel methods, and inject faults where a test wants them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from oplet import Context, Node, OpResolver, Registration
from oplet.toolkit import Op, ResolverEntry, Thunk

__all__ = ["INJECTED", "InjectedFault", "RegistrationSpy", "SpyResolver"]

#: How the message of each injected fault ends.
INJECTED = "fails, as the test asked"


class InjectedFault(Exception):
    """A failure that a test injected."""


class RegistrationSpy:
    """Counts the calls of a kernel's methods, and makes one of them fail.

    Attributes:
        live: user data (what `init` returns) that `free` was not called with yet.
        inits: the number of calls of `init`.
        frees: the number of calls of `free` with user data that `init` had returned.
        strays: user data that `free` was called with although no `init` had returned it, or for the second time.
        fail_in: the method after whose work `InjectedFault` is raised: "init", "prepare", "invoke", "free", or "" for none.
        around: called with context, node and thunk (the function that runs the node) in place of each thunk; None for none.
    """

    def __init__(self, fail_in: str = "", around: Callable[[Context, Node, Thunk], None] | None = None) -> None:
        self.fail_in = fail_in
        self.around = around
        self.live: list[Any] = []
        self.inits = 0
        self.frees = 0
        self.strays: list[Any] = []

    def spy_on(self, registration: Registration) -> Registration:
        """Return a copy of the registration whose calls are counted here, and whose method `fail_in` fails."""
        return replace(
            registration,
            init=self._init(registration),
            free=self._free(registration),
            prepare=self._prepare(registration),
            bind=self._bind(registration),
            invoke=None,
        )

    def _fail(self, method: str) -> None:
        if self.fail_in == method:
            raise InjectedFault(f"{method} {INJECTED}")

    def _init(self, original: Registration) -> Callable[[Context, Any], Any]:
        def init(context: Context, buffer: Any) -> Any:
            if self.fail_in == "init" and self.inits:  # the second node's, so that there is something to free
                self._fail("init")
            state = None if original.init is None else original.init(context, buffer)
            self.inits += 1
            self.live.append(state)
            return state

        return init

    def _free(self, original: Registration) -> Callable[[Context, Any], None]:
        def free(context: Context, user_data: Any) -> None:
            for position, state in enumerate(self.live):
                if state is user_data:
                    del self.live[position]
                    self.frees += 1
                    break
            else:
                self.strays.append(user_data)
            if original.free is not None:
                original.free(context, user_data)
            self._fail("free")

        return free

    def _prepare(self, original: Registration) -> Callable[[Context, Node], None]:
        def prepare(context: Context, node: Node) -> None:
            if original.prepare is not None:
                original.prepare(context, node)
            self._fail("prepare")

        return prepare

    def _bind(self, original: Registration) -> Callable[[Context, Node], Thunk]:
        def bind(context: Context, node: Node) -> Thunk:
            thunk = _thunk_of(original, context, node)

            def run() -> None:
                if self.around is None:
                    thunk()
                else:
                    self.around(context, node, thunk)
                self._fail("invoke")

            return run

        return bind


class SpyResolver(RegistrationSpy, OpResolver):
    """A resolver that wraps another one, and returns its registrations, each wrapped by `spy_on`."""

    def __init__(self, inner: OpResolver, fail_in: str = "") -> None:
        super().__init__(fail_in)
        self.inner = inner

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        found = self.inner.find_op(op, version)
        return None if found is None else self.spy_on(found)

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        return map(self.spy_on, self.inner.candidates(op, version))

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        return self.inner.entries(op)

    def why(self, op: Op | int, version: int) -> str:
        return self.inner.why(op, version)


def _thunk_of(registration: Registration, context: Context, node: Node) -> Thunk:
    if registration.bind is not None:
        return registration.bind(context, node)
    invoke = registration.invoke
    if invoke is None:
        raise InjectedFault(f"{node} has neither invoke nor bind.")
    return lambda: invoke(context, node)
