"""Parts of a training: objects with ``state_dict`` and ``load_state_dict``, and a few others that get them here."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..base.errors import CheckpointError
from ..core import Generator, default_generator
from ..data import DataLoader, Sampler


@runtime_checkable
class Stateful(Protocol):
    """Object with a state that can be saved."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state_dict: Any) -> Any:
        """Load a result of ``state_dict()``."""


@runtime_checkable
class Pausable(Stateful, Protocol):
    """Part that other threads change, unless it is paused: a journal of calls."""

    def pause(self) -> None:
        """Let no other thread change this part, or what belongs to it, until ``go_on``."""

    def go_on(self) -> None:
        """Let other threads go on."""

    def saved(self, state: Any) -> None:
        """Note that a checkpoint with this state is durable."""


class RandomNumbers:
    """State of the generators of a process: Telegrad's default one, and Python's and NumPy's, if they were imported."""

    def state_dict(self) -> dict[str, Any]:
        """Return the states by name."""
        state: dict[str, Any] = {"telegrad": default_generator.get_state(), "python": random.getstate()}
        if "numpy.random" in sys.modules:
            state["numpy"] = np.random.get_state(legacy=False)
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a result of ``state_dict()``."""
        default_generator.set_state(state_dict["telegrad"])
        random.setstate(state_dict["python"])
        if "numpy" in state_dict:
            np.random.set_state(state_dict["numpy"])


class _PythonRandom:
    def __init__(self, source: random.Random) -> None:
        self._source = source

    def state_dict(self) -> Any:
        return self._source.getstate()

    def load_state_dict(self, state_dict: Any) -> None:
        self._source.setstate(state_dict)


class _NumpyGenerator:
    def __init__(self, source: np.random.Generator) -> None:
        self._source = source

    def state_dict(self) -> Any:
        return self._source.bit_generator.state

    def load_state_dict(self, state_dict: Any) -> None:
        self._source.bit_generator.state = state_dict


class _Values:
    """Dict of a program: its items are the state."""

    def __init__(self, values: dict[Any, Any]) -> None:
        self._values = values

    def state_dict(self) -> dict[Any, Any]:
        return dict(self._values)

    def load_state_dict(self, state_dict: Mapping[Any, Any]) -> None:
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"it is a dict here, and was a {type(state_dict).__name__} when it was saved")
        self._values.clear()
        self._values.update(state_dict)


def stateful(name: str, part: Any) -> Stateful:
    """Return an object with the state of a part.

    Args:
        name: the name of the part, for errors.
        part: an object with ``state_dict`` and ``load_state_dict``, a random generator of Telegrad, NumPy or Python, or a dict.

    Raises:
        TypeError: it is another object.
    """
    if isinstance(part, Stateful):
        return part
    if isinstance(part, random.Random):
        return _PythonRandom(part)
    if isinstance(part, dict):
        return _Values(part)
    if "numpy.random" in sys.modules and isinstance(part, np.random.Generator):
        return _NumpyGenerator(part)
    raise TypeError(
        f"{name} is a {type(part).__name__}, which cannot be a part of a checkpoint; a part has state_dict() and "
        "load_state_dict(), or is a random generator or a dict"
    )


def is_own(part: Any) -> bool:
    """Return whether each worker of a job has a state of its own of a part: loaders, samplers, random generators, journals."""
    own = (DataLoader, Sampler, Generator, RandomNumbers, _PythonRandom, _NumpyGenerator, Pausable)
    return isinstance(part, own)


def is_sharded(part: Any) -> bool:
    """Return whether the state of a part is spread over the workers of a job."""
    return hasattr(part, "sharded_state_dict") and hasattr(part, "load_sharded_state_dict")


def load_part(name: str, load: Callable[[Any], Any], state: Any, where: str) -> None:
    """Load the state of a part.

    Args:
        name: its name, for errors.
        load: its function.
        state: its state.
        where: the checkpoint, for errors.

    Raises:
        CheckpointError: the state does not fit.
    """
    try:
        load(state)
    except Exception as error:
        raise CheckpointError(f"{where} does not fit {name}: {error}") from error
