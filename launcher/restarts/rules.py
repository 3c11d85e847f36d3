"""Rules of restarts: what is started again when a worker fails, and how often. The policies are Erlang's strategies."""

import enum
from dataclasses import dataclass
from types import NoneType

from ...base.arguments import check_type

DEFAULT_MOST = 10
"""Restarts within ``DEFAULT_WITHIN_SECONDS`` without ``--max-restarts``; for each worker, where they are restarted singly."""

DEFAULT_WITHIN_SECONDS = 600.0


class RestartPolicy(enum.Enum):
    """Answer to a worker's failure.

    ``NEVER`` ends the job. ``ONE`` starts that worker again (Erlang's one_for_one). ``REST`` also ends those of a higher rank
    that still run, and starts them again (rest_for_one). ``ALL`` ends all, and starts all again with a new rendezvous
    (one_for_all).
    """

    NEVER = "never"
    ONE = "one"
    REST = "rest"
    ALL = "all"

    @property
    def single(self) -> bool:
        """Return whether other workers go on meanwhile."""
        return self in (RestartPolicy.ONE, RestartPolicy.REST)


@dataclass(frozen=True)
class RestartRules:
    """Rules for one job.

    Args:
        policy: of workers whose role has none of its own.
        roles: roles, each with its policy.
        most: how often the job restarts workers at most; None for ten times in ten minutes.
        within: seconds in which these count; None for the whole job.

    Raises:
        ValueError: a number is not possible.
    """

    policy: RestartPolicy = RestartPolicy.NEVER
    roles: tuple[tuple[str, RestartPolicy], ...] = ()
    most: int | None = None
    within: float | None = None

    def __post_init__(self) -> None:
        check_type("most", self.most, (int, NoneType), "a whole number")
        if self.most is not None and self.most < 0:
            raise ValueError(f"--max-restarts must be 0 or more, you gave {self.most}")
        if self.within is not None and self.most is None:
            raise ValueError("--within says in which time --max-restarts counts: give --max-restarts, too")
        if self.within is not None and not self.within > 0:
            raise ValueError(f"--within must be a number of seconds above 0, you gave {self.within:g}")

    def of(self, role: str) -> RestartPolicy:
        """Return the policy of a role."""
        return dict(self.roles).get(role, self.policy)

    @property
    def policies(self) -> set[RestartPolicy]:
        """All policies that the job has."""
        return {self.policy, *(policy for _, policy in self.roles)}

    @property
    def widest(self) -> RestartPolicy:
        """Policy that tells a worker what can happen to its peers: that some come back while it goes on counts most."""
        order = (RestartPolicy.ONE, RestartPolicy.REST, RestartPolicy.ALL, RestartPolicy.NEVER)
        return next(policy for policy in order if policy in self.policies)

    def limit(self, workers: int) -> tuple[int, float | None]:
        """Return how many restarts a job of so many workers may have, and within how many seconds; None if in all."""
        if self.most is not None:
            return self.most, self.within
        return DEFAULT_MOST * (workers if self.widest.single else 1), DEFAULT_WITHIN_SECONDS

    def __str__(self) -> str:
        """Return them as ``--restart`` and its companions state them."""
        policies = [self.policy.value] * (not self.roles or self.policy is not RestartPolicy.NEVER)
        text = ",".join([*policies, *(f"{role}={policy.value}" for role, policy in self.roles)])
        most = "" if self.most is None else f" --max-restarts {self.most}"
        return text + most + ("" if self.within is None else f" --within {self.within:g}")


NO_RESTARTS = RestartRules()


def parse_restarts(restart: str | None, most: int | None, within: float | None) -> RestartRules:
    """Return the rules that the options state.

    Args:
        restart: ``--restart``: a policy, roles with their policies (``ps=never,trainer=one``), or both; None without.
        most: ``--max-restarts``; None without. Without ``--restart`` it restarts all workers, as torchrun does.
        within: ``--within``; None without.

    Raises:
        ValueError: they cannot be read, or disagree.
    """
    if restart is None:
        return RestartRules(RestartPolicy.ALL if most else RestartPolicy.NEVER, most=most, within=within)
    general, roles = RestartPolicy.NEVER, {}
    for part in restart.split(","):
        role, equals, word = (each.strip() for each in part.rpartition("="))
        policy = _policy(word, restart)
        if equals and (not role or role in roles):
            raise ValueError(
                f"cannot read --restart {restart!r}: write each role once, for example ps=never,trainer=one"
            )
        if equals:
            roles[role] = policy
        else:
            general = policy
    rules = RestartRules(general, tuple(roles.items()), most, within)
    if most and rules.policies == {RestartPolicy.NEVER}:
        raise ValueError(f"--restart {restart} and --max-restarts {most} disagree: leave one of them out")
    return rules


def _policy(word: str, text: str) -> RestartPolicy:
    try:
        return RestartPolicy(word)
    except ValueError:
        raise ValueError(
            f"cannot read --restart {text!r}: write one of {', '.join(each.value for each in RestartPolicy)}, or a role with "
            "one of them, for example ps=never,trainer=one"
        ) from None
