"""Command ``telegrad checkpoint``: lists, verifies and shows the checkpoints in a folder."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from .run_command import refuse

FolderGiven = Annotated[str, typer.Argument(metavar="FOLDER", help="Folder or address that a Checkpointer saves in.")]
Step = Annotated[int | None, typer.Option("--step", metavar="N", min=0, help="Only of this step.")]
AsJson = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object.")]

commands = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="List, verify and show checkpoints.")


@commands.command("list")
def list_(folder: FolderGiven, as_json: AsJson = False) -> None:
    """List the checkpoints, the oldest first: step, metric, size and time."""
    from ..checkpoint import summaries

    found = summaries(_existing(folder))
    if as_json:
        print(json.dumps({"folder": folder, "checkpoints": found}))
        return
    print(f"{'STEP':>8}  {'METRIC':>10}  {'SIZE':>10}  {'FILES':>5}  {'SAVED AT':25}  NAME")
    for each in found:
        if "problem" in each:
            print(f"{each['step']:>8}  {each['problem']}  ({each['name']})")
            continue
        metric = "-" if each["metric"] is None else f"{each['metric']:.6g}"
        size = f"{each['size'] / 1e6:,.1f} MB"
        row = f"{each['step']:>8}  {metric:>10}  {size:>10}  {each['files']:>5}"
        print(f"{row}  {each['saved_at']:25}  {each['name']}")


@commands.command()
def verify(folder: FolderGiven, step: Step = None, as_json: AsJson = False) -> None:
    """Read every file of the checkpoints, and compare them with their checksums; exit with 1 if one is damaged."""
    from ..checkpoint import verify as problems

    found = problems(_existing(folder), step)
    if not found:
        refuse(f"there is no checkpoint{'' if step is None else f' of step {step}'} in {folder}")
    if as_json:
        print(json.dumps({"folder": folder, "problems": found}))
    else:
        for name, problem in found.items():
            print(f"{name}: {'whole' if problem is None else problem}")
    if any(found.values()):
        raise typer.Exit(1)


@commands.command()
def show(folder: FolderGiven, step: Step = None, as_json: AsJson = False) -> None:
    """Show the contents of the newest checkpoint: its parts, with dtype and shape of each tensor."""
    from ..checkpoint import CheckpointError, describe

    try:
        found = describe(_existing(folder), step)
    except CheckpointError as error:
        refuse(str(error))
    if as_json:
        print(json.dumps(found))
        return
    metric = "" if found["metric"] is None else f", metric {found['metric']:.6g}"
    print(f"{found['name']}: step {found['step']}{metric}, saved at {found['saved_at']}")
    for file in found["files"]:
        _print_file(file)


def _print_file(file: dict[str, Any]) -> None:
    print(f"{file['name']}: {file['size']:,} bytes, sha256 {file['sha256']}")
    for part, rows in file["parts"].items():
        print(f"  {part}")
        width = max(map(len, rows), default=0)
        for name, text in rows.items():
            print(f"    {name:{width}}  {text}")


def _existing(folder: str) -> str:
    if "://" not in folder and not Path(folder).is_dir():
        refuse(f"{folder} is not a folder")
    return folder


def add_checkpoint_commands(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(commands, name="checkpoint")
