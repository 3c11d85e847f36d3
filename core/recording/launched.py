"""Last events of this process, for the launcher that reads them if it is killed."""

from __future__ import annotations

import os

from ...base.last_events import EVENTS_VARIABLE, LastEvents


def launched_events() -> LastEvents | None:
    """Return where this process notes its states; None if no launcher reads them."""
    if EVENTS_VARIABLE not in os.environ:
        return None
    from ...base.worker_reports import last_events  # late: most programs have no launcher, and import less

    return last_events()
