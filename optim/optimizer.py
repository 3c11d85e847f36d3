"""``Optimizer``: parameter groups, state, and the step, which changes parameters in place.

A subclass defines ``update``, the arithmetic for one parameter on plain arrays; everything else is here.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from ..core import enable_grad
from ..core.extend import Array, Tensor, changed
from .arithmetic import numbers
from .hooks import OptimizerHooks
from .parts import update_parts
from .together import Item, Together

Group: TypeAlias = dict[str, Any]
State: TypeAlias = dict[str, Any]
Params: TypeAlias = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Group]


class Optimizer(OptimizerHooks):
    """Base class of all optimizers (``torch.optim.Optimizer``).

    Args:
        params: parameters, pairs of a name and a parameter, or groups: dictionaries with "params" and any options. Parameters
            are leaf tensors of any shape and floating-point or complex dtype.
        defaults: options for groups that do not have them.

    Attributes:
        param_groups: the groups; a changed option is used from the next step on.
        state: for each parameter, tensors and numbers by name.

    Raises:
        TypeError: a parameter is not a tensor, or ``params`` is a tensor or a module.
        ValueError: there are no parameters, one is in two groups or is not a leaf, only some have names, or an option is out of
            its range.

    Warns:
        UserWarning: a group has a parameter twice: each step is done twice for it, as in PyTorch.

    Example:
        >>> import telegrad as tg
        >>> weight = tg.tensor([1.0, 2.0], requires_grad=True)
        >>> optimizer = tg.optim.SGD([weight], lr=0.1)
        >>> (weight * weight).sum().backward()
        >>> optimizer.step()
        >>> weight.detach()
        tensor([0.8000, 1.6000])
    """

    # Entries of a parameter's state that are numbers. PyTorch keeps them in tensors.
    numbers_of_state: frozenset[str] = frozenset()

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError("params must be an iterable of tensors, and you gave one tensor; put it in a list")
        if hasattr(params, "parameters"):
            raise TypeError(
                f"params must be an iterable of tensors; you gave a {type(params).__name__}: pass its parameters()"
            )
        super().__init__()
        self.defaults = defaults
        self.state: defaultdict[Tensor, State] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self._together: dict[int, Together] = {}  # by the number of a group
        given = list(params)
        if not given:
            raise ValueError("params is empty: there is nothing to optimize; an iterator may have been used up before")
        for group in given if isinstance(given[0], dict) else [{"params": given}]:
            self.add_param_group(group)  # type: ignore[arg-type]

    # -- defined by subclasses

    def update(self, value: Array, grad: Array, state: State, group: Group) -> None:
        """Do one step of one parameter.

        Args:
            value: the parameter's array, to be changed in place.
            grad: its gradient, of the same shape and dtype; it must not be changed.
            state: the parameter's state.
            group: the options of its group, with tensors as numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} must define update(value, grad, state, group)")

    def update_rows(self, value: Array, rows: Any, grad: Array, state: State, group: Group) -> None:
        """Do one step of one parameter with a sparse gradient.

        Args:
            value: the parameter's array, to be changed in place.
            rows: index of the rows that have a gradient, each once.
            grad: the gradient of ``value[rows]``.
            state: the parameter's state.
            group: the options of its group, with tensors as numbers.

        Raises:
            RuntimeError: this optimizer takes dense gradients only.
        """
        raise RuntimeError(
            f"{type(self).__name__} does not take sparse gradients; use SparseAdam, SGD or Adagrad, "
            "or make the embedding with sparse=False"
        )

    def check_options(self, group: Group) -> None:
        """Check the options of a group.

        Raises:
            ValueError: an option is out of its range.
        """

    # -- stepping

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a ``.grad``, in place.

        Args:
            closure: computes the loss and its gradients before the step, and returns the loss.

        Returns:
            The result of the closure; ``None`` without one.
        """
        with self.step_hooks(closure) as closure:
            loss = None
            if closure is not None:
                with enable_grad():
                    loss = closure()
            for place, group in enumerate(self.param_groups):
                options = numbers(group)
                stepped = self._step_together(place, group["params"], options)
                for parameter in group["params"]:
                    # Not .grad, which would copy a gradient that is shared with others: it is only read here.
                    gradient = parameter._grad
                    if gradient is not None and id(parameter) not in stepped:
                        self._step_in_place(parameter, gradient, options)
        return loss

    def _step_together(self, place: int, parameters: Sequence[Tensor], group: Group) -> set[int]:
        """Step the small parameters of a group as one array, where the arithmetic allows it, and return their ids."""
        if not Together.can_step(len(parameters), self.update):
            return set()
        together = self._together.get(place)
        if together is None:
            together = self._together[place] = Together()
        items = [
            Item(each, each._array, each._grad._array, self.state[each])
            for each in parameters
            if _is_plain(each, each._grad)
        ]
        stepped = together.step(items, self.update, group)
        for item in stepped:
            changed(item.parameter)
        return {id(item.parameter) for item in stepped}

    def _step_in_place(self, parameter: Tensor, gradient: Any, group: Group) -> None:
        value = parameter._array
        if type(gradient) is Tensor and value.dtype.kind != "c":  # the usual case, without a call
            self.update(value, gradient._array, self.state[parameter], group)
        else:
            self._update(value, gradient, self.state[parameter], group)
        changed(parameter)

    def _update(self, value: Array, gradient: Any, state: State, group: Group) -> None:
        update = self.update
        if getattr(gradient, "is_sparse", False):
            gradient = gradient.coalesce()
            # A number has one row, which no index names.
            rows = tuple(gradient.indices().numpy()) or (None,)
            gradient = gradient.values().numpy(force=True)

            def update(value: Array, grad: Array, state: State, group: Group) -> None:
                self.update_rows(value, rows, grad, state, group)

        grad = getattr(gradient, "_array", gradient)
        if value.dtype.kind != "c":
            update(value, grad, state, group)
        else:
            update_parts(lambda value, grad, state: update(value, grad, state, group), value, grad, state)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters.

        Args:
            set_to_none: set ``.grad`` to ``None``; otherwise to zeros, where there is a gradient.
        """
        for parameter in self._parameters():
            if set_to_none:
                parameter.grad = None
            elif parameter.grad is not None:
                parameter.grad = Tensor(np.zeros(parameter.shape, parameter.dtype))

    # -- groups

    def add_param_group(self, param_group: Group) -> None:
        """Add a group of parameters.

        Args:
            param_group: a dictionary with "params" and any options.

        Raises:
            TypeError: it is not a dictionary, or its parameters are a set or not tensors.
            ValueError: a parameter is in another group or is not a leaf, only some have names, or an option is out of its
                range.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"a parameter group must be a dict, not {type(param_group).__name__}")
        if "params" not in param_group:
            raise ValueError(f'a parameter group needs "params", and you gave {sorted(param_group)}')
        group = {**self.defaults, **param_group, **_split_names(param_group["params"])}
        self._check_parameters(group["params"])
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "the parameters of all groups must have names, or none: give pairs of a name and a parameter"
            )
        if isinstance(rate := group.get("lr"), Tensor) and rate.numel() != 1:
            raise ValueError(f"lr must be a number or a tensor of one element, and you gave one of shape {rate.shape}")
        self.check_options(group)
        self.param_groups.append(group)

    def _check_parameters(self, params: list[Any]) -> None:
        taken = {id(parameter) for parameter in self._parameters()}
        for index, parameter in enumerate(params):
            _check_parameter(parameter, index)
            if id(parameter) in taken:
                raise ValueError(f"params[{index}], of shape {parameter.shape}, is in another group of the optimizer")
        if len({id(parameter) for parameter in params}) < len(params):
            warnings.warn(
                "a parameter is in its group twice: each step is done twice for it; leave one of them out", stacklevel=4
            )

    def _parameters(self) -> Iterable[Tensor]:
        return chain.from_iterable(group["params"] for group in self.param_groups)

    # -- state

    def state_dict(self) -> dict[str, Any]:
        """Return the state and options, with parameters numbered in order. The tensors are the optimizer's, not copies."""
        return self.state_dict_hooks(self._state_dict)

    def _state_dict(self) -> dict[str, Any]:
        numbers = {id(parameter): number for number, parameter in enumerate(self._parameters())}
        return {
            "state": {numbers[id(parameter)]: dict(state) for parameter, state in self.state.items() if state},
            "param_groups": [
                {**group, "params": [numbers[id(parameter)] for parameter in group["params"]]}
                for group in self.param_groups
            ],
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load the state and options of a ``state_dict``; tensors are copied.

        Args:
            state_dict: the result of ``state_dict()`` of an optimizer of the same class, also PyTorch's.

        Raises:
            ValueError: its groups have other sizes, or a state does not fit its parameter.
        """
        self.load_hooks(state_dict, self._load_state_dict)

    def _load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        if not isinstance(state_dict, Mapping) or not {"state", "param_groups"} <= {*state_dict}:
            keys = sorted(map(str, state_dict)) if isinstance(state_dict, Mapping) else type(state_dict).__name__
            raise ValueError(f'an optimizer\'s state dict holds "state" and "param_groups", and you gave {keys}')
        groups = state_dict["param_groups"]
        have, given = ([len(group["params"]) for group in some] for some in (self.param_groups, groups))
        if have != given:
            raise ValueError(
                f"the state dict has groups of {given} parameters, and this optimizer has {have}; "
                "make the optimizer with the same parameters, in the same groups"
            )
        numbers = chain.from_iterable(group["params"] for group in groups)
        fresh: defaultdict[Tensor, State] = defaultdict(dict)
        for number, parameter in zip(numbers, self._parameters()):
            if number in state_dict["state"]:
                fresh[parameter] = self.restored(state_dict["state"][number], parameter, number)
        self.state = fresh
        for group, other in zip(self.param_groups, groups):
            group.update({name: value for name, value in other.items() if name != "params"})

    def restored(self, state: Mapping[str, Any], parameter: Tensor, number: Any) -> State:
        """Return a copy of a parameter's saved state, in the parameter's dtype.

        Args:
            state: the saved state.
            parameter: the parameter.
            number: its number in the state dict, for errors.
        """
        return {
            name: float(value) if name in self.numbers_of_state else _copied(name, value, parameter, number)
            for name, value in state.items()
        }

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_together": {}}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _is_plain(parameter: Tensor, gradient: Any) -> bool:
    """Return whether a parameter is stepped neither in parts nor by rows, nor left out."""
    return gradient is not None and not getattr(gradient, "is_sparse", False) and parameter._array.dtype.kind != "c"


def _split_names(params: Any) -> Group:
    if isinstance(params, Tensor):
        return {"params": [params]}
    if isinstance(params, (set, frozenset)):
        raise TypeError("a set of parameters has no order, so their state could not be saved; give a list")
    given = list(params)
    named = [isinstance(item, tuple) and len(item) == 2 for item in given]
    if any(named):
        if not all(named):
            raise ValueError(f"params[{named.index(False)}] has no name, and others have one; give all a name, or none")
        return {"params": [parameter for _, parameter in given], "param_names": [name for name, _ in given]}
    return {"params": given}


def _check_parameter(parameter: Any, index: int) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(f"params[{index}] must be a tensor, not {type(parameter).__name__}")
    if not parameter.is_leaf:
        raise ValueError(f"params[{index}] is the result of a recorded operation; only leaves can be optimized")


def _copied(name: str, value: Any, parameter: Tensor, number: Any) -> Any:
    if name == "step":
        return int(value)  # PyTorch's is a tensor
    if not isinstance(value, (Tensor, np.ndarray)):
        return value
    array = np.array(value.numpy(force=True) if isinstance(value, Tensor) else value, parameter.dtype)
    if not array.ndim and parameter.ndim:
        return array.item()  # PyTorch keeps some numbers in tensors
    if array.shape != parameter.shape:
        raise ValueError(
            f"the state {name!r} of parameter {number} has shape {array.shape}, and the parameter {parameter.shape}"
        )
    return Tensor(array)
