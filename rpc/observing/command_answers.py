"""Answers to commands: what is read from a line of a command, and the lines that it gets."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ...base.errors import SerializationError, TelegradError
from ...base.job_records import FORMAT
from .command_client import MOST_REQUEST_BYTES, CommandClient
from .command_messages import DEBUG, MOST_TIMEOUT, OTHERS, SELF, CommandAnswer, CommandMember, CommandRequest
from .json_records import decode_record, encode_record
from .observer import Observer, check_parts
from .records import ALL_PARTS, Observation
from .stacks import observe_threads

if TYPE_CHECKING:
    from ..agent import Agent

logger = logging.getLogger("telegrad.rpc")
MOST_QUICK_BYTES = 1 << 12  # of a request that is answered on the loop
QUICK_PARTS = frozenset(("calls", "requests", "contexts", "links", "logged", "loops"))
MOST_QUICK_CALLS = 100  # calls and requests under way
JOINING = "it waits for the other workers to join"
Debug = Callable[[CommandRequest], str]


class CommandAnswers:
    """Answers of one agent to commands.

    Args:
        agent: the agent; it need not have joined yet.
        debug: returns what answers a request to a debugger; None as long as it has not joined.
    """

    def __init__(self, agent: Agent, debug: Callable[[], Debug | None]) -> None:
        self._agent = agent
        self._debug = debug

    def new_client(self, connection: socket.socket) -> CommandClient:
        """Return a client of this connection, which does not block."""
        return CommandClient(connection)

    def quick(self, line: bytes) -> bytes:
        """Return the answer to a request that takes little time; empty for others, and for those that are to be refused."""
        if len(line) > MOST_QUICK_BYTES or not self._agent.sessions.known.done():
            return b""
        try:
            request = decode_record(CommandRequest, line, MOST_QUICK_BYTES)
            if request.ask != SELF or not self._is_quick(request.parts):
                return b""
            _check(request)
            return b"\n".join([encode_record(CommandAnswer("", 1)), *map(encode_record, self._observe(request)), b""])
        except (SerializationError, ValueError):
            return b""  # the thread refuses it
        except Exception:
            logger.exception("worker %r could not answer a command", self._agent.name)
            return b""

    def _is_quick(self, parts: list[str] | None) -> bool:
        """Return whether the loop can tell these lists itself, without keeping its other work waiting."""
        if parts is None or not QUICK_PARTS.issuperset(parts):
            return False
        return len(self._agent.caller.table) + len(self._agent.server.serving) <= MOST_QUICK_CALLS

    def refusal(self, error: Exception) -> bytes:
        """Return the answer to a request that is refused."""
        return _line(_refusal(error))

    def answer(self, line: bytes) -> tuple[bool, Iterable[bytes]]:
        """Return whether a request is accepted, and the lines that answer it."""
        answers = self._answers(line)
        refused = isinstance(answers[0], CommandAnswer) and answers[0].error
        return not refused, map(_line, answers)

    def _answers(self, line: bytes) -> list[CommandAnswer | Observation]:
        try:
            request = decode_record(CommandRequest, line, MOST_REQUEST_BYTES)
            _check(request)
            if request.ask == DEBUG:
                return [CommandAnswer(text=self._ask_debugger(request))]
            found = self._observe(request)
        except (SerializationError, ValueError, RecursionError) as error:
            return [_refusal(error)]
        except TelegradError as error:
            return [CommandAnswer(str(error))]
        return [CommandAnswer("", len(found), self._members()), *found]

    def _ask_debugger(self, request: CommandRequest) -> str:
        if (debug := self._debug()) is None:
            raise ValueError(JOINING)
        return debug(request)

    def _observe(self, request: CommandRequest) -> list[Observation]:
        parts = ALL_PARTS if request.parts is None else check_parts(request.parts)
        if not self._agent.sessions.known.done():
            name, rank = self._agent.name, self._agent.rank
            threads = observe_threads(self._agent, {})
            return [
                Observation(name, rank, rank, JOINING, process_id=os.getpid(), threads=threads, process_state="joining")
            ]
        if request.ask == SELF:
            return [self._agent.part(Observer).here(parts)]
        peers = [self._agent.peers.find(name) for name in dict.fromkeys(request.workers)]  # each once
        return self._agent.part(Observer).observe(peers, request.timeout, parts)

    def _members(self) -> list[CommandMember]:
        peers = self._agent.peers
        gone = {peer.number for peer in peers.gone()}
        infos = [(number, peers.info(number)) for number in peers.numbers() if number not in gone]
        return [CommandMember(info.name, number, info.id) for number, info in infos]


def _check(request: CommandRequest) -> None:
    if request.format != FORMAT:
        raise ValueError(
            f"it has format {request.format}, this worker knows {FORMAT}: use the same version of telegrad"
        )
    if request.ask not in (SELF, OTHERS, DEBUG) or not 0 < request.timeout <= MOST_TIMEOUT:
        raise ValueError(f"it asks for {request.ask!r:.40} within {request.timeout} s")


def _line(record: CommandAnswer | Observation) -> bytes:
    return encode_record(record) + b"\n"


def _refusal(error: Exception) -> CommandAnswer:
    return CommandAnswer(f"the request was refused: {error}")
