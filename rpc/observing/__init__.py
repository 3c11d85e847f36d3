"""Observation of workers: one read-only request, and its answer as typed records.

Its public names are for commands, which observe workers from outside; each is imported when it is used.
"""

from typing import TYPE_CHECKING

from ...core.late_imports import late_imports

if TYPE_CHECKING:
    from .causes import explain
    from .command_messages import DEBUG, MOST_TIMEOUT, OTHERS, SELF, CommandAnswer, CommandMember, CommandRequest
    from .explanation import Cause, Explanation
    from .json_records import decode_record, encode_record, read_record
    from .processes import ProcessLook, look_at_process, state_between
    from .records import Observation, ObservedFrame, ObservedReference, ObservedThread
    from .sampling import SampledStacks
else:
    __getattr__ = late_imports(
        __name__,
        {
            "explain": ".causes",
            **dict.fromkeys(
                ("DEBUG", "MOST_TIMEOUT", "OTHERS", "SELF", "CommandAnswer", "CommandMember", "CommandRequest"),
                ".command_messages",
            ),
            "Cause": ".explanation",
            "Explanation": ".explanation",
            "decode_record": ".json_records",
            "encode_record": ".json_records",
            "read_record": ".json_records",
            "SampledStacks": ".sampling",
            **dict.fromkeys(("ProcessLook", "look_at_process", "state_between"), ".processes"),
            **dict.fromkeys(("Observation", "ObservedFrame", "ObservedReference", "ObservedThread"), ".records"),
        },
    )

__all__ = [
    "DEBUG",
    "MOST_TIMEOUT",
    "OTHERS",
    "SELF",
    "Cause",
    "CommandAnswer",
    "CommandMember",
    "CommandRequest",
    "Explanation",
    "Observation",
    "ObservedFrame",
    "ObservedReference",
    "ObservedThread",
    "ProcessLook",
    "decode_record",
    "encode_record",
    "explain",
    "look_at_process",
    "SampledStacks",
    "read_record",
    "state_between",
]
