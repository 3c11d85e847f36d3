"""Reading of scripts within bounds: libcst's parser, in Rust, crashes or never ends where an expression is too deep.

So Python's own parser is asked first, which counts, and its tree is measured. What is left libcst can read, but its visitors
need several calls a level: all this runs in a thread with a larger stack.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Callable
from io import BytesIO
from tokenize import detect_encoding
from typing import TypeVar

import libcst as cst

from ...core.futures import Future

T = TypeVar("T")
MOST_LEVELS = 1000  # the parser takes a time that grows with their square
STACK_BYTES = 256 << 20  # address space: only what is used takes memory
CALLS_A_LEVEL = 25  # of libcst's visitors
TOO_DEEP = "is nested too deep to be read: divide it"


def decode(data: bytes) -> tuple[str, str]:
    """Return a script's text with its own line ends, and its encoding (``utf-8-sig`` where it has a byte order mark).

    Raises:
        ValueError: the encoding is not known, or the bytes are not of it.
    """
    try:
        encoding, _ = detect_encoding(BytesIO(data).readline)
        return data.decode(encoding), encoding
    except SyntaxError as error:
        raise ValueError(error.msg) from None


def parse(source: str) -> cst.Module:
    """Return the tree of a script.

    Raises:
        ValueError: it is not Python that this version can read, or it is nested too deep.
    """
    _check(source)
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise ValueError(f"line {error.raw_line}: {error.message}") from None


def _check(source: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes in strings
            tree = ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"an expression or a chain of elif {TOO_DEEP}") from None
    _check_depth(tree)


def _check_depth(tree: ast.AST) -> None:
    open_nodes = [(tree, 0, 1)]
    while open_nodes:
        node, depth, line = open_nodes.pop()
        line = getattr(node, "lineno", line)
        if depth > MOST_LEVELS:
            raise ValueError(f"line {line}: this {TOO_DEEP}")
        open_nodes.extend((child, depth + 1, line) for child in ast.iter_child_nodes(node))


def with_deep_stack(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, run in a thread that has room for deep trees.

    Args:
        work: the function.

    Raises:
        ValueError: even so there was too little room.
        Exception: what ``work`` raises.
    """
    done: Future[T] = Future()
    limit, size = sys.getrecursionlimit(), threading.stack_size(STACK_BYTES)
    try:
        sys.setrecursionlimit(max(limit, MOST_LEVELS * CALLS_A_LEVEL))
        thread = threading.Thread(target=_run, args=(work, done), name="telegrad-migrate", daemon=True)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    return done.value()


def _run(work: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(work())
    except RecursionError:
        done.set_exception(ValueError(f"an expression {TOO_DEEP}"))
    except BaseException as error:
        done.set_exception(error)
