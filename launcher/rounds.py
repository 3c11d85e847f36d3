"""Rounds of a job: after the end of one, all workers may be started again, with a new rendezvous."""

import signal
import time
from collections.abc import Callable

from .engines.ending_signals import EndingSignals
from .engines.scripts import ScriptEngine
from .restarts.everyone import restart_of_all
from .restarts.history import RestartHistory
from .restarts.words import restart_line


def run_rounds(
    new_engine: Callable[[], ScriptEngine],
    history: RestartHistory,
    signals: EndingSignals,
    tell: Callable[[str], None],
    alone: bool,
) -> tuple[ScriptEngine, int | None]:
    """Run rounds until one is the last.

    Args:
        new_engine: returns the engine of the next round.
        history: of the job's restarts.
        signals: by which the user ends the job.
        tell: called with a line about each restart.
        alone: this launcher runs the whole job; else the host decides about further rounds.

    Returns:
        The last round's engine, and the number of the signal that came between two rounds; None if none did.
    """
    while True:
        engine = new_engine()
        engine.run_to_the_end(signals)
        spec = engine.spec
        restart = restart_of_all(engine.supervisor, spec.policies, history, time.monotonic()) if alone else None
        if restart is None:
            return engine, None
        tell(restart_line(restart, spec.workers))
        if (signum := signals.wait(restart.delay)) is not None:
            tell(f"interrupted by {signal.Signals(signum).name} before the workers were started again")
            return engine, signum
