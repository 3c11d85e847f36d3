"""Token of a job: a random text that the user gives to the launcher of every node, and to nobody else."""

import os
import re
import secrets
from pathlib import Path

from ..errors import TokenError

VARIABLE = "TELEGRAD_TOKEN"
_TOKEN = re.compile(r"telegrad-[0-9a-f]{64}")
_HOW = f"print one with `telegrad token`, and give it to every node in {VARIABLE} or with --token-file"


def new_token() -> str:
    """Return a new token, of 256 random bits."""
    return f"telegrad-{secrets.token_hex(32)}"


def read_token(file: Path | None) -> bytes:
    """Return the token of the file, or of the environment.

    Raises:
        TokenError: there is none, others can read the file, or the text is no token.
    """
    text, source = _given(file)
    if not _TOKEN.fullmatch(text.strip()):
        raise TokenError(f"{source} holds no token of telegrad; {_HOW}")
    return text.strip().encode()


def _given(file: Path | None) -> tuple[str, str]:
    if file is None:
        if (text := os.environ.get(VARIABLE)) is None:
            raise TokenError(f"a job on several nodes needs a token; {_HOW}")
        return text, VARIABLE
    try:
        text = file.read_text(errors="replace")
        mode = file.stat().st_mode
    except OSError as error:
        raise TokenError(f"the token file {str(file)!r} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise TokenError(f"others can use the token file {str(file)!r}; run `chmod 600 {file}`, or make a new token")
    return text, str(file)
