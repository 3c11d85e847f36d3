"""Profiles on the page: a real job is sampled, drawn, downloaded, and given to a stand-in of Perfetto's page."""

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from helpers.browser import (
    chromium,
    count_of,
    fits,
    no_errors,
    open_view,
    picture,
    screen,
    served,
    shows,
    text_of,
)
from helpers.certificates import authority, tls_files
from helpers.launched import read_until
from helpers.threads import until
from telegrad.launcher.dashboard.looks import JobLooks
from telegrad.launcher.watching.jobs import choose_job

pytestmark = pytest.mark.slow
PROGRAM = """
import time
from pathlib import Path
from telegrad import rpc

def compute(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        inner(1000)

def inner(count):
    return sum(range(count))

rpc.init_rpc()
if rpc.get_worker_info().id == 0:
    calls = [rpc.rpc_async("worker1", compute, args=(0.5,))]
    print("begun", flush=True)
    while not Path("end").exists():
        rpc.rpc_sync("worker1", compute, args=(0.1,))
rpc.shutdown()
"""
# What Perfetto's page does with messages, as its documentation says.
STAND_IN = b"""<!doctype html><title>waits</title><script>
addEventListener("message", (event) => {
  if (event.data === "PING") return event.source.postMessage("PONG", event.origin);
  const {buffer, title} = event.data.perfetto;
  window.given = new TextDecoder().decode(buffer);
  document.title = title + " from " + event.origin;
});
</script>"""


@pytest.fixture(scope="module")
def perfetto(tmp_path_factory):
    """The port of a server that stands in for ui.perfetto.dev."""
    files = tls_files(tmp_path_factory.mktemp("tls"), authority(), "perfetto")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(files.certificate, files.key)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(STAND_IN)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(20)


@pytest.fixture(scope="module")
def driver(perfetto):
    rules = f"--host-resolver-rules=MAP ui.perfetto.dev:443 127.0.0.1:{perfetto}"
    with chromium(rules, "--ignore-certificate-errors") as found:
        yield found


def look_at_tab(browser, number):
    """Look at the tab of that number, when it is there."""
    until(lambda: len(browser.window_handles) > number)
    browser.switch_to.window(browser.window_handles[number])


def test_a_profile_is_drawn_downloaded_and_given_to_perfetto(browser, here, job, tmp_path):
    downloads = tmp_path / "downloads"
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)})
    process = job(PROGRAM, "-n", "2")
    read_until(process, 1, "begun")
    with served(JobLooks(choose_job(), 2.0)) as address:
        browser.get(address)
        shows(browser, "#view", "worker1")
        open_view(browser, "Flames")
        browser.execute_script("document.querySelector('select[aria-label=Seconds]').value = '1'")
        browser.find_element("css selector", "#view button").click()
        shows(browser, "#profile", "samples of 2 workers")
        texts = text_of(browser, ".flame")
        assert "compute script.py" in texts and "inner script.py" in texts and count_of(browser, ".flame rect") > 5
        browser.find_element("id", "by-worker").click()
        assert "worker1: " in text_of(browser, ".flame")
        for name, size in {"light": {}, "dark": {"dark": True}, "narrow": {"width": 390, "height": 844}}.items():
            with screen(browser, **size):
                assert fits(browser)
                picture(browser, tmp_path, f"flames_{name}")
        picture(browser, tmp_path, "flames", "#view")

        folded, trace, link = browser.find_elements("css selector", "#profile .bar > *")
        folded.click(), trace.click()
        until(lambda: len(list(downloads.glob("telegrad-*[0-9].*"))) == 2 and not list(downloads.glob("*.crdownload")))
        lines = next(downloads.glob("*.folded")).read_text().splitlines()
        counts = {line.rpartition(" ")[0]: int(line.rpartition(" ")[2]) for line in lines}
        assert any(key.startswith("worker1;telegrad-worker1-") and ";inner (" in key for key in counts)
        assert 20 <= max(counts.values()) <= 110, "about 100 looks a second"
        events = json.loads(next(downloads.glob("*.json")).read_text())["traceEvents"]
        check_trace(events)

        assert link.get_attribute("rel") == "noopener noreferrer"
        link.click()
        look_at_tab(browser, 1)
        shows(browser, "#about", "2 workers")
        picture(browser, tmp_path, "perfetto_asks")
        browser.find_element("id", "open").click()
        shows(browser, "#status", "has the profile")
        look_at_tab(browser, 2)
        until(lambda: "from http://127.0.0.1:" in browser.title)
        assert json.loads(browser.execute_script("return window.given"))["traceEvents"] == events
        assert browser.execute_script("return document.referrer") == ""
        for _ in range(2):
            browser.close()
            browser.switch_to.window(browser.window_handles[-1])
        assert no_errors(browser) == []
    (tmp_path / "end").touch()
    assert process.wait(30) == 0


def check_trace(events):
    """Check that a function's time lies in that of its caller, and the times are of now."""
    names = {(each["pid"], each["args"]["name"]) for each in events if each["ph"] == "M"}
    assert {(1, "worker0"), (2, "worker1")} <= names
    slices = [each for each in events if each["ph"] == "X" and each["pid"] == 2]
    assert abs(min(each["ts"] for each in slices) / 1e6 - time.time()) < 100
    callers = [each for each in slices if each["name"] == "compute"]
    for each in (each for each in slices if each["name"] == "inner"):
        assert any(
            caller["tid"] == each["tid"]
            and caller["ts"] <= each["ts"]
            and each["ts"] + each["dur"] <= caller["ts"] + caller["dur"] + 1
            for caller in callers
        )


def test_other_sites_cannot_open_the_page_for_perfetto_without_the_token(browser, here, job, tmp_path):
    process = job(PROGRAM, "-n", "2")
    read_until(process, 1, "begun")
    with served(JobLooks(choose_job(), 2.0)) as address:
        place = address.partition("/?")[0]
        browser.get(f"{place}/perfetto?profile=1")
        assert "token is missing" in text_of(browser, "body")
        browser.get(f"{place}/perfetto?{address.partition('?')[2]}&profile=99")
        shows(browser, "#about", "profile 99 is not kept")
        browser.get_log("browser")
    (tmp_path / "end").touch()
    assert process.wait(30) == 0
