"""Waits of threads in collectives, for an observation of their worker: for the members whose parts are missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from ..rpc.extend import ObservedWait

if TYPE_CHECKING:
    from .agent_group import AgentGroup
    from .calls import CollectiveCall

GROUPS = f"{__package__}.agent_group"


def collective_waits() -> Mapping[CodeType, Callable[[FrameType], ObservedWait]]:
    """Return, by the code of a collective, a function that tells what a frame of it waits for; nothing if there is no group."""
    # Most workers have no group, and do not import it; another thread may be importing it now.
    code = getattr(sys.modules.get(GROUPS), "COLLECTIVE_CODE", None)
    return {} if code is None else {code: _wait_in}


def _wait_in(frame: FrameType) -> ObservedWait:
    group: AgentGroup = frame.f_locals["self"]
    call: CollectiveCall = frame.f_locals["call"]
    return ObservedWait("collective", f"{call} of group {group.name!r}", workers=group.missing_in(call))
