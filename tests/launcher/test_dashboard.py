"""Server of the page of a job: which requests it answers, and what it says."""

import asyncio
import json
import math
import socket
import urllib.request
from contextlib import ExitStack
from functools import partial

import pytest
from helpers.browser import TOKEN, looks_at, observed, place_of, served
from telegrad.launcher.dashboard import looks as looks_module
from telegrad.launcher.watching import watched_job
from telegrad.launcher.watching.jobs import NoJobError

server = pytest.importorskip("telegrad.launcher.dashboard.server", reason="pip install starlette uvicorn")
clients = pytest.importorskip("telegrad.launcher.dashboard.clients")
HOST = "127.0.0.1:8000"


@pytest.fixture
def look(monkeypatch):
    return partial(looks_at, monkeypatch)


def ask(application, path, method="GET", host=HOST, token=TOKEN, **headers):
    """Return status, headers and body of an answer."""
    path, _, query = path.partition("?")
    given = {"host": host, **({"x-telegrad-token": token} if token else {}), **headers}
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    scope = {"type": "http", "http_version": "1.1", "method": method, "path": path, "raw_path": path.encode()}
    scope |= {"query_string": query.encode(), "headers": pairs, "scheme": "http", "server": ("127.0.0.1", 8000)}
    scope |= {"client": ("127.0.0.1", 5000)}
    sent, requests = [], [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive():
        if not requests:
            await asyncio.Event().wait()  # the client stays
        return requests.pop()

    async def send(message):
        sent.append(message)

    asyncio.run(application(scope, receive, send))
    body = b"".join(each.get("body", b"") for each in sent[1:])
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, body


@pytest.fixture
def application(look):
    looks = look([observed("a", 0), observed("b", 1)])
    return server.make_server(looks, TOKEN, [HOST], allow_actions=False).config.app


def test_the_page_and_the_state_are_answered_with_the_token(application):
    status, headers, body = ask(application, "/?token=secret", token="")
    assert status == 200 and b"<title>telegrad</title>" in body
    assert "default-src 'none'" in headers["content-security-policy"] and headers["cache-control"] == "no-store"
    assert [ask(application, path, token="")[0] for path in ("/page.js", "/page.css")] == [200, 200]
    status, _, body = ask(application, "/api/state")
    state = json.loads(body)
    assert status == 200 and [each["worker"] for each in state["workers"]] == ["a", "b"]
    assert not {"threads", "owned"} & state["workers"][0].keys() and state["why"] and not state["actions"]
    assert json.loads(ask(application, "/api/worker?name=b")[2])["threads"][0]["at"]["line"] == 7
    stacks = json.loads(ask(application, "/api/stacks")[2])["stacks"]
    assert stacks[0] == {"worker": "a", "thread": "MainThread", "stack": ["step at /home/user/train.py:7"]}


@pytest.mark.parametrize(
    ("path", "changes"),
    [
        ("/", {}),
        ("/?token=wrong", {}),
        ("/api/state", {"token": ""}),
        ("/api/state?token=secret", {"token": ""}),
        ("/api/state", {"token": "secreT"}),
        ("/api/state", {"token": "sécret"}),
        ("/api/state", {"host": "attacker.example:8000"}),
        ("/api/state", {"host": "127.0.0.1:9000"}),
        ("/?token=secret", {"host": "attacker.example"}),
        ("/api/state", {"origin": "http://attacker.example"}),
        ("/api/state", {"origin": "null"}),
        ("/api/state", {"sec_fetch_site": "cross-site"}),
        ("/page.js", {"sec_fetch_site": "same-site"}),
        ("/api/kill?name=a", {"method": "POST", "origin": "http://attacker.example"}),
    ],
)
def test_others_are_refused(application, path, changes):
    status, headers, body = ask(application, path, **changes)
    assert status == 403 and any(words in body for words in (b"telegrad dashboard", b"other sites"))
    assert "content-security-policy" in headers


def test_the_page_only_reads_unless_actions_are_allowed(application):
    status, _, body = ask(application, "/api/kill?name=a", method="POST")
    assert status == 403 and "--allow-actions" in json.loads(body)["error"]
    assert ask(application, "/api/kill?name=a")[0] == 405 and ask(application, "/api/state", method="POST")[0] == 405


def test_numbers_that_are_none_and_texts_that_are_no_unicode_are_answered(look):
    seen = observed("w\udc80<", 0, cpu_seconds=math.nan, memory_bytes=1 << 70, answer_seconds=math.inf)
    application = server.make_server(look([seen]), TOKEN, [HOST], allow_actions=False).config.app
    status, _, body = ask(application, "/api/state")
    (worker,) = json.loads(body)["workers"]
    assert (status, worker["worker"], worker["cpu_seconds"], worker["answer_seconds"]) == (200, "w\udc80<", None, None)


def test_unknown_workers_and_logs_are_told(application, look, tmp_path):
    assert ask(application, "/api/worker?name=x")[0] == 404 and ask(application, "/api/log?name=a")[0] == 404
    (tmp_path / "a.log").write_text("x" * 100_000 + "last line\n")
    (tmp_path / "b.log").symlink_to(tmp_path / "a.log")
    looks = look([observed("a", 0), observed("b", 1)], {name: str(tmp_path / f"{name}.log") for name in "ab"})
    found = looks.log("a")
    assert found["text"].endswith("last line\n") and found["cut"] == 100_010 - (1 << 16)
    with pytest.raises(NoJobError, match="cannot be read"):
        looks.log("b")  # a link


def test_nothing_that_strangers_send_fills_the_log(look):
    config = server.make_server(look([observed("a", 0)]), TOKEN, [HOST], allow_actions=False).config
    assert (config.ws, config.log_level, config.access_log, config.proxy_headers) == ("none", "error", False, False)


class Connection:
    """End of a connection, which notes that it was cut off."""

    def __init__(self, limit, port):
        self.client, self.open = ("127.0.0.1", port), True
        limit.opened(self.client, self.cut)

    def cut(self):
        self.open = False


def test_connections_without_the_token_are_cut_off_first():
    limit = clients.ClientLimit(most=3)
    first, user, third = (Connection(limit, port) for port in range(3))
    limit.shown(user.client)
    fourth = Connection(limit, 3)
    assert [each.open for each in (first, user, third, fourth)] == [False, True, True, True]
    limit.cut(third.client), limit.cut(user.client)  # their time is over
    assert not third.open and user.open
    limit.shown(fourth.client)
    limit.shown(Connection(limit, 5).client)
    assert not Connection(limit, 6).open  # all others have the token
    limit.closed(user.client)
    assert Connection(limit, 7).open


def test_silent_connections_do_not_keep_the_user_out(look, monkeypatch):
    monkeypatch.setattr(clients, "TOKEN_SECONDS", 1000.0)
    with served(look([observed("a", 0)])) as address, ExitStack() as stack:
        place = place_of(address)
        silent = [stack.enter_context(socket.create_connection(place, 20)) for _ in range(clients.MOST_CONNECTIONS + 2)]
        assert silent[0].recv(1) == b""  # the oldest
        with urllib.request.urlopen(address, timeout=20) as answer:
            assert answer.status == 200


def test_a_connection_that_does_not_show_the_token_is_cut_off_in_time(look, monkeypatch):
    monkeypatch.setattr(clients, "TOKEN_SECONDS", 0.2)
    with served(look([observed("a", 0)])) as address, socket.create_connection(place_of(address), 20) as stranger:
        stranger.sendall(b"GET /page.js HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
        assert stranger.recv(1) == b""


def test_all_browsers_share_one_look(look, monkeypatch):
    looks, count = look([observed("a", 0)]), []
    seen = watched_job.observe_job(None, 1.0)
    monkeypatch.setattr(watched_job, "observe_job", lambda *_: count.append(1) or seen)
    monkeypatch.setattr(looks_module, "LOOK_INTERVAL", 1000.0)
    for _ in range(5):
        looks.state(), looks.worker("a"), looks.stacks()
    assert len(count) == 3  # of all, of one worker, of all stacks


def test_the_last_look_stays_when_the_job_has_ended(look, monkeypatch):
    looks = look([observed("a", 0)])
    looks.state()

    def gone(key):
        raise NoJobError("it has ended")

    monkeypatch.setattr(watched_job, "find_jobs", list)
    monkeypatch.setattr(watched_job, "choose_job", gone)
    monkeypatch.setattr(watched_job, "records_stamp", lambda: (1,))
    monkeypatch.setattr(looks_module, "LOOK_INTERVAL", 0.0)
    state = looks.state()
    assert state["ended"] and state["why"] == [] and [each["worker"] for each in state["workers"]] == ["a"]
