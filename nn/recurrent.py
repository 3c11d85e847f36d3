"""``RNN``, ``LSTM``, ``GRU``: layers of recurrent networks over whole sequences, in one or both directions."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from typing import Any

import numpy.typing as npt

from ..core import cat, empty, index_select, stack, zeros
from ..core.extend import Tensor
from . import functional as F
from . import init
from .functional.elman import ACTIVATIONS, rnn_layer
from .functional.gru import gru_layer
from .functional.lstm import lstm_layer
from .functional.recurrence import States, Steps, Weights
from .module import Module, unusual
from .parameter import Parameter
from .utils.rnn import PackedSequence


class RNNBase(Module):
    """Base of ``RNN``, ``LSTM`` and ``GRU``: parameters by layer and direction, shapes of inputs and states, packed sequences.

    Parameters are named ``weight_ih_l0``, ``weight_hh_l0``, ``bias_ih_l0``, ``bias_hh_l0``, with the numbers of further
    layers, and ``_reverse`` for the other direction. All start uniform within ``1 / sqrt(hidden_size)`` of 0.

    Args:
        input_size: number of features of each element of a sequence.
        hidden_size: number of features of the state.
        num_layers: number of layers, each of which takes the outputs of the one below.
        bias: whether there are biases.
        batch_first: whether inputs and outputs are (N, L, ...) instead of (L, N, ...).
        dropout: probability of dropout of the outputs of all layers but the last.
        bidirectional: whether a second direction goes from the end to the start; the outputs of both are concatenated.
        device, dtype: of the parameters.

    Raises:
        ValueError: a size is not positive, or ``dropout`` is not within 0 and 1.
    """

    _gates: int
    _states = 1  # h, and for an LSTM c
    proj_size = 0

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if not isinstance(size, int) or size <= 0:
                raise ValueError(f"{type(self).__name__}: {name} must be a positive integer, and you gave {size!r}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"{type(self).__name__}: dropout must be between 0 and 1, and you gave {dropout}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                self._add_parameters(layer, suffix, device, dtype)
        self.reset_parameters()

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    def _add_parameters(self, layer: int, suffix: str, device: str | None, dtype: npt.DTypeLike | None) -> None:
        out = self.proj_size or self.hidden_size
        features = self.input_size if layer == 0 else out * (1 + self.bidirectional)
        rows = self._gates * self.hidden_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, features), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            self.register_parameter(name + suffix, Parameter(empty(shape, dtype=dtype, device=device)))

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: parameters need no common memory here."""

    # -- one layer, in one direction

    def _run(self, x: Tensor, states: States, suffix: str, steps: Steps) -> tuple[Tensor, States]:
        raise NotImplementedError(f"{type(self).__name__} must define _run()")

    def _weights(self, suffix: str) -> Weights:
        own = self._parameters
        return Weights(
            own["weight_ih" + suffix],  # type: ignore[arg-type]
            own["weight_hh" + suffix],  # type: ignore[arg-type]
            own.get("bias_ih" + suffix),
            own.get("bias_hh" + suffix),
        )

    # -- all layers

    def _forward(self, input: Tensor | PackedSequence, hx: States | None) -> tuple[Any, States]:
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        self._check_input(input)
        batched = input.ndim == 3
        x = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            x = x.transpose(0, 1)
        if hx is not None and not batched:
            hx = tuple(state.unsqueeze(1) for state in hx)
        y, last = self._layers(x, self._initial(hx, x), [x.shape[1]] * x.shape[0])
        if batched and self.batch_first:
            y = y.transpose(0, 1)
        return (y, last) if batched else (y.squeeze(1), tuple(state.squeeze(1) for state in last))

    def _packed(self, input: PackedSequence, hx: States | None) -> tuple[PackedSequence, States]:
        x = input.padded()
        self._check_input(x)
        order, back = input.sorted_indices, input.unsorted_indices
        if hx is not None and order is not None:
            hx = tuple(index_select(state, 1, order) for state in hx)
        y, last = self._layers(x, self._initial(hx, x), input.counts)
        if back is not None:
            last = tuple(index_select(state, 1, back) for state in last)
        return input.like(y), last

    def _layers(self, x: Tensor, states: States, counts: list[int]) -> tuple[Tensor, States]:
        """Return the outputs, (T, N, directions * H), and last states, from (T, N, I) and the first states."""
        ends: list[States] = []
        for layer in range(self.num_layers):
            outputs = []
            for direction, suffix in enumerate(self._suffixes(layer)):
                own = tuple(state[len(ends)] for state in states)
                y, end = self._run(x, own, suffix, Steps(counts, reverse=direction == 1))
                outputs.append(y)
                ends.append(end)
            x = outputs[0] if len(outputs) == 1 else cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        return x, tuple(stack(list(which)) for which in zip(*ends))

    # -- inputs and states

    def _check_input(self, x: Tensor) -> None:
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            order = "N, L" if self.batch_first else "L, N"
            raise ValueError(
                f"{type(self).__name__} takes an input of shape ({order}, {self.input_size}) or (L, {self.input_size}), and "
                f"you gave {x.shape}"
            )

    def _initial(self, hx: States | None, x: Tensor) -> States:
        count = self.num_layers * (1 + self.bidirectional)
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)[: self._states]
        shapes = [(count, x.shape[1], size) for size in sizes]
        if hx is None:
            return tuple(zeros(shape, dtype=x.dtype) for shape in shapes)
        for name, state, shape in zip("hc", hx, shapes):
            if state.shape != shape:
                raise ValueError(
                    f"{type(self).__name__} needs a state {name} of shape {shape} (layers * directions, sequences, features), "
                    f"and you gave {state.shape}"
                )
        return hx

    def extra_repr(self) -> str:
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *unusual(self, usual)])


class RNN(RNNBase):
    """Plain recurrent network (Elman 1990): ``h = tanh(weight_ih @ x + bias_ih + weight_hh @ h + bias_hh)`` at each step.

    Args:
        input_size: number of features of each element of a sequence.
        hidden_size: number of features of the state.
        num_layers: number of layers, each of which takes the outputs of the one below.
        nonlinearity: "tanh" or "relu".
        bias: whether there are biases.
        batch_first: whether inputs and outputs are (N, L, ...) instead of (L, N, ...).
        dropout: probability of dropout of the outputs of all layers but the last.
        bidirectional: whether a second direction goes from the end to the start; the outputs of both are concatenated.
        device, dtype: of the parameters.

    Raises:
        ValueError: a size is not positive, ``dropout`` is not within 0 and 1, or another nonlinearity.
    """

    _gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        if nonlinearity not in ACTIVATIONS:
            raise ValueError(f'RNN: nonlinearity must be "tanh" or "relu", and you gave {nonlinearity!r}')
        self.nonlinearity = nonlinearity
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the outputs, shape (L, N, directions * H), and the last states.

        Args:
            input: shape (L, N, I), (N, L, I) with ``batch_first``, or (L, I); or a packed sequence, and then so are the
                outputs.
            hx: first state, shape (layers * directions, N, H); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        y, (h,) = self._forward(input, None if hx is None else (hx,))
        return y, h

    def _run(self, x: Tensor, states: States, suffix: str, steps: Steps) -> tuple[Tensor, States]:
        y, h = rnn_layer(x, states[0], self._weights(suffix), steps, self.nonlinearity)
        return y, (h,)


class GRU(RNNBase):
    """Gated recurrent units (Cho et al. 2014), with the reset gate after the matrix product, as in PyTorch.

    With the sigmoids r, z of the affine maps of x and h, ``n = tanh(map(x) + r * map(h))`` and ``h = (1 - z) * n + z *
    h``.

    Args:
        input_size: number of features of each element of a sequence.
        hidden_size: number of features of the state.
        num_layers: number of layers, each of which takes the outputs of the one below.
        bias: whether there are biases.
        batch_first: whether inputs and outputs are (N, L, ...) instead of (L, N, ...).
        dropout: probability of dropout of the outputs of all layers but the last.
        bidirectional: whether a second direction goes from the end to the start; the outputs of both are concatenated.
        device, dtype: of the parameters.

    Raises:
        ValueError: a size is not positive, or ``dropout`` is not within 0 and 1.
    """

    _gates = 3

    def forward(self, input: Tensor | PackedSequence, hx: Tensor | None = None) -> tuple[Any, Tensor]:
        """Return the outputs, shape (L, N, directions * H), and the last states.

        Args:
            input: shape (L, N, I), (N, L, I) with ``batch_first``, or (L, I); or a packed sequence, and then so are the
                outputs.
            hx: first state, shape (layers * directions, N, H); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        y, (h,) = self._forward(input, None if hx is None else (hx,))
        return y, h

    def _run(self, x: Tensor, states: States, suffix: str, steps: Steps) -> tuple[Tensor, States]:
        y, h = gru_layer(x, states[0], self._weights(suffix), steps)
        return y, (h,)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with forget gates.

    With the sigmoids i, f, o and the tanh g of affine maps of x and h, ``c = f * c + i * g`` and ``h = o * tanh(c)``.

    Args:
        input_size: number of features of each element of a sequence.
        hidden_size: number of features of the state.
        num_layers: number of layers, each of which takes the outputs of the one below.
        bias: whether there are biases.
        batch_first: whether inputs and outputs are (N, L, ...) instead of (L, N, ...).
        dropout: probability of dropout of the outputs of all layers but the last.
        bidirectional: whether a second direction goes from the end to the start; the outputs of both are concatenated.
        proj_size: number of features of outputs and of the state h, through a matrix ``weight_hr``; 0 for none.
        device, dtype: of the parameters.

    Raises:
        ValueError: a size is not positive, ``dropout`` is not within 0 and 1, or ``proj_size`` is not below
            ``hidden_size``.
    """

    _gates = 4
    _states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ValueError(
                f"LSTM: proj_size must be from 0 to below hidden_size, {hidden_size}, and you gave {proj_size}"
            )
        self.proj_size = proj_size
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device, dtype)

    def forward(
        self, input: Tensor | PackedSequence, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Return the outputs, shape (L, N, directions * H), and the last states.

        Args:
            input: shape (L, N, I), (N, L, I) with ``batch_first``, or (L, I); or a packed sequence, and then so are the
                outputs.
            hx: first states h and c, shape (layers * directions, N, H); zeros if ``None``.

        Raises:
            ValueError: the shapes do not fit.
        """
        y, (h, c) = self._forward(input, hx)
        return y, (h, c)

    def _run(self, x: Tensor, states: States, suffix: str, steps: Steps) -> tuple[Tensor, States]:
        project = self._parameters.get("weight_hr" + suffix)
        y, h, c = lstm_layer(x, states[0], states[1], self._weights(suffix), steps, project)
        return y, (h, c)
