"""Calls by which the workers of a script meet, and what has to be arranged outside of it: secrets, device maps."""

from __future__ import annotations

import libcst as cst
from libcst.helpers import get_full_name_for_node

LOCAL = ("localhost", "127.0.0.1", "::1")
TCP = "tcp://"
LOCAL_TCP = ("tcp://localhost", "tcp://127.0.0.1", "tcp://[::1]")
SECRET = (
    "workers on several hosts share a secret: start them with `telegrad run`, or give each the same TELEGRAD_SECRET "
    "(docs/hosts.md)"
)
DEVICES = "tensors stay on the CPU, also in messages: leave device maps and devices out"


class Jobs:
    """Says of each call and assignment what it needs beside a change of imports.

    Args:
        devices: tensors may be on other devices than the CPU.
    """

    def __init__(self, devices: bool) -> None:
        self._devices = devices

    def assigned(self, target: cst.BaseExpression, value: cst.BaseExpression) -> str | None:
        """Return what the address in ``os.environ["MASTER_ADDR"] = "10.0.0.1"`` needs; ``None`` for nothing."""
        return _of_address(_index(target), value) if isinstance(target, cst.Subscript) else None

    def called(self, call: cst.Call) -> str | None:
        """Return what a call needs; ``None`` for nothing."""
        name = (get_full_name_for_node(call.func) or "").rpartition(".")[2]
        given = {get_full_name_for_node(arg.keyword): arg.value for arg in call.args if arg.keyword}
        if not self._devices and (name in ("set_device_map", "set_devices") or "device_maps" in given):
            return DEVICES
        if name == "setdefault" and len(call.args) == 2:
            return _of_address(call.args[0].value, call.args[1].value)
        method = _beginning(given.get("init_method"))
        return SECRET if method.startswith(TCP) and not method.startswith(LOCAL_TCP) else None


def _of_address(name: cst.BaseExpression | None, value: cst.BaseExpression) -> str | None:
    return SECRET if _beginning(name) == "MASTER_ADDR" and _beginning(value) not in LOCAL else None


def _index(target: cst.Subscript) -> cst.BaseExpression | None:
    inside = target.slice[0].slice
    return inside.value if isinstance(inside, cst.Index) else None


def _beginning(node: cst.CSTNode | None) -> str:
    """Return the text of a string, or of an f-string until its first expression; empty for any other node."""
    if isinstance(node, cst.FormattedString):
        first = next(iter(node.parts), None)
        return first.value if isinstance(first, cst.FormattedStringText) else ""
    text = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
    return text if isinstance(text, str) else ""
