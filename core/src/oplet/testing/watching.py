"""Resolvers and others that watch what the runtime calls, and fail where a test wants a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from oplet.ops.context import Context, Node
from oplet.ops.serving.registration import Registration, Thunk
from oplet.ops.serving.resolver import Op, OpResolver, ResolverEntry

__all__ = ["ASKED_FOR", "Fault", "Watch", "WatchingResolver"]

#: The end of the message of each failure that a test asked for.
ASKED_FOR = "fails, as the test asked"


class Fault(Exception):
    """The failure that a test asked for."""


class Watch:
    """Watches the methods of registrations.

    Attributes:
        live: what `init` returned and `free` was not called with yet.
        inits: how often `init` was called.
        frees: how often `free` was called, with what `init` had returned.
        strays: what `free` was called with although no `init` had returned it, or a second time.
        fail_in: the method that raises `Fault` after it did its work: "init", "prepare", "invoke", "free" or "".
        around: runs each node, given its context, itself and what runs it.
    """

    def __init__(self, fail_in: str = "", around: Callable[[Context, Node, Thunk], None] | None = None) -> None:
        self.fail_in = fail_in
        self.around = around
        self.live: list[Any] = []
        self.inits = 0
        self.frees = 0
        self.strays: list[Any] = []

    def watched(self, registration: Registration) -> Registration:
        """The registration, with every method watched."""
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
            raise Fault(f"{method} {ASKED_FOR}")

    def _init(self, watched: Registration) -> Callable[[Context, Any], Any]:
        def init(context: Context, buffer: Any) -> Any:
            if self.fail_in == "init" and self.inits:  # the second node's, so that there is something to free
                self._fail("init")
            state = None if watched.init is None else watched.init(context, buffer)
            self.inits += 1
            self.live.append(state)
            return state

        return init

    def _free(self, watched: Registration) -> Callable[[Context, Any], None]:
        def free(context: Context, user_data: Any) -> None:
            for position, state in enumerate(self.live):
                if state is user_data:
                    del self.live[position]
                    self.frees += 1
                    break
            else:
                self.strays.append(user_data)
            if watched.free is not None:
                watched.free(context, user_data)
            self._fail("free")

        return free

    def _prepare(self, watched: Registration) -> Callable[[Context, Node], None]:
        def prepare(context: Context, node: Node) -> None:
            if watched.prepare is not None:
                watched.prepare(context, node)
            self._fail("prepare")

        return prepare

    def _bind(self, watched: Registration) -> Callable[[Context, Node], Thunk]:
        def bind(context: Context, node: Node) -> Thunk:
            thunk = _thunk_of(watched, context, node)

            def run() -> None:
                if self.around is None:
                    thunk()
                else:
                    self.around(context, node, thunk)
                self._fail("invoke")

            return run

        return bind


class WatchingResolver(Watch, OpResolver):
    """Hands out another resolver's registrations, with every method watched."""

    def __init__(self, inner: OpResolver, fail_in: str = "") -> None:
        super().__init__(fail_in)
        self.inner = inner

    def find_op(self, op: Op | int, version: int) -> Registration | None:
        found = self.inner.find_op(op, version)
        return None if found is None else self.watched(found)

    def candidates(self, op: Op | int, version: int) -> Iterator[Registration]:
        return map(self.watched, self.inner.candidates(op, version))

    def entries(self, op: Op | int | None = None) -> Iterator[ResolverEntry]:
        return self.inner.entries(op)

    def why(self, op: Op | int, version: int) -> str:
        return self.inner.why(op, version)


def _thunk_of(registration: Registration, context: Context, node: Node) -> Thunk:
    if registration.bind is not None:
        return registration.bind(context, node)
    invoke = registration.invoke
    if invoke is None:
        raise Fault(f"{node} has neither invoke nor bind.")
    return lambda: invoke(context, node)
