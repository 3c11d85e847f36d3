"""Rules of the Trace Event Format, as Perfetto's importer reads it: what breaks one is dropped there, or drawn wrong.

Perfetto's own ``trace_processor`` cannot be asked: its package on PyPI downloads the program when it is first used, and tests
need no network. So these are the rules that its importer has for JSON: the fields that each phase needs, slices of a thread
that nest, asynchronous slices that begin before they end, and arrows that join two slices.
"""

from collections import defaultdict

NEEDED = {
    "X": ("name", "ts", "dur", "pid", "tid"),
    "b": ("name", "cat", "id", "ts", "pid"),
    "e": ("name", "cat", "id", "ts", "pid"),
    "s": ("name", "cat", "id", "ts", "pid", "tid"),
    "f": ("name", "cat", "id", "ts", "pid", "tid", "bp"),
    "i": ("name", "ts", "pid", "s"),
    "C": ("name", "ts", "pid", "args"),
    "M": ("name", "pid", "args"),
}
ROUNDING = 0.002  # microseconds: times are floats of nanoseconds


def broken_rules(rows):
    """Yield a text for each row of a trace that breaks a rule."""
    for row in rows:
        lacking = lacks(row)
        if lacking or not isinstance(row.get("ts", 0), (int, float)) or row.get("ts", 0) < 0 or row.get("dur", 0) < 0:
            yield f"{row} lacks {lacking}, or its times are wrong"
    rows = [row for row in rows if not lacks(row)]
    yield from _not_nested(rows)
    yield from _not_paired(rows)
    yield from _arrows_without_slices(rows)


def lacks(row):
    """Return the fields that a row lacks."""
    return [name for name in NEEDED.get(row.get("ph"), ("a phase that is known",)) if name not in row]


def _not_nested(rows):
    threads = defaultdict(list)
    for row in rows:
        if row["ph"] == "X":
            threads[row["pid"], row["tid"]].append(row)
    for slices in threads.values():
        open_ends = []
        for row in sorted(slices, key=lambda row: (row["ts"], -row["dur"])):
            while open_ends and open_ends[-1] <= row["ts"] + ROUNDING:
                open_ends.pop()
            end = row["ts"] + row["dur"]
            if open_ends and end > open_ends[-1] + ROUNDING:
                yield f"{row} overlaps another slice of its thread"
            open_ends.append(end)


def _not_paired(rows):
    begun = {}
    for row in sorted((row for row in rows if row["ph"] in "be"), key=lambda row: (row["ts"], row["ph"])):
        key = (row["cat"], row["id"], row["pid"])
        if row["ph"] == "b":
            if key in begun:
                yield f"{row} begins twice"
            begun[key] = row
        elif key not in begun or begun.pop(key)["name"] != row["name"]:
            yield f"{row} ends what did not begin"
    yield from (f"{row} does not end" for row in begun.values())


def _arrows_without_slices(rows):
    begins, ends = defaultdict(list), defaultdict(list)
    for row in rows:
        if row["ph"] in "sf":
            (begins if row["ph"] == "s" else ends)[row["cat"], row["id"]].append(row)
    for key in begins.keys() | ends.keys():
        if (
            not begins[key]
            or not ends[key]
            or min(row["ts"] for row in begins[key]) > min(row["ts"] for row in ends[key])
        ):
            yield f"the arrow {key} has no begin before its end"
    for row in rows:
        if row["ph"] in "sf" and not any(_holds(other, row) for other in rows if other["ph"] == "X"):
            yield f"{row} is in no slice of its thread"


def _holds(slice_, row):
    same = (slice_["pid"], slice_["tid"]) == (row["pid"], row["tid"])
    return same and slice_["ts"] - ROUNDING <= row["ts"] <= slice_["ts"] + slice_["dur"] + ROUNDING
