"""Fork server: a process that has imported what workers need, and forks one for each that its launcher asks for.

A worker is then there within milliseconds, and shares the memory of what was imported with all others. It is forked before
there is any thread, and runs its program as the interpreter would have.

It is run by path (``python fork_server.py SOCKET PROGRAM ARGS``, or ``-m MODULE ARGS``), so it has no relative imports. Through
the socket come requests, each answered with one number: variables, cores and an output, to start a worker; or the process id of
one that has ended. Only then is it reaped, so that its launcher never signals another process that got its number.
"""

import builtins
import gc
import importlib
import json
import os
import runpy
import socket
import struct
import sys
import types
from importlib.machinery import SourceFileLoader

PRELOADED = "telegrad.agents"
ANSWER = struct.Struct("<q")  # process id or minus the error's number; exit code
REQUEST_BYTES = 1 << 16


def main() -> None:
    """Serve until the launcher hangs up; in a worker, run the program."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    del sys.argv[:2]
    if sys.path[0] == os.path.dirname(__file__):
        del sys.path[0]  # whose modules are not for others
    gc.disable()  # what is imported stays: collections would take a tenth of the time, and find nothing
    importlib.import_module(PRELOADED)
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy its page
    gc.enable()
    if _serve(connection):
        _run_program()


def _serve(connection: socket.socket) -> bool:
    """Answer requests; return True in a worker that was forked, and False when there are no more."""
    while True:
        data, files, *_ = socket.recv_fds(connection, REQUEST_BYTES, 1)
        if not data:
            return False
        request = json.loads(data)
        if not files:
            _, status = os.waitpid(request, 0)
            connection.send(ANSWER.pack(os.waitstatus_to_exitcode(status)))
            continue
        if _fork(connection):
            _become_worker(connection, files[0], **request)
            return True
        os.close(files[0])


def _fork(connection: socket.socket) -> bool:
    try:
        return os.fork() == 0
    except OSError as error:
        connection.send(ANSWER.pack(-(error.errno or 1)))
        return False


def _become_worker(connection: socket.socket, output: int, variables: dict[str, str], cores: list[int]) -> None:
    os.setsid()
    if cores:
        os.sched_setaffinity(0, cores)
    with connection:  # the worker answers itself, when it leads its session
        connection.send(ANSWER.pack(os.getpid()))
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    os.environ.update(variables)
    if name := variables.get("TELEGRAD_WORKER"):
        importlib.import_module("telegrad.base.process_title").title_worker(name)
    sys.modules["telegrad"].seed()  # else all workers would draw the same numbers


def _run_program() -> None:
    """Run the program of ``sys.argv`` as ``__main__``, and end as the interpreter does after an exception."""
    main_module = types.ModuleType("__main__")
    vars(main_module)["__builtins__"] = builtins
    sys.modules["__main__"] = main_module
    try:
        if sys.argv[0] == "-m":
            _search_first(os.getcwd())
            runpy._run_module_as_main(sys.argv.pop(1))  # type: ignore[attr-defined]  # what `python -m` calls
        else:
            _run_script(sys.argv[0], vars(main_module))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        _report(error)
        sys.exit(1)


def _run_script(script: str, namespace: dict[str, object]) -> None:
    path = os.path.abspath(script)
    _search_first(os.path.dirname(os.path.realpath(script)))
    namespace.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as source:
        code = compile(source.read(), path, "exec", dont_inherit=True)
    exec(code, namespace)


def _search_first(folder: str) -> None:
    if not getattr(sys.flags, "safe_path", False):  # of Python 3.11
        sys.path.insert(0, folder)


def _report(error: BaseException) -> None:
    """Show an exception that ended the program, without the frames of this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    sys.last_exc = error  # type: ignore[attr-defined]  # Python 3.12 has it
    sys.excepthook(type(error), error, trace)


if __name__ == "__main__":
    main()
