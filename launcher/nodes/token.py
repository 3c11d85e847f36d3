"""Token of a job: a random text that the user gives to the launcher of every node, and to nobody else.

``telegrad-END-RANDOM``: END is the time, in seconds since 1970, from which on it lets nobody in. Both launchers prove the whole
text, so that a token with another END is another token.
"""

import os
import re
import secrets
import time
from datetime import datetime
from pathlib import Path

from ..errors import TokenError

TOKEN_VARIABLE = "TELEGRAD_TOKEN"
DEFAULT_DAYS = 7.0
MOST_DAYS = 366.0
_TOKEN = re.compile(r"telegrad-(\d{1,12})-[0-9a-f]{64}")
_HOW = f"print one with `telegrad token`, and give it to every node in {TOKEN_VARIABLE} or with --token-file"


def new_token(days: float = DEFAULT_DAYS) -> str:
    """Return a new token, of 256 random bits.

    Args:
        days: for which it lets nodes in.

    Raises:
        ValueError: that is longer than 366, or no time at all.
    """
    if not 0 < days <= MOST_DAYS:
        raise ValueError(f"a token is valid for more than 0 and at most {MOST_DAYS:g} days, you gave {days:g}")
    return f"telegrad-{int(time.time() + days * 86400)}-{secrets.token_hex(32)}"


def read_token(file: Path | None) -> bytes:
    """Return the token of the file, or of the environment.

    Raises:
        TokenError: there is none, others can read the file, the text is no token, or it has expired.
    """
    text, source = _given(file)
    token = text.strip().encode()
    if not _TOKEN.fullmatch(text.strip()):
        raise TokenError(f"{source} holds no token of telegrad; {_HOW}")
    if expired(token):
        end = datetime.fromtimestamp(_end(token))
        raise TokenError(f"the token in {source} has expired, on {end:%Y-%m-%d at %H:%M}; {_HOW}")
    return token


def expired(token: bytes) -> bool:
    """Return whether a token lets nobody in any more, by this machine's clock."""
    return time.time() >= _end(token)


def _end(token: bytes) -> int:
    return int(token.split(b"-")[1])


def _given(file: Path | None) -> tuple[str, str]:
    if file is None:
        if (text := os.environ.get(TOKEN_VARIABLE)) is None:
            raise TokenError(f"a job on several nodes needs a token; {_HOW}")
        return text, TOKEN_VARIABLE
    try:
        text = file.read_text(errors="replace")
        mode = file.stat().st_mode
    except OSError as error:
        raise TokenError(f"the token file {str(file)!r} cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise TokenError(f"others can use the token file {str(file)!r}; run `chmod 600 {file}`, or make a new token")
    return text, str(file)
