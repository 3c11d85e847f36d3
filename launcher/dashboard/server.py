"""Server of the page: its addresses, and its start on the loopback interface."""

from __future__ import annotations

import json
import math
import secrets
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ..progress import report
from ..watching.jobs import NoJobError, choose_job, choose_workers, own_listener
from ..watching.kill import end_processes
from .clients import ClientLimit, LimitedProtocol
from .guard import OPEN_PATHS, PERFETTO_PATH, Guard
from .looks import JobLooks
from .profiles import JobProfiles

PAGE_FOLDER = Path(__file__).parent / "page"
FILES = {"/": "index.html", PERFETTO_PATH: "perfetto.html", **{path: path[1:] for path in OPEN_PATHS}}
END_SECONDS = 3.0  # between SIGTERM and SIGKILL


class AnyJson(JSONResponse):
    """Answer in JSON, also where a worker says numbers that JSON does not have, or texts that are no Unicode."""

    def render(self, content: Any) -> bytes:
        """Return the answer as bytes."""
        try:
            return bytes(super().render(content))
        except ValueError:  # rare, and slow to look for
            return json.dumps(_in_json(content), allow_nan=False).encode()


def make_server(looks: JobLooks, token: str, hosts: list[str], allow_actions: bool) -> uvicorn.Server:
    """Return the server of a page.

    Args:
        looks: the job.
        token: secret of the page's address.
        hosts: hosts with ports by which the page is reached.
        allow_actions: the page may end workers.
    """
    limit = ClientLimit()
    protocol: Any = partial(LimitedProtocol, limit)
    config = uvicorn.Config(
        Guard(make_application(looks, allow_actions), token, hosts, limit),
        http=protocol,
        ws="none",  # else any program could fill the log, with a traceback for each request
        log_level="error",  # not of requests that are no HTTP, for the same reason
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a header does not say from where a request comes
    )
    return uvicorn.Server(config)


def make_application(looks: JobLooks, allow_actions: bool) -> Starlette:
    """Return the application, which answers all requests that it gets."""

    def state(request: Request) -> Response:
        return AnyJson({**looks.state(), "actions": allow_actions})

    def worker(request: Request) -> Response:
        return _found(lambda: looks.worker(request.query_params.get("name", "")))

    def stacks(request: Request) -> Response:
        return AnyJson(looks.stacks())

    def log(request: Request) -> Response:
        return _found(lambda: looks.log(request.query_params.get("name", "")))

    profiles = JobProfiles()

    def take_profile(request: Request) -> Response:
        seconds = _number(request.query_params.get("seconds", ""))
        return _found(lambda: profiles.take(looks.job, seconds, looks.timeout))

    def profile(request: Request) -> Response:
        return _found(lambda: profiles.get(int(_number(request.query_params.get("number", "")))))

    def kill(request: Request) -> Response:
        if not allow_actions:
            return AnyJson({"error": "the page only reads: start it with --allow-actions"}, 403)
        name = request.query_params.get("name", "")
        return _found(lambda: {"ended": end_processes(choose_workers(looks.job, [name]), END_SECONDS)})

    routes = [Route(path, _file(name)) for path, name in FILES.items()]
    routes += [Route("/api/state", state), Route("/api/worker", worker), Route("/api/log", log)]
    routes += [Route("/api/stacks", stacks), Route("/api/profile", profile)]
    routes.append(Route("/api/profile", take_profile, methods=["POST"]))
    routes.append(Route("/api/kill", kill, methods=["POST"]))
    return Starlette(routes=routes)


def serve_page(key: str | None, port: int, timeout: float, allow_actions: bool, opens: bool) -> None:
    """Serve the page of a job until Ctrl-C.

    Args:
        key: the beginning of the job's id; None for the latest of this folder.
        port: 0 for a free one.
        timeout: seconds that a worker has to answer.
        allow_actions: the page may end workers.
        opens: open it in the user's browser.

    Raises:
        NoJobError: there is no such job, or the port is taken.
    """
    token = secrets.token_urlsafe(24)
    with closing(JobLooks(choose_job(key), timeout)) as looks, own_listener(port) as listener:
        port = listener.getsockname()[1]
        running = make_server(looks, token, [f"127.0.0.1:{port}", f"localhost:{port}"], allow_actions)
        address = f"http://127.0.0.1:{port}/?token={token}"
        report(f"the page of job {looks.job.key}, until Ctrl-C; anyone with this address sees the job:")
        print(address, flush=True)
        if opens:
            webbrowser.open(address)
        with suppress(KeyboardInterrupt):
            running.run(sockets=[listener])


def _file(name: str) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return FileResponse(PAGE_FOLDER / name)

    return answer


def _in_json(value: Any) -> Any:
    """Return a value with None in the place of infinite numbers and of those that are none."""
    if isinstance(value, dict):
        return {key: _in_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_in_json(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(text: str) -> float:
    """Return the number that a text says; 0 if it says none."""
    with suppress(ValueError):
        if math.isfinite(found := float(text)):
            return found
    return 0.0


def _found(find: Callable[[], dict[str, Any]]) -> Response:
    try:
        return AnyJson(find())
    except NoJobError as error:
        return AnyJson({"error": str(error)}, 404)
