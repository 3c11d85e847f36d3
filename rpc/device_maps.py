"""Device maps: on which device of a worker the arrays of a device here arrive (PyTorch's option ``device_maps``).

A request takes the map that its sender has for the receiver. A reply takes the same map, backwards: so an argument that comes
back is where it was. Arrays of devices without an entry arrive in the receiver's host memory. Only names are here: the adapters
of the libraries know the devices (``wire/libraries/``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.errors import ArgumentKindError, ArgumentValueError
from ..proto.rpc_pb2 import DeviceMap

if TYPE_CHECKING:
    from ..proto.rpc_pb2 import WorkerRecord

HOST = "cpu"
DeviceMaps = dict[str, dict[str, str]]  # by name of the worker that the arrays are sent to: device there by device here


class PeerDevices(NamedTuple):
    """Devices of arrays that are sent to one worker: the device there by the device here."""

    of_requests: Mapping[str, str]
    of_replies: Mapping[str, str]


NO_DEVICES = PeerDevices({}, {})


def device_name(device: Any) -> str:
    """Return a device's name as maps have it, such as ``"cuda:0"`` or ``"cpu"``.

    >>> device_name(1), device_name("cuda"), device_name("cpu")
    ('cuda:1', 'cuda:0', 'cpu')

    Args:
        device: a name, the number of a GPU, or an object such as ``torch.device`` whose text is a name.

    Raises:
        ArgumentKindError: it is none of them.
        ArgumentValueError: the number is negative, or no number.
    """
    if isinstance(device, bool) or device is None:
        raise ArgumentKindError(f"a device is a name such as 'cuda:0', or the number of a GPU; you gave {device!r}")
    kind, colon, index = (f"cuda:{device}" if isinstance(device, int) else str(device)).partition(":")
    if not kind or (colon and not index.isdecimal()):
        raise ArgumentValueError(f"a device is a name such as 'cuda:0', or the number of a GPU; you gave {device!r}")
    return kind if kind == HOST and not colon else f"{kind}:{int(index or 0)}"


def add_to_map(maps: DeviceMaps, to: str, given: Mapping[Any, Any]) -> None:
    """Add devices to the map for a worker.

    Args:
        maps: all maps of this worker.
        to: name of the other worker.
        given: the device there by the device here.

    Raises:
        ArgumentKindError, ArgumentValueError: a device has no name; or two devices here would be one there, so that a reply
            could not tell them apart.
    """
    if not isinstance(to, str) or not isinstance(given, Mapping):
        raise ArgumentKindError(f"device_maps is, by name of a worker, a map of devices; you gave {to!r}: {given!r}")
    wanted = {**maps.get(to, {}), **{device_name(here): device_name(there) for here, there in given.items()}}
    taken: dict[str, str] = {}
    for here, there in wanted.items():
        if (other := taken.setdefault(there, here)) != here:
            raise ArgumentValueError(
                f"device_maps[{to!r}] maps both {other!r} and {here!r} to {there!r}; give each device here one of its own "
                f"there, because replies take the map backwards"
            )
    maps[to] = wanted


def check_workers(maps: DeviceMaps, own: str, names: Collection[str]) -> None:
    """Check that maps are for workers of the job.

    Args:
        maps: all maps of a worker.
        own: name of that worker.
        names: names of all workers.

    Raises:
        ArgumentValueError: one is not.
    """
    if unknown := sorted(maps.keys() - names):
        raise ArgumentValueError(
            f"worker {own!r} has device_maps for {unknown}, which are no workers of the job; its workers are {sorted(names)}"
        )


def encode_maps(maps: DeviceMaps) -> list[DeviceMap]:
    """Return maps as they stand in a worker's record."""
    return [DeviceMap(to=to, here=given.keys(), there=given.values()) for to, given in maps.items()]


def between(me: WorkerRecord, peer: WorkerRecord) -> PeerDevices:
    """Return the devices of what ``me`` sends to ``peer``."""
    if not (me.device_maps or peer.device_maps):
        return NO_DEVICES
    back = _map_for(me.name, peer.device_maps)
    return PeerDevices(_map_for(peer.name, me.device_maps), {there: here for here, there in back.items()})


def _map_for(name: str, maps: Iterable[DeviceMap]) -> dict[str, str]:
    return next((dict(zip(each.here, each.there)) for each in maps if each.to == name), {})
