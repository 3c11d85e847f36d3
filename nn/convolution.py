"""Layers of convolution and transposed convolution, of one to three dimensions."""
# ruff: noqa: A002 - PyTorch names its arguments so

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy.typing as npt

from ..core import empty
from ..core.extend import Tensor
from . import functional as F
from . import init
from .module import Module, unusual
from .parameter import Parameter

Ints = int | Sequence[int]

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of all convolutional layers.

    ``weight`` has shape (out_channels, in_channels // groups, *kernel_size), or with the first two exchanged if
    transposed, and ``bias`` (out_channels,); both start uniform within 1 / sqrt(number of inputs of an output) of 0.
    """

    _dims: ClassVar[int]
    _function: ClassVar[Callable[..., Tensor]]
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints,
        padding: str | Ints,
        dilation: Ints,
        output_padding: Ints,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: str | None,
        dtype: npt.DTypeLike | None,
    ) -> None:
        super().__init__()
        self._check(in_channels, out_channels, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = self._each("kernel_size", kernel_size)
        self.stride = self._each("stride", stride)
        self.dilation = self._each("dilation", dilation)
        self.output_padding = self._each("output_padding", output_padding)
        self.padding = self._named_padding(padding) if isinstance(padding, str) else self._each("padding", padding)
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(empty(*shape, dtype=dtype, device=device))
        self.register_parameter("bias", Parameter(empty(out_channels, dtype=dtype, device=device)) if bias else None)
        self.reset_parameters()

    def _check(self, in_channels: int, out_channels: int, groups: int, padding_mode: str) -> None:
        name = type(self).__name__
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{name}: groups={groups} must divide in_channels={in_channels} and out_channels={out_channels}"
            )
        allowed = PADDING_MODES[:1] if self.transposed else PADDING_MODES
        if padding_mode not in allowed:
            raise ValueError(f"{name}: padding_mode must be one of {', '.join(allowed)}, and you gave {padding_mode!r}")

    def _each(self, name: str, value: Ints) -> tuple[int, ...]:
        given = (value,) * self._dims if isinstance(value, int) else tuple(value)
        if len(given) != self._dims:
            raise ValueError(
                f"{type(self).__name__}: {name} must be an integer or {self._dims} of them, and you gave {value}"
            )
        return given

    def _named_padding(self, padding: str) -> str:
        if padding not in ("same", "valid"):
            raise ValueError(
                f'{type(self).__name__}: padding must be "same", "valid" or a number, and you gave {padding!r}'
            )
        if padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError(f'{type(self).__name__}: padding="same" needs stride 1, and you gave {self.stride}')
        return padding

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            inputs = init.fans(self.weight)[0]
            bound = 1 / math.sqrt(inputs) if inputs else 0.0
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        parts = [str(self.in_channels), str(self.out_channels), f"kernel_size={self.kernel_size}"]
        usual = {
            "stride": None,
            "padding": (0,) * self._dims,
            "dilation": (1,) * self._dims,
            "output_padding": (0,) * self._dims,
            "groups": 1,
        }
        parts += unusual(self, usual)
        parts += [] if self.bias is not None else ["bias=False"]
        return ", ".join(parts if self.padding_mode == "zeros" else [*parts, f"padding_mode={self.padding_mode}"])


class _Conv(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: str | Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution: shape (N, out_channels, ...), or without N as the input."""
        if self.padding_mode == "zeros":
            x, padding = input, self.padding
        else:
            x, padding = F.pad(input, self._around(), mode=self.padding_mode), (0,) * self._dims
        return type(self)._function(x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> tuple[int, ...]:
        # As pad() takes it: before and after, from the last dimension on.
        if not isinstance(self.padding, str):
            return tuple(amount for amount in reversed(self.padding) for _ in range(2))
        total = [d * (k - 1) if self.padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
        return tuple(part for amount in reversed(total) for part in (amount // 2, amount - amount // 2))


class Conv1d(_Conv):
    """Learned filters that slide over (N, C, L) or (C, L); see ``functional.conv1d``.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype: as
            for ``Conv2d``.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 1
    _function = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Learned filters that slide over (N, C, H, W) or (C, H, W); see ``functional.conv2d``.

    Args:
        in_channels: number of channels C of the input.
        out_channels: number of filters, and so of channels of the result.
        kernel_size: size of a filter; one number, or one for each dimension, as for those that follow.
        stride: step from one stop to the next.
        padding: elements on each side; or "same", or "valid" for none.
        dilation: step from one element of the filter to the next.
        groups: number of groups of input and output channels; an output channel sees those of its group.
        bias: whether there is a ``bias``.
        padding_mode: values of the padding: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 2
    _function = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Learned filters that slide over (N, C, D, H, W) or (C, D, H, W); see ``functional.conv3d``.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype: as
            for ``Conv2d``.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 3
    _function = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: str | None = None,
        dtype: npt.DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Return the transposed convolution: shape (N, out_channels, ...), or without N as the input.

        Args:
            input: as for the function of the same dimensions, for example ``functional.conv_transpose2d``.
            output_size: shape or last dimensions of the result, instead of ``output_padding``.

        Raises:
            ValueError: ``output_size`` is not one that the convolution takes to the input's size.
        """
        extra = self.output_padding if output_size is None else self._needed(input, tuple(output_size)[-self._dims :])
        return type(self)._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _needed(self, input: Tensor, wanted: tuple[int, ...]) -> tuple[int, ...]:
        assert not isinstance(self.padding, str)
        settings = zip(input.shape[-self._dims :], self.stride, self.padding, self.dilation, self.kernel_size)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in settings]
        most = [low + step - 1 for low, step in zip(least, self.stride)]
        if len(wanted) != self._dims or any(not a <= n <= b for a, n, b in zip(least, wanted, most)):
            raise ValueError(f"output_size must be from {tuple(least)} to {tuple(most)}, and you gave {wanted}")
        return tuple(n - low for n, low in zip(wanted, least))


class ConvTranspose1d(_ConvTranspose):
    """Transpose of ``Conv1d``, which makes images larger: (N, C, L) or (C, L); see ``functional.conv_transpose1d``.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, groups: as for ``ConvTranspose2d``.
        dilation, output_padding, bias, padding_mode, device, dtype: the same.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 1
    _function = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """Transpose of ``Conv2d``, which makes images larger: (N, C, H, W) or (C, H, W); see ``functional.conv_transpose2d``.

    Args:
        in_channels, out_channels: number of channels of the input and the result.
        kernel_size, stride, padding, groups, dilation: of the convolution that is transposed.
        output_padding: added to the size of the result.
        bias: whether there is a ``bias``.
        padding_mode: must be "zeros".
        device, dtype: of the parameters.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 2
    _function = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """Transpose of ``Conv3d``, which makes images larger: (N, C, D, H, W) or (C, D, H, W); see ``functional.conv_transpose3d``.

    Args:
        in_channels, out_channels, kernel_size, stride, padding, groups: as for ``ConvTranspose2d``.
        dilation, output_padding, bias, padding_mode, device, dtype: the same.

    Raises:
        ValueError: ``groups`` does not divide the channels, or another argument is out of its range.
    """

    _dims = 3
    _function = staticmethod(F.conv_transpose3d)
