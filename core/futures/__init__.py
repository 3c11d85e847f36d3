"""Futures: values that arrive later (``torch.futures``)."""

from .blocking import Blocker, Canceller, Driver, Waiter, block, thread_role
from .future import Future, run_callbacks
from .outcomes import collect_all, complete_once, copy_error, copy_outcome, wait_all, wait_for_any, wait_for_outcomes
from .signal_handlers import raised_by_handler, refuse_in_handler, sleeps
from .threaded import in_thread

__all__ = [
    "Blocker",
    "Canceller",
    "Driver",
    "Future",
    "Waiter",
    "block",
    "collect_all",
    "complete_once",
    "copy_error",
    "copy_outcome",
    "in_thread",
    "raised_by_handler",
    "refuse_in_handler",
    "run_callbacks",
    "sleeps",
    "thread_role",
    "wait_all",
    "wait_for_any",
    "wait_for_outcomes",
]
