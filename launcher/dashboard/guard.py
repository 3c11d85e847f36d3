"""``Guard``: answers only requests of the page at its address: not those of other sites, nor by other names of this host."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.responses import PlainTextResponse

from .clients import ClientLimit

TOKEN_HEADER = "x-telegrad-token"
OWN_SITES = ("same-origin", "none")  # of ``Sec-Fetch-Site``: the page itself, or an address that the user typed
OPEN_PATHS = (  # they say nothing of a job, and a browser cannot give their requests a header
    "/page.css",
    "/page.js",
    "/backward.js",
    "/elements.js",
    "/flames.js",
    "/perfetto.js",
)
PERFETTO_PATH = "/perfetto"  # its page hands a profile to another site, and is no more than that
PAGES = ("/", PERFETTO_PATH)  # their addresses have the token
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
# The page of the job has no tie to any other. That for Perfetto keeps one to the window that it opens, to give it the profile.
OPENER_HEADERS = {"Cross-Origin-Opener-Policy": "same-origin-allow-popups"}
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Guard:
    """ASGI application in front of another.

    A page of another site can make requests to this machine, but it cannot read the token, set the header, or hide its origin.
    A name of its own that it points to this machine (rebinding) is not among the hosts.

    Args:
        application: answers the requests that are let through.
        token: secret of the page's address.
        hosts: hosts with ports by which the page is reached.
        limit: learns which connections have shown the token.
    """

    def __init__(self, application: Any, token: str, hosts: Iterable[str], limit: ClientLimit) -> None:
        self._application = application
        self._token = token
        self._hosts = frozenset(hosts)
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the dashboard answers HTTP, not {scope['type']}")

        async def send_with_headers(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = HEADERS | (OPENER_HEADERS if scope["path"] == PERFETTO_PATH else {})
                extra = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        problem = self._problem(Headers(scope=scope), scope["path"], QueryParams(scope["query_string"]))
        if not problem and scope["path"] not in OPEN_PATHS:
            self._limit.shown(scope["client"])
        answer = PlainTextResponse(f"{problem}\n", 403) if problem else self._application
        await answer(scope, receive, send_with_headers)

    def _problem(self, headers: Headers, path: str, query: QueryParams) -> str:
        """Return why a request is refused; empty if it is not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host not in self._hosts:
            return "this address is not the page's: use the one that telegrad dashboard printed"
        if origin is not None and origin != f"http://{host}":
            return "pages of other sites are not answered"
        if headers.get("sec-fetch-site", "none") not in OWN_SITES:
            return "requests of other sites are not answered"
        given = query.get("token", "") if path in PAGES else headers.get(TOKEN_HEADER, "")
        if path not in OPEN_PATHS and not hmac.compare_digest(given.encode(), self._token.encode()):
            return "the token is missing or wrong: use the address that telegrad dashboard printed"
        return ""
