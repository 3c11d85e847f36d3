"""The page of a job in a browser: what it draws, with hostile names, and which keys work."""

import math
from dataclasses import asdict, replace
from functools import partial

import pytest
from helpers.browser import (
    count_of,
    fits,
    looks_at,
    no_errors,
    observed,
    open_view,
    served,
    shows,
    text_of,
)
from telegrad.launcher.dashboard import profiles
from telegrad.rpc.observing import Observation, ObservedFrame, ObservedThread, SampledStacks
from telegrad.rpc.observing.records import (
    ObservedCall,
    ObservedContext,
    ObservedEdge,
    ObservedLink,
    ObservedLoop,
    ObservedNodes,
    ObservedPass,
    ObservedReference,
    ObservedRequest,
    ObservedSeries,
)

MARKUP = "<img src=x onerror=document.title='attacked'><script>document.title='attacked'</script>"


@pytest.fixture
def look(monkeypatch):
    return partial(looks_at, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 32, 200])
def test_workers_are_drawn(browser, look, count):
    link = ObservedLink("w1", "connected", "unix", 0, 0, 0, 0, 0)
    looks = look([observed(f"w{rank}", rank, links=[link] if rank == 0 else []) for rank in range(count)])
    with served(looks) as address:
        browser.get(address)
        shows(browser, "#job", f"{count} workers")
        shows(browser, "#view", "w0")
        assert count_of(browser, "#graph circle") == count and fits(browser)
        assert no_errors(browser) == []


def hostile():
    """Return an observation in which every text is markup."""
    frame = ObservedFrame(MARKUP, 1, MARKUP)
    part = ObservedPass(
        MARKUP, 1, "works", 2, 1, MARKUP, MARKUP, [ObservedNodes(MARKUP, 2, 1)], [ObservedEdge(MARKUP, 1, 0, 1, 1)]
    )
    reference = ObservedReference(MARKUP, MARKUP, MARKUP, 5, True, [MARKUP])
    return observed(
        MARKUP,
        0,
        process_state=MARKUP,
        python=MARKUP,
        calls=[ObservedCall(1, MARKUP, MARKUP, 3.0, 0.0, MARKUP)],
        requests=[ObservedRequest(MARKUP, 0, 1, MARKUP, MARKUP, False)],
        owned=[reference],
        held=[reference],
        contexts=[ObservedContext(1, MARKUP, [MARKUP], [part])],
        links=[ObservedLink(MARKUP, MARKUP, MARKUP, 0, 1, 0, 0, 0)],
        logged=[ObservedSeries(MARKUP, 2, 1, 0.5, 0.1, [0, 1], [1.0, 0.5])],
        loops=[ObservedLoop(MARKUP, 1, 2, 1.0, 1.0, False)],
        shutdown_waits=[MARKUP],
        in_shutdown=True,
    ), ObservedThread(1, MARKUP, [frame], main=True, at=frame)


@pytest.mark.slow
def test_texts_of_programs_are_never_markup(browser, look, monkeypatch, tmp_path):
    (tmp_path / "log").write_text(MARKUP)
    seen, thread = hostile()
    samples = SampledStacks(MARKUP, 0.0, 1.0, [0.0], [MARKUP], thread.stack, [[0]], [[0, 0, 0, 1]])
    monkeypatch.setattr(profiles, "names_of", lambda job, timeout: [MARKUP, MARKUP])
    answers = [asdict(samples), {"error": MARKUP}]
    monkeypatch.setattr(profiles, "question", lambda *_: answers.pop())
    with served(look([replace(seen, host=MARKUP, threads=[thread])], {MARKUP: str(tmp_path / "log")})) as address:
        browser.get(address)
        shows(browser, "#view", MARKUP)
        shows(browser, "#why", MARKUP)
        for view in ("Calls", "References", "Contexts", "Curves", "Log", "Stacks"):
            open_view(browser, view)
            shows(browser, "#view", MARKUP)
        open_view(browser, "Flames")
        browser.find_element("css selector", "#view button").click()
        shows(browser, "#profile", "img src=x")
        assert text_of(browser, "title") != "attacked" and browser.title != "attacked"
        assert count_of(browser, "main img, main script") == 0
        browser.get(address.replace("/?", "/perfetto?") + "&profile=1")
        shows(browser, "#about", "2 workers")
        assert no_errors(browser) == []


@pytest.mark.slow
def test_numbers_that_are_none_are_left_out(browser, look):
    seen = observed("w", 0, cpu_seconds=math.nan, memory_bytes=-5, pool_busy=-1, calls_made=1 << 80)
    seen = replace(seen, logged=[ObservedSeries("loss", 2, 1, math.inf, 0.1, [0, 1, 2], [math.nan])])
    with served(look([seen])) as address:
        browser.get(address)
        shows(browser, "#view", "w")
        for view in ("Calls", "References", "Contexts", "Curves", "Stacks", "Workers"):
            open_view(browser, view)
        assert text_of(browser, "#status") == "" and no_errors(browser) == []


@pytest.mark.slow
def test_a_lost_worker_is_marked_and_keys_work(browser, look):
    from selenium.webdriver.common.keys import Keys

    lost = Observation("w1", 1, 1, error="it is lost: its process ended")
    with served(look([observed("w0", 0), lost])) as address:
        browser.get(address)
        shows(browser, "#view", "it is lost")
        assert count_of(browser, "#graph circle.bad") == 1
        browser.find_element("id", "tab-Workers").send_keys(Keys.ARROW_RIGHT)
        assert browser.switch_to.active_element.get_attribute("id") == "tab-Calls"
        browser.switch_to.active_element.send_keys(Keys.ARROW_LEFT)
        before = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        browser.find_element("id", "theme").send_keys(Keys.ENTER)
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") != before
        assert no_errors(browser) == []
