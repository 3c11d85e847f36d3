"""Job of actors, as Ray's driver sees it: places them, certifies their keys, shows their output, ends all when one fails."""

import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..environment import LOOPBACK_ADDRESS
from ..nodes.assignment import Placement
from ..nodes.outcome import VERDICT_SECONDS, Outcome, Outcomes
from ..spec import JobSpec
from .ray_worker import Certified, RayWorker, Spot

CALL_SECONDS = 60.0
WAIT_SECONDS = 1.0


class RayJob:
    """Job whose workers Ray places, each on one core. ``ray`` is connected to its cluster.

    Args:
        ray: the package.
        spec: the job; its folder for logs is given.
        folder: in which the workers run.
        timeout: seconds in which Ray must have placed all.
    """

    def __init__(self, ray: Any, spec: JobSpec, folder: str, timeout: float) -> None:
        self._ray = ray
        self._spec = spec
        self._timeout = timeout
        self._group = ray.util.placement_group([{"CPU": 1}] * len(spec.workers), strategy="PACK")
        where = ray.util.scheduling_strategies.PlacementGroupSchedulingStrategy(self._group)
        make = ray.remote(RayWorker).options(num_cpus=1, max_concurrency=2, scheduling_strategy=where).remote
        self._actors = [make(folder) for _ in spec.workers]
        self._outcomes = Outcomes([(name,) for name in spec.workers])
        self._reading: dict[Any, int] = {}  # the rank whose next lines a reference stands for
        self._give_up_at: float | None = None

    def start(self) -> None:
        """Wait until all actors are placed, and start their workers.

        Raises:
            ValueError: Ray cannot place them, or the machines have different versions.
        """
        spots = self._spots()
        apart = len({spot.machine for spot in spots}) > 1
        hosts = [spot.host if apart else LOOPBACK_ADDRESS for spot in spots]
        prepared = self._call(lambda rank: self._actors[rank].prepare.remote(hosts[rank]))
        parts = placements(spots, hosts, prepared[0][0], self._spec.workers)
        shown = certificates([public for _, public in prepared]) if apart else [None] * len(parts)
        secret = secrets.token_hex(32)
        own = [replace(self._spec, workers=(name,), preload=False) for name in self._spec.workers]
        self._call(lambda rank: self._actors[rank].start.remote(own[rank], parts[rank], secret, shown[rank]))
        self._reading = {actor.read.remote(): rank for rank, actor in enumerate(self._actors)}

    def follow(self) -> tuple[int, Outcome] | None:
        """Show what the workers write until all have ended; return the one whose failure caused the others', and its end."""
        while self._reading and (self._give_up_at is None or time.monotonic() < self._give_up_at):
            ready, _ = self._ray.wait(list(self._reading), timeout=WAIT_SECONDS)
            for reference in ready:
                self._read(self._reading.pop(reference), reference)
        return self._outcomes.verdict()

    def end(self, reason: str) -> None:
        """Ask all workers to end."""
        self._give_up_at = self._give_up_at or time.monotonic() + self._spec.grace + VERDICT_SECONDS
        for rank in self._reading.values():
            self._actors[rank].end.remote(reason)

    def close(self) -> None:
        """End the actors; a worker that still runs is killed."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._ray.util.remove_placement_group(self._group)

    def _spots(self) -> list[Spot]:
        """Wait until all actors are placed; put them into the order of their ranks, and return where they are."""
        if not self._group.wait(self._timeout):
            cores, free = (
                found.get("CPU", 0) for found in (self._ray.cluster_resources(), self._ray.available_resources())
            )
            raise ValueError(
                f"Ray did not place {len(self._actors)} workers of one core each within {self._timeout:g} s, {free:g} of its "
                f"{cores:g} cores are free: start fewer, or add machines"
            )
        spots = self._call(lambda rank: self._actors[rank].spot.remote())
        if len(versions := {spot.version for spot in spots}) > 1:
            raise ValueError(f"the machines have telegrad {' and '.join(sorted(versions))}; install the same on all")
        machines = [spot.machine for spot in spots]
        # Ranks are blocks, so that neighbours in rank share a machine.
        order = sorted(range(len(spots)), key=lambda place: machines.index(machines[place]))
        self._actors = [self._actors[place] for place in order]
        return [spots[place] for place in order]

    def _call(self, call: Callable[[int], Any]) -> list[Any]:
        references = [call(rank) for rank in range(len(self._actors))]
        try:
            return self._ray.get(references, timeout=CALL_SECONDS)
        except self._ray.exceptions.RayError as error:
            raise ValueError(f"an actor of Ray did not start: {error}") from error

    def _read(self, rank: int, reference: Any) -> None:
        try:
            said = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            said = Outcome(1, f"the actor of {self._spec.workers[rank]} is gone, or its machine ({error})", gone=True)
        if isinstance(said, str):
            sys.stdout.write(said)
            sys.stdout.flush()
            self._reading[self._actors[rank].read.remote()] = rank
            return
        self._outcomes.add(rank, said)
        if said.exit_code and self._give_up_at is None:
            self.end(said.cause)


def placements(spots: list[Spot], hosts: list[str], port: int, workers: tuple[str, ...]) -> list[Placement]:
    """Return the part of each worker, in order of rank.

    Args:
        spots: where Ray has placed them.
        hosts: where others reach them.
        port: rank 0's.
        workers: their names.
    """
    mates: dict[str, list[int]] = {}  # ranks by machine
    for rank, spot in enumerate(spots):
        mates.setdefault(spot.machine, []).append(rank)
    machines = list(mates)
    return [
        Placement(
            node=machines.index(spot.machine),
            nodes=len(machines),
            workers=(workers[rank],),
            first_rank=rank,
            world_size=len(workers),
            master_host=hosts[0],
            master_port=port,
            host=hosts[rank],
            local_rank=mates[spot.machine].index(rank),
            local_size=len(mates[spot.machine]),
        )
        for rank, spot in enumerate(spots)
    ]


def certificates(publics: list[bytes]) -> list[Certified]:
    """Return a certificate for each worker's public key, of an authority whose key stays in this call."""
    from ...rpc.certificates import Authority

    authority = Authority(f"job-{secrets.token_hex(8)}.telegrad")
    return [
        Certified(authority.certify(f"rank{rank}", public), authority.certificate)
        for rank, public in enumerate(publics)
    ]
