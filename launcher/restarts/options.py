"""Options of ``telegrad run`` about restarts."""

from typing import Annotated

import typer

from .history import EARLY_SECONDS, MOST_EARLY
from .rules import DEFAULT_MOST, DEFAULT_WITHIN_SECONDS

RESTARTS_PANEL = "Restarts"

Restart = Annotated[
    str | None,
    typer.Option(
        "--restart",
        metavar="POLICY",
        rich_help_panel=RESTARTS_PANEL,
        help="What is started again if a worker fails: never, one (that worker), rest (also those of higher rank), all; or by "
        f"role: ps=never,trainer=one. One that fails within {EARLY_SECONDS:g} s {MOST_EARLY} times in a row ends the job.",
    ),
]
MaxRestarts = Annotated[
    int | None,
    typer.Option(
        "--max-restarts",
        metavar="N",
        rich_help_panel=RESTARTS_PANEL,
        help=f"Most restarts; {DEFAULT_MOST} within {DEFAULT_WITHIN_SECONDS:g} s if not given, with one and rest "
        f"{DEFAULT_MOST} for each worker. Without --restart it means --restart all, as in torchrun.",
    ),
]
Within = Annotated[
    float | None,
    typer.Option(
        "--within",
        metavar="SECONDS",
        rich_help_panel=RESTARTS_PANEL,
        help="Time in which --max-restarts counts; the whole job if not given.",
    ),
]
