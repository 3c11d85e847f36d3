"""Parts of an agent that are made when they are first needed: a worker imports no modules that its program does not use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..wire.messages import Interceptor

if TYPE_CHECKING:
    from contextvars import ContextVar

    from ..links.control_channel import ControlChannel
    from ..wire.messages import Incoming, Outgoing
    from .codec import Codec
    from .serving import Server


class LateParts:
    """Late parts of one agent.

    Args:
        server: gives them their requests.
        control: gives them their control messages.
    """

    def __init__(self, server: Server, control: ControlChannel) -> None:
        self._server = server
        self._control = control
        self._by_name: dict[str, _LatePart] = {}

    def add(
        self,
        make: Callable[[], object],
        names: Iterable[str],
        methods: Iterable[int] = (),
        topics: Iterable[int] = (),
    ) -> None:
        """Add parts that ``make`` makes, adds to the agent, and lets serve their methods and topics.

        It is called once, before the first of their messages is delivered or ``Agent.part`` finds one. Any thread: it is quick
        and runs no user code.

        Args:
            make: makes them all.
            names: of their classes.
            methods: of their requests.
            topics: of their control messages.
        """
        part = _LatePart(make)
        self._by_name.update(dict.fromkeys(names, part))
        for method in methods:
            self._server.serve_late(method, part.ready)
        for topic in topics:
            self._control.on_late(topic, part.ready)

    def ready(self, name: str) -> None:
        """Make the part whose class has this name, if it is a late one."""
        if (part := self._by_name.get(name)) is not None:
            part.ready()

    def made(self, name: str) -> bool:
        """Return whether a late part has been made, or is being made."""
        return self._by_name[name].made


class _LatePart:
    """Part that is made once, by the first thread that needs it, while others wait."""

    def __init__(self, make: Callable[[], object]) -> None:
        self._make: Callable[[], object] | None = make
        self._lock = threading.Lock()

    @property
    def made(self) -> bool:
        return self._make is None

    def ready(self) -> None:
        with self._lock:
            if self._make is not None:
                self._make()
                self._make = None


class LateInterceptor(Interceptor):
    """Interceptor that lets another be made for its first message, which takes its place (``Codec.replace``).

    Args:
        codec: the agent's.
        number, needs: of the other one, whose ``opening`` is quick and runs no user code.
        ready: makes it, if it is not made yet.
        answers: as the other one.
    """

    plain = True

    def __init__(
        self, codec: Codec, number: int, needs: ContextVar[Any], ready: Callable[[], object], answers: bool = False
    ) -> None:
        self._codec = codec
        self.number = number
        self.needs = needs
        self.answers = answers
        self._ready = ready

    def _other(self) -> Interceptor:
        self._ready()
        (other,) = [each for each in self._codec.interceptors if each.number == self.number]
        return other

    def sending(self, message: Outgoing) -> None:
        self._other().sending(message)

    def not_delivered(self, message: Outgoing) -> None:
        self._other().not_delivered(message)

    def entering(self, message: Incoming) -> None:
        self._other().entering(message)

    def opening(self, message: Incoming) -> None:
        self._other().opening(message)
