"""``TrainingState``: what a newcomer gets from the workers that train, in parts that several of them send."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.errors import ArgumentValueError
from ...core import Tensor
from ...core.extend import Array
from ...nn import Module
from ...optim import Optimizer
from ..arrays import describe, fill, flat


class TrainingState:
    """State of a training: parameters with their optimizer's states, and the rest, which is small.

    Args:
        module: its parameters and buffers.
        optimizer: its state and options.
        parts: other objects with ``state_dict`` and ``load_state_dict``, by name.
        settings: what must be equal on all workers, by name.

    Attributes:
        tensors: the parameters; the *place* of one is its index here.
    """

    def __init__(
        self, module: Module, optimizer: Optimizer, parts: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        self._module = module
        self._optimizer = optimizer
        self._parts = parts
        self._settings = settings
        optimized = [each for group in optimizer.param_groups for each in group["params"]]
        found: dict[int, Tensor] = {id(each): each for each in [*module.parameters(), *optimized]}
        self.tensors = list(found.values())

    def shares(self, sources: int) -> list[list[int]]:
        """Return the places of the parameters that each source sends, so that all send about as many bytes."""
        shares: list[list[int]] = [[] for _ in range(sources)]
        sizes = [0] * sources
        for place in sorted(range(len(self.tensors)), key=lambda place: -self.tensors[place].numel()):
            least = sizes.index(min(sizes))
            shares[least].append(place)
            sizes[least] += self.tensors[place].numel()
        return shares

    def parameters(self, places: Sequence[int]) -> list[tuple[Array, dict[str, Any]]]:
        """Return values and optimizer's states of some parameters."""
        chosen = [self.tensors[place] for place in places]
        return [(flat(each), dict(self._optimizer.state.get(each, {}))) for each in chosen]

    def copied(self, places: Sequence[int]) -> list[tuple[Array, dict[str, Any]]]:
        """Return copies of values and optimizer's states of some parameters."""
        return [
            (row.copy(), {name: _copy(value) for name, value in state.items()})
            for row, state in self.parameters(places)
        ]

    def writes(self) -> list[int]:
        """Return how often each parameter and buffer was written: the same as long as they do not change."""
        return [tensor._version for tensor in [*self.tensors, *self._module.buffers()]]

    def rest(self) -> dict[str, Any]:
        """Return everything else."""
        return {
            "settings": self._described(),
            "buffers": [flat(buffer).copy() for buffer in self._module.buffers()],
            "options": [_options(group) for group in self._optimizer.param_groups],
            "parts": {name: part.state_dict() for name, part in self._parts.items()},
        }

    def check(self, rest: Mapping[str, Any]) -> None:
        """Check that a training has the settings, parameters and parts that this worker has.

        Raises:
            ArgumentValueError: it has not; the message names the first difference.
        """
        for name, mine in self._described().items():
            if mine != (theirs := rest["settings"].get(name)):
                raise ArgumentValueError(
                    f"this worker joins a training with {name} {theirs}, and has {name} {mine}; give it the same"
                )

    def load(self, parameters: Mapping[int, tuple[Array, dict[str, Any]]], rest: Mapping[str, Any]) -> None:
        """Load what other workers have sent.

        Args:
            parameters: values and optimizer's state of each parameter, by place.
            rest: everything else.
        """
        for place, (row, state) in parameters.items():
            parameter = self.tensors[place]
            fill(parameter, row)
            self._optimizer.state.pop(parameter, None)
            if state:
                self._optimizer.state[parameter] = dict(state)
        for buffer, row in zip(self._module.buffers(), rest["buffers"], strict=True):
            fill(buffer, row)
        for group, options in zip(self._optimizer.param_groups, rest["options"], strict=True):
            group.update(options)
        for name, part in self._parts.items():
            part.load_state_dict(rest["parts"][name])

    def _described(self) -> dict[str, Any]:
        return {
            **self._settings,
            "parameters": [describe(each) for each in self.tensors],
            "buffers": [describe(each) for each in self._module.buffers()],
            "optimizer": f"{type(self._optimizer).__name__} with {len(self._optimizer.param_groups)} groups",
            "parts": sorted(self._parts),
        }


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _options(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in group.items() if name != "params"}
