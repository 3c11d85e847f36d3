"""Page of a job in a headless Chromium: its server, what it shows, and pictures of it."""

import os
import shutil
import socket
import threading
import time
import urllib.parse
from base64 import b64decode
from contextlib import contextmanager
from pathlib import Path

import pytest
from telegrad.launcher.dashboard.looks import JobLooks
from telegrad.launcher.watching import watched_job
from telegrad.rpc.observing import Observation, ObservedFrame, ObservedThread

TOKEN = "secret"
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,900")
PICTURES = os.environ.get("TELEGRAD_PICTURES", "")  # a folder in which the tests leave their pictures


@contextmanager
def chromium(*options):
    """Yield a driver of a browser; skip the test where there is none."""
    exceptions = pytest.importorskip(
        "selenium.common.exceptions", reason="selenium is not installed: pip install selenium"
    )
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: pip install selenium")
    if not (CHROMIUM and DRIVER):
        pytest.skip("Chromium is not installed: apt-get install chromium chromium-driver")
    settings = webdriver.ChromeOptions()
    settings.binary_location = CHROMIUM
    for each in (*OPTIONS, *options):
        settings.add_argument(each)
    settings.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    try:
        driver = webdriver.Chrome(options=settings, service=webdriver.ChromeService(DRIVER))
    except exceptions.WebDriverException as error:
        pytest.skip(f"Chromium does not start here: {error.msg}")
    try:
        yield driver
    finally:
        driver.quit()


@contextmanager
def served(looks, allow_actions=False):
    """Serve the page of a job, and yield its address."""
    server = pytest.importorskip("telegrad.launcher.dashboard.server", reason="pip install starlette uvicorn")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        running = server.make_server(looks, TOKEN, [host], allow_actions)
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://{host}/?token={TOKEN}"
        finally:
            running.should_exit = True
            thread.join(20)
            looks.close()


def place_of(address):
    """Return host and port of an address."""
    found = urllib.parse.urlsplit(address)
    return found.hostname, found.port


# -- what the page shows


def text_of(browser, place):
    return browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", place)


def shows(browser, place, words, seconds=30):
    """Wait until the text of a part of the page has some words."""
    deadline = time.monotonic() + seconds
    while words not in (found := text_of(browser, place)):
        assert time.monotonic() < deadline, f"{place} shows {found[:500]!r}, not {words!r}"
        time.sleep(0.05)


def open_view(browser, name):
    browser.execute_script(f"document.getElementById('tab-{name}').click()")


def count_of(browser, selector):
    return browser.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def no_errors(browser):
    return [each["message"] for each in browser.get_log("browser") if each["level"] == "SEVERE"]


def leave(browser):
    """Leave the page: it asks no more, and what it complained of is forgotten."""
    browser.get("about:blank")
    browser.get_log("browser")


def fits(browser):
    """Return whether the page is not wider than its window."""
    return browser.execute_script("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@contextmanager
def screen(browser, width=1400, height=900, dark=False):
    """Show the page on a screen of that size and those colors."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    colors = {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", colors)
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def picture(browser, folder, name, part=None):
    """Write a picture of the page to a folder, or to that of ``TELEGRAD_PICTURES``; of a narrow one, down to its end.

    Args:
        browser: the browser.
        folder: where to write it.
        name: of the file, without its ending.
        part: selector of the only part that is wanted.
    """
    width, height, end = browser.execute_script(
        "return [innerWidth, innerHeight, document.documentElement.scrollHeight]"
    )
    clip = {"x": 0, "y": 0, "width": width, "height": min(end, 2400) if width < 600 else height, "scale": 1}
    if part is not None:
        box = browser.execute_script(
            "return document.querySelector(arguments[0]).getBoundingClientRect().toJSON()", part
        )
        clip |= {key: box[key] for key in ("x", "y", "width", "height")}
    options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    data = b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"])
    place = Path(PICTURES or folder)
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.png").write_bytes(data)


# -- a job that is not there


class Worker:
    """Record of a worker, as ``jobs`` finds it."""

    def __init__(self, name, log=""):
        self.worker, self.log, self.program, self.folder = name, log, "train.py", "/home/user"
        self.stem, self.joined, self.world_size, self.process_id = name, True, 0, 1 << 23

    @property
    def record(self):
        return self


class Job:
    key = "ab12"

    def __init__(self, names, logs):
        self.began = time.time() - 75.0
        self.workers = [Worker(name, logs.get(name, "")) for name in names]

    def worker(self, name):
        return next((each for each in self.workers if each.worker == name), None)


def observed(name, rank, **attributes):
    place = ObservedFrame("/home/user/train.py", 7, "step")
    thread = ObservedThread(1, "MainThread", [place], main=True, at=place)
    return Observation(name, rank, rank, host="h", totals={"calls": 0}, threads=[thread], **attributes)


def looks_at(monkeypatch, seen, logs=None):
    """Return the looks at a job whose workers are observed so."""
    job = Job([each.worker for each in seen], logs or {})
    monkeypatch.setattr(watched_job, "find_jobs", lambda: [job])

    def observe(job, timeout, names=(), *_):
        return [each for each in seen if not names or each.worker in names]

    monkeypatch.setattr(watched_job, "observe_job", observe)
    return JobLooks(job, 1.0)
