"""Anomaly mode across workers: a call that is made in it also runs in it, so that errors of a backward show forward lines."""

from __future__ import annotations

import inspect
import os
import struct
import traceback

from ..core.extend import anomaly_mode, detect_anomaly
from ..rpc.extend import Agent

ANOMALY_EXTRA = struct.Struct("<?")  # whether the mode looks for nan
RPC_FOLDER = os.path.dirname(inspect.getfile(Agent))


def pack_mode() -> bytes:
    """Return the anomaly mode in which a request is made, as bytes; empty if there is none."""
    mode = anomaly_mode()
    return b"" if mode is None else ANOMALY_EXTRA.pack(mode.check_nan)


def enter_mode(packed: bytes) -> None:
    """Enter the mode of a request, or else this process's mode, if any, for as long as the call's context exists."""
    packed = packed or pack_mode()
    if packed:
        AnomalyOfCall(*ANOMALY_EXTRA.unpack(packed)).enter_context()


class AnomalyOfCall(detect_anomaly):
    """Anomaly mode of a call. The lines that it shows begin at the called function."""

    def shown(self, stack: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
        """Return the frames of the called function, and of the functions that it called."""
        frames = super().shown(stack)
        above = [place for place, frame in enumerate(frames) if frame.filename.startswith(RPC_FOLDER)]
        return frames[above[-1] + 1 :] if above else frames
