"""``StateShards``: the optimizer's state, of which each member has a part (ZeRO), and which moves when the members change.

A step is taken before it counts, so that nothing of it depends on a member that is lost afterwards: those that have a
parameter's state compute its new value and state, and put the old ones back; all get the new values with the gradients' sums.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...core import Tensor
from ...core.extend import Array
from ...optim import Optimizer
from ..arrays import fill, flat
from ..group import ProcessGroup

ParameterState: TypeAlias = dict[str, Any]


class ShardedStep(NamedTuple):
    """Step that all members have computed together, by the parameters' places.

    Attributes:
        values: of all parameters that change.
        states: new states of those parameters whose state this member has.
        known: places of all parameters that have a state then.
    """

    values: dict[int, Array]
    states: dict[int, ParameterState]
    known: set[int]


class StateShards:
    """States of an optimizer's parameters, each of which some members have.

    Args:
        optimizer: its ``step()`` leaves out parameters without a gradient, and treats each parameter for itself.
        parameters: all, in the same order on all members.
        copies: how many members have the state of each parameter.
    """

    def __init__(self, optimizer: Optimizer, parameters: Sequence[Tensor], copies: int) -> None:
        self._optimizer = optimizer
        self._parameters = parameters
        self._copies = copies
        self._known: set[int] = set()  # places of the parameters that have a state

    def owners(self, members: int) -> list[list[int]]:
        """Return for each parameter the indices of the members that have its state; all have about as many elements."""
        loads = [0] * members
        found: list[list[int]] = [[] for _ in self._parameters]
        for place in sorted(range(len(found)), key=lambda place: -self._parameters[place].numel()):
            found[place] = sorted(range(members), key=loads.__getitem__)[: self._copies]
            for index in found[place]:
                loads[index] += self._parameters[place].numel()
        return found

    def hand_over(self, group: ProcessGroup, leaves: bool) -> None:
        """Give states that only members have which leave to others; on all members, between two steps."""
        held = self._held()
        told = group.all_gather(group.begin("elastic leaving", None), [sorted(held), leaves])
        staying = [index for index, (_, goes) in enumerate(told) if not goes]
        sent: list[dict[int, ParameterState]] = [{} for _ in told]
        for place in held if staying else ():
            having = [index for index, (places, _) in enumerate(told) if place in places]
            if having[0] == group.index and not {*having}.intersection(staying):
                sent[staying[place % len(staying)]][place] = dict(self._optimizer.state[self._parameters[place]])
        self._install(group.all_to_all(group.begin("elastic states", None), sent))

    def _held(self) -> set[int]:
        return {place for place, parameter in enumerate(self._parameters) if self._optimizer.state.get(parameter)}

    def _install(self, parts: Sequence[dict[int, ParameterState]]) -> None:
        held = self._held()
        for place, state in ((place, state) for part in parts for place, state in part.items()):
            if place not in held:
                self._optimizer.state[self._parameters[place]] = dict(state)

    def move(self, group: ProcessGroup) -> int:
        """Bring states to the members of a new generation that should have them.

        Returns:
            How many parameters have lost their state with all members that had it.
        """
        told = group.all_gather(group.begin("elastic shards", None), [sorted(self._held()), sorted(self._known)])
        have = [set(places) for places, _ in told]
        self._known = set().union(*have, *(places for _, places in told))
        if lost := self._known.difference(*have):
            return len(lost)
        owners = self.owners(group.size())
        sent: list[dict[int, ParameterState]] = [{} for _ in range(group.size())]
        for place in sorted(self._known):
            if min(index for index, places in enumerate(have) if place in places) == group.index:
                for index in owners[place]:
                    if place not in have[index]:
                        sent[index][place] = dict(self._optimizer.state[self._parameters[place]])
        self._install(group.all_to_all(group.begin("elastic states", None), sent))
        return 0

    def compute(self, group: ProcessGroup) -> ShardedStep:
        """Take a step with the gradients in ``.grad``, on all members, and put everything back."""
        owners = self.owners(group.size())
        mine = {place for place, indices in enumerate(owners) if group.index in indices}
        values, states = self._step_of(mine)
        sent = {place: value for place, value in values.items() if owners[place][0] == group.index}
        told = group.all_gather(group.begin("elastic step", None), [sent, [place for place in states if states[place]]])
        known = set().union(*(places for _, places in told))
        return ShardedStep({place: value for part, _ in told for place, value in part.items()}, states, known)

    def commit(self, step: ShardedStep) -> None:
        """Let a step count: all members have computed it. States that other members have now are dropped."""
        for place, value in step.values.items():
            fill(self._parameters[place], value)
        for place, parameter in enumerate(self._parameters):
            state = step.states.get(place)
            if state:
                self._optimizer.state[parameter] = state
            elif place in step.known:
                self._optimizer.state.pop(parameter, None)
        self._known |= step.known

    def _step_of(self, mine: Collection[int]) -> tuple[dict[int, Array], dict[int, ParameterState]]:
        """Return new values and states of some parameters; everything is as before then."""
        state, parameters = self._optimizer.state, self._parameters
        gradients = [parameter.grad for parameter in parameters]
        changing = [place for place in mine if gradients[place] is not None]
        before = {
            place: (flat(parameters[place]).copy(), _copied(state.get(parameters[place], {}))) for place in changing
        }
        for place, parameter in enumerate(parameters):
            parameter.grad = gradients[place] if place in before else None
        self._optimizer.step()
        values, states = {}, {place: state.get(parameters[place], {}) for place in mine}
        for place, (row, former) in before.items():
            values[place] = flat(parameters[place]).copy()
            states[place] = state.pop(parameters[place], {})
            fill(parameters[place], row)
            if former:
                state[parameters[place]] = former
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        return values, states


def _copied(state: ParameterState) -> ParameterState:
    return {name: value.detach().clone() if isinstance(value, Tensor) else value for name, value in state.items()}
