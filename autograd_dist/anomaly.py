"""Anomaly mode across workers: a call that is made in it runs in it, so that errors of its backward show its forward lines."""

from __future__ import annotations

import inspect
import os
import struct
import traceback

from ..core.extend import anomaly_mode, detect_anomaly
from ..rpc.extend import Agent

EXTRA = struct.Struct("<?")  # whether it looks for nan
RPC_FOLDER = os.path.dirname(inspect.getfile(Agent))


def pack_mode() -> bytes:
    """Return what a request says of the anomaly mode that it is made in: nothing if there is none."""
    mode = anomaly_mode()
    return b"" if mode is None else EXTRA.pack(mode.check_nan)


def enter_mode(packed: bytes) -> None:
    """Enter the mode that a request told of, or else this process's, if any, for as long as the call's context lives."""
    packed = packed or pack_mode()
    if packed:
        AnomalyOfCall(*EXTRA.unpack(packed)).enter_context()


class AnomalyOfCall(detect_anomaly):
    """Anomaly mode of a call; the lines that it shows begin with the called function."""

    def shown(self, stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
        """Return the frames of the called function and of what it called."""
        frames = super().shown(stack)
        above = [place for place, frame in enumerate(frames) if frame.filename.startswith(RPC_FOLDER)]
        return frames[above[-1] + 1 :] if above else frames
