"""Futures: values that arrive later (``torch.futures``)."""

from .attempts import attempt, attempt_async
from .blocking import Blocker, Canceller, Driver, Waiter, block, thread_role
from .dependents import direct_dependents
from .future import WAIT_CODE, Future, complete_once, run_callbacks
from .outcomes import collect_all, copy_error, copy_outcome, wait_all, wait_for_any, wait_for_outcomes
from .program_clock import ProgramClock, program_clock
from .protection import free, interruptible, opens
from .reentry import broke_protected, interrupts_protected, raised_by_handler, refuse_in_handler
from .shield import shield
from .threaded import in_thread

__all__ = [
    "WAIT_CODE",
    "Blocker",
    "Canceller",
    "Driver",
    "Future",
    "ProgramClock",
    "Waiter",
    "attempt",
    "attempt_async",
    "block",
    "broke_protected",
    "collect_all",
    "complete_once",
    "copy_error",
    "copy_outcome",
    "direct_dependents",
    "in_thread",
    "free",
    "interruptible",
    "interrupts_protected",
    "raised_by_handler",
    "refuse_in_handler",
    "run_callbacks",
    "shield",
    "opens",
    "program_clock",
    "thread_role",
    "wait_all",
    "wait_for_any",
    "wait_for_outcomes",
]
