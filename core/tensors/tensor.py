"""``Tensor``: a NumPy array, and what autograd must know about it.

The operations are functions in ``ops/``, whose declarations make them attributes of this class (so ``a + b`` is one Python
call); ``signatures/`` tells type checkers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from ...base.errors import AutogradError
from ..array_like import ArrayLike
from ..autograd.leaf_gradient import BorrowedGradient, grad_lock
from ..autograd.node import Edge, Node
from ..dtypes import get_default_dtype, is_inexact
from ..interception import NOT_TAKEN, PlainTensors, offer, plain, takes_over
from ..interception import active as interceptors
from ..types import Array
from .array_queries import ArrayQueries
from .copying import Copyable
from .hooks import Hookable
from .printing import describe
from .sharing import Shareable

if TYPE_CHECKING:
    from ..signatures.methods import TensorMethods
else:
    TensorMethods = object


_ndarray = np.ndarray  # a global name is found faster, and every operation asks
T = TypeVar("T", bound="Tensor")


class Tensor(ArrayQueries, Copyable, Hookable, Shareable, TensorMethods):
    """An n-dimensional array that can record how it was computed (``torch.Tensor``).

    Make one with ``tensor``, ``zeros``, ``from_numpy``, ...; ``Tensor(data)`` itself takes an array and shares it, or
    nested sequences of numbers, which become the default dtype. ``Tensor(2, 3)`` is ``empty(2, 3)``, as in PyTorch.

    Args:
        array: the elements, or the first length.
        requires_grad: whether operations on it are recorded; or the second length.
        edge: the node that produces it and the number of that output; or the third length.
        *sizes: further lengths.
    """

    __slots__ = ()

    # autograd/gradients.py, which is above this module, sets it.
    _backward: ClassVar[Callable[..., None]]

    # Whether the class overrides __tensor_function__.
    _takes_over = False

    # NumPy then leaves `array * tensor` to Tensor.__rmul__.
    __array_priority__ = 1000

    def __init__(self, array: Any = (), requires_grad: bool = False, edge: Edge | None = None, *sizes: int) -> None:
        if type(array) is not _ndarray:
            if type(array) is int:
                array, requires_grad, edge = _of_size(array, requires_grad, edge, *sizes), False, None
            array = _as_array(array)
        self._array = array
        self._requires_grad = requires_grad
        self._edge = edge
        self._counter = [0]
        self._view = None
        self._views = None
        self._grad = None
        self._accumulator = None
        self._hooks = None

    @classmethod
    def _leaf(cls: type[T], array: Array, requires_grad: bool) -> T:
        result = cls.__new__(cls)
        Tensor.__init__(result, array, requires_grad)
        return result

    @classmethod
    def __tensor_function__(
        cls, func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an operation on the arrays, and give the results the class ``cls``.

        It is called instead of ``func(*args, **kwargs)`` for each operation on a tensor of a class that overrides it;
        overrides call this one through ``super()``.

        Args:
            func: the operation.
            types: the classes among the arguments that override this method, subclasses first.
            args: the operation's positional arguments.
            kwargs: its keyword arguments.

        Returns:
            The operation's result, or ``NotImplemented`` to let the next class decide.
        """
        with PlainTensors():
            result = func(*args, **kwargs)
        return _reclassed(result, cls, (*args, *kwargs.values()))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__tensor_function__.__func__ is not Tensor.__tensor_function__.__func__:  # type: ignore[attr-defined]
            cls._takes_over = True
            takes_over(cls)

    # -- what autograd knows

    @property
    def requires_grad(self) -> bool:
        """True if operations on this tensor are recorded."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set ``requires_grad`` in place.

        Raises:
            AutogradError: the tensor is the result of a recorded operation, or does not hold floating-point numbers.
        """
        if requires_grad and not is_inexact(self._array.dtype):
            raise AutogradError(f"only floating-point tensors can require grad, and this one is {self._array.dtype}")
        if not requires_grad and self._edge is not None:
            raise AutogradError(
                "this tensor is the result of a recorded operation; use detach() for one that requires no grad"
            )
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad_fn(self) -> Node | None:
        """The node that produced this tensor; ``None`` for a leaf."""
        return None if self._edge is None else self._edge[0]

    @property
    def output_nr(self) -> int:
        """The number of this output of ``grad_fn``."""
        return 0 if self._edge is None else self._edge[1]

    @property
    def is_leaf(self) -> bool:
        """True if no recorded operation produced this tensor."""
        return self._edge is None

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient, of the same shape and dtype.

        Warns:
            UserWarning: this is the result of an operation and does not retain its gradient, so it has none.
        """
        while isinstance(borrowed := self._grad, BorrowedGradient):
            owned = Tensor(borrowed.to_owned())
            with grad_lock:
                if self._grad is borrowed:  # else another thread, or a finalizer that ran a pass, was faster
                    self._grad = owned
        if self._grad is None and self._edge is not None and not self.retains_grad:
            warnings.warn(
                "you read .grad of a tensor that is not a leaf: a backward pass does not fill it; call retain_grad() on it "
                "before, or read the .grad of the leaf that you meant",
                stacklevel=2,
            )
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            if not isinstance(value, Tensor):
                raise TypeError(f"grad must be a tensor or None, not {type(value).__name__}")
            if value.shape != self._array.shape:
                raise AutogradError(f"grad of shape {value.shape} does not fit a tensor of {self._array.shape}")
        self._grad = value

    @property
    def _version(self) -> int:
        return self._counter[0]

    @property
    def _base(self) -> Tensor | None:
        tensor: Tensor | None = None
        view = self._view
        while view is not None:
            tensor = view[0]
            view = view[0]._view
        return tensor

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Add the gradients of this tensor to the ``.grad`` of the leaves below it (``autograd.backward``).

        Args:
            gradient: the gradient of this tensor, of its shape; 1 by default, for a tensor of one element.
            retain_graph: keep what the graph saved, to go over it again; by default as ``create_graph``.
            create_graph: record the pass, so that the gradients can be differentiated.
            inputs: the only leaves to add to; all by default.

        Raises:
            AutogradError: the tensor requires no grad, needs a gradient, or the graph was freed or modified in place.
        """
        self._backward(gradient, retain_graph, create_graph, inputs)

    def detach(self) -> Tensor:
        """Return a tensor over the same memory and version counter, outside the graph."""
        if interceptors and (taken := offer(Tensor.detach, (self,), {})) is not NOT_TAKEN:
            return taken
        result = Tensor(self._array)
        result._counter = self._counter
        return result

    def as_subclass(self, cls: type[T]) -> T:
        """Return a leaf over the same memory, of class ``cls``, made without that class's own ``__init__``.

        Raises:
            AutogradError: this tensor is the result of a recorded operation.
        """
        if self._edge is not None:
            raise AutogradError(f"the result of a recorded operation cannot be a {cls.__name__}; use detach() first")
        result = cls._leaf(self._array, self._requires_grad)
        result._counter = self._counter
        return result

    def detach_(self) -> Tensor:
        """Take this tensor out of its graph: it becomes a leaf that requires no grad.

        Raises:
            AutogradError: the tensor is a view.
        """
        if self._view is not None and self._view[1] is not None:
            raise AutogradError("a view cannot be detached in place; use detach()")
        self._edge, self._requires_grad = None, False
        return self

    @property
    def data(self) -> Tensor:
        """A tensor over the same memory, outside the graph and with its own version counter; assigning replaces the array."""
        return Tensor(self._array)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(f"data must be a tensor, not {type(value).__name__}")
        self._replace(value._array)

    def _replace(self, array: Array) -> None:
        # Graphs that saved the former array keep it and its counter, and stay valid.
        self._array = array
        self._counter = [0]
        self._view = None

    # -- the array

    def numpy(self, *, force: bool = False) -> Array:
        """Return the array itself, without a copy.

        Raises:
            AutogradError: the tensor requires grad, and ``force`` is false.
        """
        if self._requires_grad and not force:
            raise AutogradError("this tensor requires grad; use tensor.detach().numpy()")
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        # NumPy's protocol: copy=False means never, None if need be.
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("you cannot iterate over a 0-d tensor; item() gives its number")
        return iter(self.unbind(0))

    # __eq__ is elementwise, so a tensor is a dictionary key by identity.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        history = "requires_grad=True" if self._requires_grad else ""
        if self._edge is not None:
            history = f"grad_fn=<{self._edge[0].name()}>"
        return describe(type(self).__name__, self._array, history)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self._array.ndim else format(repr(self), spec)


plain.add(Tensor)

# What most operations take beside a tensor.
Operand: TypeAlias = Tensor | Array | bool | int | float | complex


def _of_size(first: int, second: Any, third: Any, *others: Any) -> Array:
    sizes = [first, *(size for size in (second, third, *others) if size is not False and size is not None)]
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise TypeError(
            f"Tensor() takes an array, nested sequences of numbers, or lengths, and you gave {tuple(sizes)}"
        )
    return np.empty(sizes, get_default_dtype())


def _as_array(data: Any) -> Any:
    if isinstance(data, (np.generic, np.ndarray)):
        return np.asarray(data)
    if isinstance(data, Tensor):
        return data._array
    if isinstance(data, ArrayLike):
        return data
    return np.asarray(data, dtype=get_default_dtype())


def _reclassed(result: Any, cls: type[Tensor], given: tuple[Any, ...]) -> Any:
    # The object keeps its identity and history: only its class changes, which the layout of Tensor allows. An argument that
    # the operation returns (in place, or out=) keeps its class.
    if type(result) is Tensor and not any(result is argument for argument in given):
        result.__class__ = cls
    elif isinstance(result, (tuple, list)):
        for item in result:
            _reclassed(item, cls, given)
    return result
