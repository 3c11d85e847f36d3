"""Layers that take the number of features from their first input: ``LazyLinear``, ``LazyConv1d`` and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from ..core.extend import Tensor
from .batch_normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .parameter import Materialized, UninitializedBuffer, UninitializedParameter


class Lazy(Module):
    """Base of lazy layers: at the first call, or when a state is loaded, they become layers of the ordinary class.

    Arguments are those of that class, without the first: the number of features or channels of the input.
    """

    _ordinary: ClassVar[Callable[..., Module]]  # the class
    _count: ClassVar[str]  # the argument that is left out, and the attribute that holds it

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if len(cls.__bases__) == 1:
            return  # not yet a layer
        ordinary = cls.__bases__[1]
        cls._ordinary = ordinary
        counted, *rest = inspect.signature(ordinary).parameters.values()
        cls._count = counted.name
        cls.__signature__ = inspect.Signature(rest)  # type: ignore[attr-defined]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(type(self)).bind(*args, **kwargs)
        arguments = dict(bound.arguments)
        # The least layer of this kind says which members there are.
        template = self._ordinary(arguments.get("groups", 1), **arguments)
        Module.__init__(self)
        self._take_attributes(template)
        self.__dict__[self._count] = 0
        self._arguments = arguments
        for name, parameter in template._parameters.items():
            self.register_parameter(name, None if parameter is None else UninitializedParameter(dtype=parameter.dtype))
        for name, buffer in template._buffers.items():
            sized = buffer is not None and buffer.ndim > 0
            self.register_buffer(name, UninitializedBuffer(dtype=buffer.dtype) if sized else buffer)  # type: ignore[union-attr]
        self.register_load_state_dict_pre_hook(_fit_to_state)

    def _take_attributes(self, layer: Module) -> None:
        own = vars(self)
        own.update({name: value for name, value in vars(layer).items() if name not in own})

    def has_uninitialized_params(self) -> bool:
        """Return whether the number of features is not known yet."""
        return True

    def forward(self, input: Tensor, *args: Any) -> Any:  # noqa: A002 - PyTorch's name
        """Become the ordinary layer, and return its result."""
        self.initialize_parameters(input)
        return self.forward(input, *args)

    def initialize_parameters(self, input: Tensor) -> None:  # noqa: A002 - PyTorch's name
        """Become the ordinary layer for inputs of this shape."""
        self._become(input.shape[self._axis(input.ndim)])

    def _axis(self, ndim: int) -> int:
        """Return the dimension of an input that holds the features."""
        return 1

    def _count_in_state(self, state: Callable[[str], Tensor | None]) -> int | None:
        """Return the number of features that a state is for, if it tells; ``state`` returns a member by its name."""
        for name in ("weight", "running_mean"):
            member = state(name)
            if member is not None:
                return int(member.shape[0]) if member.ndim else None
        return None

    def _become(self, count: int) -> None:
        layer = self._ordinary(count, **self._arguments)
        members = [*layer._parameters.items(), *layer._buffers.items()]
        uninitialized = {**self._parameters, **self._buffers}
        for name, member in members:
            own = uninitialized[name]
            if isinstance(own, Materialized):
                own._become(member.to(own.dtype).detach())
        self.__dict__[self._count] = count
        del self._arguments
        self.__class__ = self._ordinary  # type: ignore[assignment]


def _fit_to_state(module: Module, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
    if isinstance(module, Lazy):
        count = module._count_in_state(lambda name: state_dict.get(prefix + name))
        if count:
            module._become(count)


class LazyLinear(Lazy, Linear):
    """``Linear`` whose ``in_features`` are those of its first input."""

    def _axis(self, ndim: int) -> int:
        return -1

    def _count_in_state(self, state: Callable[[str], Tensor | None]) -> int | None:
        weight = state("weight")
        return int(weight.shape[1]) if weight is not None and weight.ndim == 2 else None


class _LazyConv(Lazy):
    kernel_size: tuple[int, ...]
    groups: int
    transposed: bool

    def _axis(self, ndim: int) -> int:
        return -1 - len(self.kernel_size)

    def _count_in_state(self, state: Callable[[str], Tensor | None]) -> int | None:
        weight = state("weight")
        if weight is None or weight.ndim < 2:
            return None
        return int(weight.shape[0] if self.transposed else weight.shape[1] * self.groups)


class _LazyInstanceNorm(Lazy):
    def _axis(self, ndim: int) -> int:
        dims: tuple[int, ...] = self._ndims
        return int(ndim == max(dims))  # of a single sample, the first


class LazyConv1d(_LazyConv, Conv1d):
    """``Conv1d`` whose ``in_channels`` are those of its first input."""


class LazyConv2d(_LazyConv, Conv2d):
    """``Conv2d`` whose ``in_channels`` are those of its first input."""


class LazyConv3d(_LazyConv, Conv3d):
    """``Conv3d`` whose ``in_channels`` are those of its first input."""


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """``ConvTranspose1d`` whose ``in_channels`` are those of its first input."""


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """``ConvTranspose2d`` whose ``in_channels`` are those of its first input."""


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """``ConvTranspose3d`` whose ``in_channels`` are those of its first input."""


class LazyBatchNorm1d(Lazy, BatchNorm1d):
    """``BatchNorm1d`` whose ``num_features`` are those of its first input."""


class LazyBatchNorm2d(Lazy, BatchNorm2d):
    """``BatchNorm2d`` whose ``num_features`` are those of its first input."""


class LazyBatchNorm3d(Lazy, BatchNorm3d):
    """``BatchNorm3d`` whose ``num_features`` are those of its first input."""


class LazyInstanceNorm1d(_LazyInstanceNorm, InstanceNorm1d):
    """``InstanceNorm1d`` whose ``num_features`` are those of its first input."""


class LazyInstanceNorm2d(_LazyInstanceNorm, InstanceNorm2d):
    """``InstanceNorm2d`` whose ``num_features`` are those of its first input."""


class LazyInstanceNorm3d(_LazyInstanceNorm, InstanceNorm3d):
    """``InstanceNorm3d`` whose ``num_features`` are those of its first input."""
