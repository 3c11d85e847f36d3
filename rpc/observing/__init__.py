"""Observation of workers: one read-only request, and its answer as typed records.

Its public names are for commands, which observe workers from outside; each is imported when it is used.
"""

from typing import TYPE_CHECKING

from ...base.late_imports import late_imports

if TYPE_CHECKING:
    from .causes import explain as explain
    from .command_messages import DEBUG as DEBUG
    from .command_messages import MOST_TIMEOUT as MOST_TIMEOUT
    from .command_messages import OTHERS as OTHERS
    from .command_messages import SELF as SELF
    from .command_messages import CommandAnswer as CommandAnswer
    from .command_messages import CommandMember as CommandMember
    from .command_messages import CommandRequest as CommandRequest
    from .explanation import Cause as Cause
    from .explanation import Explanation as Explanation
    from .json_records import decode_record as decode_record
    from .json_records import encode_record as encode_record
    from .json_records import read_record as read_record
    from .processes import ProcessLook as ProcessLook
    from .processes import look_at_process as look_at_process
    from .processes import state_between as state_between
    from .records import Observation as Observation
    from .records import ObservedFrame as ObservedFrame
    from .records import ObservedReference as ObservedReference
    from .records import ObservedThread as ObservedThread
    from .sampling import SampledStacks as SampledStacks
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
