"""``RNNCell``, ``LSTMCell``, ``GRUCell``: one step of a recurrent network at a time."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from ..core import empty, zeros
from ..core.extend import Tensor
from . import init
from .functional.elman import ACTIVATIONS, rnn_step
from .functional.gru import gru_step
from .functional.lstm import lstm_step
from .functional.recurrence import Weights
from .module import Module
from .parameter import Parameter


class RNNCellBase(Module):
    """Base of cells: ``weight_ih`` (gates * H, I), ``weight_hh`` (gates * H, H), and their biases (gates * H,).

    All start uniform within ``1 / sqrt(hidden_size)`` of 0.

    Args:
        input_size: number of features I of the input.
        hidden_size: number of features H of the state.
        bias: whether there are biases.
        num_chunks: number of gates.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, columns in (("ih", input_size), ("hh", hidden_size)):
            weight = Parameter(empty(rows, columns, dtype=dtype, device=device))
            self.register_parameter(f"weight_{name}", weight)
        for name in ("ih", "hh"):
            vector = Parameter(empty(rows, dtype=dtype, device=device)) if bias else None
            self.register_parameter(f"bias_{name}", vector)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0.0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _weights(self) -> Weights:
        return Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def _checked(self, input: Tensor, *states: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """Return the input and the states as batches, with zeros for states that are not given."""
        if input.ndim not in (1, 2) or input.shape[-1] != self.input_size:
            raise ValueError(
                f"{type(self).__name__} takes an input of shape (N, {self.input_size}) or ({self.input_size},), and you gave "
                f"{input.shape}"
            )
        shape = (*input.shape[:-1], self.hidden_size)
        found = [zeros(shape, dtype=input.dtype) if state is None else state for state in states]
        for state in found:
            if state.shape != shape:
                raise ValueError(f"{type(self).__name__} needs a state of shape {shape}, and you gave {state.shape}")
        if input.ndim == 2:
            return input, found
        return input.unsqueeze(0), [state.unsqueeze(0) for state in found]

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(RNNCellBase):
    """One step of a plain recurrent network; see ``RNN``.

    Args:
        input_size: number of features I of the input.
        hidden_size: number of features H of the state.
        bias: whether there are biases.
        nonlinearity: "tanh" or "relu".
        device, dtype: of the parameters.

    Raises:
        ValueError: another nonlinearity.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        if nonlinearity not in ACTIVATIONS:
            raise ValueError(f'nonlinearity must be "tanh" or "relu", and you gave {nonlinearity!r}')
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state, shape (N, H) or (H,).

        Args:
            input: shape (N, I) or (I,).
            hx: the state, shape (N, H) or (H,); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        batch, (h,) = self._checked(input, hx)
        return rnn_step(batch, h, self._weights(), self.nonlinearity).reshape(*input.shape[:-1], self.hidden_size)


class LSTMCell(RNNCellBase):
    """One step of an LSTM; see ``LSTM``.

    Args:
        input_size: number of features I of the input.
        hidden_size: number of features H of the state.
        bias: whether there are biases.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Return the next h and c, shape (N, H) or (H,).

        Args:
            input: shape (N, I) or (I,).
            hx: the states h and c, shape (N, H) or (H,); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        given: Any = (None, None) if hx is None else hx
        batch, (h, c) = self._checked(input, *given)
        h, c = lstm_step(batch, h, c, self._weights())
        return h.reshape(*input.shape[:-1], self.hidden_size), c.reshape(*input.shape[:-1], self.hidden_size)


class GRUCell(RNNCellBase):
    """One step of gated recurrent units; see ``GRU``.

    Args:
        input_size: number of features I of the input.
        hidden_size: number of features H of the state.
        bias: whether there are biases.
        device, dtype: of the parameters.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next state, shape (N, H) or (H,).

        Args:
            input: shape (N, I) or (I,).
            hx: the state, shape (N, H) or (H,); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        batch, (h,) = self._checked(input, hx)
        return gru_step(batch, h, self._weights()).reshape(*input.shape[:-1], self.hidden_size)
