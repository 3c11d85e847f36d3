"""Job file: the options of ``telegrad run`` by their long names, in TOML. What is on the command line comes first.

script = "train.py"
args = ["--epochs", "10"]
nnodes = 2
rdzv-endpoint = "node0:29400"
roles = "ps,trainer=6"

[env]
DATA = "/data"

[env.ps]
OMP_NUM_THREADS = "8"

[restart]
trainer = "one"
"""

import sys
from pathlib import Path
from typing import Any

import typer

LISTS = ("args", "env")


def hyphenated(option: str) -> str:
    """Return our spelling of an option: ``nproc-per-node`` for ``nproc_per_node``, as torchrun spells it."""
    return option.replace("_", "-")


def read_job_file(context: typer.Context, file: Path | None) -> Path | None:
    """Make what the file says the defaults of the command's options.

    Args:
        context: of the command.
        file: the file; None without one.

    Raises:
        typer.BadParameter: it cannot be read, or names no option of the command.
    """
    if file is not None:
        names = _names(context)
        defaults: dict[str, Any] = dict(context.default_map or {})
        for key, value in ((hyphenated(key), value) for key, value in _load(file).items()):
            if key not in names:
                raise typer.BadParameter(
                    f"{file} names {key!r}, which is no option; the options are {', '.join(sorted(names))}"
                )
            defaults[names[key]] = _value(key, value)
        context.default_map = defaults
    return file


def _names(context: typer.Context) -> dict[str, str]:
    """Return the parameters of the command by their long names, without the dashes."""
    return {
        long.lstrip("-"): parameter.name
        for parameter in context.command.params
        if parameter.name and parameter.name not in ("job", "help")
        for long in parameter.opts
        if len(long.lstrip("-")) > 1
    }


def _load(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib

        try:
            return tomllib.loads(file.read_text())
        except (OSError, ValueError) as error:
            raise typer.BadParameter(f"the job file {str(file)!r} cannot be read: {error}") from error
    raise typer.BadParameter(
        "a job file needs Python 3.11 or newer, which reads TOML; give the options on the command line"
    )


def _value(key: str, value: Any) -> Any:
    if key == "env":
        return _variables(value) if isinstance(value, dict) else value
    if isinstance(value, dict):  # [restart]: roles and their policies
        return ",".join(f"{name}={inner}" for name, inner in value.items())
    if isinstance(value, bool) or key in LISTS:
        return [str(each) for each in value] if key in LISTS else value
    return str(value)


def _variables(table: dict[str, Any]) -> list[str]:
    found = []
    for name, value in table.items():
        if isinstance(value, dict):
            found += [f"{name}:{inner}={text}" for inner, text in value.items()]
        else:
            found.append(f"{name}={value}")
    return found
