"""``LBFGS``: Newton's method with a curvature that is estimated from the last steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from ..core import enable_grad
from ..core.extend import Array, Tensor, changed
from .arithmetic import at_least, numbers
from .line_search import Point, strong_wolfe
from .optimizer import Group, Optimizer, Params, State
from .parts import parts


class LBFGS(Optimizer):
    """Limited-memory BFGS (``torch.optim.LBFGS``; Nocedal and Wright 2006, algorithm 7.4).

    Each ``step`` makes several iterations, so it needs a closure that computes the loss and its gradients again.

    Args:
        params: parameters to optimize, in one group.
        lr: the step size.
        max_iter: iterations in a step.
        max_eval: evaluations of the closure in a step; ``None`` is ``max_iter * 1.25``.
        tolerance_grad: a step ends when no gradient is larger.
        tolerance_change: a step ends when the loss, or every parameter, changes less.
        history_size: number of last changes from which the curvature is estimated.
        line_search_fn: ``None`` or "strong_wolfe".

    Raises:
        ValueError: ``params`` has more than one group, or an option is not one of those above.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        options = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, options)
        if len(self.param_groups) != 1:
            raise ValueError(f"LBFGS takes one group of parameters, and you gave {len(self.param_groups)}")

    def check_options(self, group: Group) -> None:
        at_least("lr", group["lr"])
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ValueError(f'line_search_fn must be None or "strong_wolfe", and you gave {group["line_search_fn"]!r}')

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate until a tolerance or a limit is reached.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            The loss of the first evaluation.

        Raises:
            ValueError: there is no closure.
        """
        if closure is None:
            raise ValueError("LBFGS.step() needs a closure that computes the loss and its gradients")
        with self.step_hooks(closure) as closure:
            return self._step(closure)

    def restored(self, state: Mapping[str, Any], parameter: Tensor, number: Any) -> State:
        return deepcopy(dict(state))  # of all parameters together, in one flat vector

    def _step(self, closure: Callable[[], Any]) -> Any:
        group = numbers(self.param_groups[0])
        state = self.state[self.param_groups[0]["params"][0]]
        with enable_grad():
            first = closure()
        loss, grad = float(first), self._flat_grad()
        evaluations = 1
        state.setdefault("n_iter", 0)
        for iteration in range(1, group["max_iter"] + 1):
            if np.abs(grad).max(initial=0) <= group["tolerance_grad"]:
                break
            state["n_iter"] += 1
            direction = _direction(state, grad, group["history_size"])
            step = group["lr"] * (min(1.0, 1.0 / np.abs(grad).sum()) if state["n_iter"] == 1 else 1)
            state.update(d=Tensor(direction), t=step, prev_flat_grad=Tensor(grad), prev_loss=loss)
            slope = float(grad @ direction)
            if slope > -group["tolerance_change"]:
                break
            here = Point(0.0, loss, grad, slope)
            evaluate = iteration < group["max_iter"]  # the result of the last one would not be used
            left = group["max_eval"] - evaluations
            step, loss, grad, looked = self._move(closure, here, direction, step, evaluate, left)
            state["t"] = step
            evaluations += looked
            if evaluations >= group["max_eval"] or _settled(group, step * direction, loss - here.loss):
                break
        state["func_evals"] = state.get("func_evals", 0) + evaluations
        return first

    def _move(
        self, closure: Callable[[], Any], here: Point, direction: Array, step: float, evaluate: bool, searches: int
    ) -> tuple[float, float, Array, int]:
        """Move along the direction. Returns the step, the loss and gradient there, and the number of evaluations."""
        group = self.param_groups[0]
        start = self._flat(lambda parameter: parameter.numpy(force=True))

        def look(at: float) -> Point:
            self._put(start + at * direction)
            with enable_grad():
                loss = float(closure())
            grad = self._flat_grad()
            return Point(at, loss, grad, float(grad @ direction))

        if group["line_search_fn"] is not None:
            reach = float(np.abs(direction).max(initial=0))
            point, looked = strong_wolfe(look, here, step, reach, group["tolerance_change"], searches)
            self._put(start + point.step * direction)
            return point.step, point.loss, point.grad, looked
        if not evaluate:
            self._put(start + step * direction)
            return step, here.loss, here.grad, 0
        point = look(step)
        return step, point.loss, point.grad, 1

    def _flat_grad(self) -> Array:
        def gradient(parameter: Tensor) -> Array:
            if parameter.grad is None:
                return np.zeros_like(parameter._array)
            return parameter.grad.to_dense().numpy() if parameter.grad.is_sparse else parameter.grad.numpy()

        return self._flat(gradient)

    def _flat(self, part: Callable[[Tensor], Array]) -> Array:
        return np.concatenate([parts(part(parameter)).reshape(-1) for parameter in self._parameters()])

    def _put(self, values: Array) -> None:
        offset = 0
        for parameter in self._parameters():
            target = parts(parameter.numpy(force=True))
            target[...] = values[offset : offset + target.size].reshape(target.shape)
            changed(parameter)
            offset += target.size


def _settled(group: Group, change: Array, fall: float) -> bool:
    tolerance: float = group["tolerance_change"]
    return bool(np.abs(change).max(initial=0) <= tolerance) or abs(fall) < tolerance


def _direction(state: State, grad: Array, history_size: int) -> Array:
    """Return the direction: minus the gradient, times the estimated inverse curvature (the two-loop recursion)."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -grad
    _learn(state, grad, history_size)
    history = [
        (change.numpy(), step.numpy(), float(weight))
        for change, step, weight in zip(state["old_dirs"], state["old_stps"], state["ro"])
    ]
    result = -grad
    shares = state.setdefault("al", [None] * history_size)  # scratch; kept because PyTorch's state has it
    for number, (change, step, weight) in reversed([*enumerate(history)]):
        shares[number] = float(step @ result) * weight
        result -= shares[number] * change
    result *= float(state["H_diag"])
    for (change, step, weight), share in zip(history, shares):
        result += step * (share - float(change @ result) * weight)
    return result


def _learn(state: State, grad: Array, history_size: int) -> None:
    change = grad - state["prev_flat_grad"].numpy()
    step = state["d"].numpy() * float(state["t"])
    product = float(change @ step)
    if product <= 1e-10:
        return
    if len(state["old_dirs"]) == history_size:
        for name in ("old_dirs", "old_stps", "ro"):
            state[name].pop(0)
    state["old_dirs"].append(Tensor(change))
    state["old_stps"].append(Tensor(step))
    state["ro"].append(1 / product)
    state["H_diag"] = product / float(change @ change)
