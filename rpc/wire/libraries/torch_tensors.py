"""Adapter of PyTorch: its tensors and parameters, by way of the CPU's memory; sparse ones in parts (``torch_sparse.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.parameter import UninitializedTensorMixin

from ....base.errors import AutogradError
from ....core.extend import bfloat16
from ...device_maps import device_name
from .array_library import ArrayLibrary, MissingDeviceError, PackedArray
from .forks import check_forked
from .torch_modes import recorded
from .torch_script import reduction_of
from .torch_sparse import is_sparse, made_of, parts_of

if TYPE_CHECKING:
    from ....core.extend import Array, Edge

USUAL: dict[type, tuple[type | None, str]] = {torch.Tensor: (None, ""), torch.nn.Parameter: (torch.nn.Parameter, "")}
"""Details of the usual tensors, by their class."""

NUMPY_TYPES = frozenset(
    (
        torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
        torch.float64, torch.complex64, torch.complex128,
    )
)  # fmt: skip
"""Element types that NumPy has as well. Others travel as integers of the same size, and the name of the type."""

TORCH_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class TorchTensors(ArrayLibrary):
    """Adapter of PyTorch. The details are the class, if it is not ``torch.Tensor``, and the name of a type unknown to NumPy."""

    name = "torch"
    install = "torch"
    shares = True
    usual = (torch.Tensor, (None, ""))

    @property
    def arrived_node(self) -> type:
        """Class of the nodes of tensors that arrived in an autograd context. They have the ``edge`` of ``connect``."""
        return Arrived._backward_cls

    def pack(self, value: Any) -> PackedArray | None:
        """Return a tensor as what travels; ``None`` if ``value`` is no tensor, or a parameter without a shape."""
        if (
            (usual := USUAL.get(type(value))) is not None
            and _dispatch_keys(value) == DENSE
            and value.dtype in NUMPY_TYPES
        ):
            array: Array = value.detach().numpy()
            return PackedArray(array if 0 not in array.strides else array.copy(), usual, value.requires_grad)
        if not isinstance(value, torch.Tensor) or isinstance(value, UninitializedTensorMixin):
            return None
        if problem := _problem(value):
            raise TypeError(problem)
        kind = type(value)
        if kind in USUAL:
            plain = value.detach()
        else:
            with torch._C.DisableTorchFunctionSubclass():
                plain = value.detach().as_subclass(torch.Tensor)
        name = "" if value.dtype in NUMPY_TYPES else str(value.dtype).removeprefix("torch.")
        details = (None if kind is torch.Tensor else kind, name)
        if plain.is_cpu:
            return PackedArray(_array(plain), details, value.requires_grad)
        return PackedArray(_array(_on_host(plain)), details, value.requires_grad, device_name(value.device))

    @recorded
    def unpack(self, array: Array, details: tuple[Any, ...], requires_grad: bool) -> Any:
        """Return the tensor of a ``PackedArray`` that arrived, over the same memory.

        Args:
            array, details, requires_grad: see ``ArrayLibrary.unpack``.
        """
        kind, name = details
        tensor = _tensor(array, name)
        if kind is not None:
            tensor = tensor.as_subclass(kind)
        return tensor.requires_grad_(requires_grad)

    def reduction(self, value: Any, same_main: bool) -> tuple[Any, ...] | None:
        """Return how pickle is to make a function or module of TorchScript; ``None`` for other objects.

        Args:
            value, same_main: see ``ArrayLibrary.reduction``.
        """
        return reduction_of(value, same_main)

    def take_apart(self, value: Any) -> tuple[Any, ...] | None:
        """Return the parts of a sparse tensor; ``None`` for others.

        Args:
            value: an object of PyTorch.
        """
        if (
            not isinstance(value, torch.Tensor)
            or value.layout is torch.strided
            or _unusual(value)
            or not is_sparse(value)
        ):
            return None
        return parts_of(value)

    def put_together(self, *parts: Any) -> Any:
        """Return the sparse tensor of parts that arrived.

        Args:
            parts: see ``made_of``.
        """
        return made_of(*parts)

    def is_neutral(self) -> bool:
        """Return whether this thread records operations, and has no mode that sees or changes them."""
        modes = torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack()
        recorded = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
        return recorded and not modes and not torch._C._are_functorch_transforms_active()

    def is_at_hand(self, value: Any) -> bool:
        """Return whether a tensor is dense, and in the memory of the CPU.

        Args:
            value: see ``ArrayLibrary.is_at_hand``.
        """
        return bool(value.is_cpu and value.layout is torch.strided)

    def memory(self, value: Any) -> Array:
        """Return the elements of a tensor, to be read and written in place.

        Args:
            value: an object of PyTorch.

        Raises:
            TypeError: it is no tensor; or not on the CPU, sparse, of a type that NumPy does not have, or without elements of
                its own.
        """
        if not isinstance(value, torch.Tensor) or isinstance(value, UninitializedTensorMixin):
            raise TypeError(f"PyTorch's {type(value).__name__} is no tensor with elements")
        problem = _problem(value)
        if not problem and not value.is_cpu:
            problem = f"it is on {value.device}, and not in the memory of the CPU; use tensor.cpu()"
        elif not problem and value.dtype is torch.bfloat16 and bfloat16 is None:
            problem = "it is a tensor of torch.bfloat16, which needs the package ml_dtypes; install it, or use float32"
        elif not problem and value.dtype not in NUMPY_TYPES and value.dtype is not torch.bfloat16:
            problem = f"it is a tensor of {value.dtype}, which NumPy does not have; use float32"
        elif not problem and (value.is_conj() or value.is_neg() or (0 in value.stride() and value.numel())):
            problem = "its elements share memory, or are conjugated when they are read; use tensor.clone()"
        if problem:
            raise TypeError(problem)
        plain = value.detach()
        array: Array = (
            plain.view(torch.int16).numpy().view(bfloat16) if plain.dtype is torch.bfloat16 else plain.numpy()
        )
        return array

    def changed(self, value: Any) -> None:
        """Let a backward that needs the former elements raise PyTorch's error."""
        torch.autograd.graph.increment_version(value)

    def to_device(self, value: Any, device: str) -> Any:
        """Return a tensor that arrived, moved to a device. PyTorch records the move, so gradients take it backwards.

        Args:
            value, device: see ``ArrayLibrary.to_device``.

        Raises:
            MissingDeviceError: PyTorch has no such device here, or this process was forked from one that had used CUDA.
        """
        wanted, count = torch.device(device), torch.cuda.device_count()
        if wanted.type == "cuda":
            check_forked("CUDA with PyTorch")
        if wanted.type == "cuda" and (wanted.index or 0) >= count:
            raise MissingDeviceError(
                f"device_maps place it on {device!r}, but PyTorch there has {count} GPUs; correct device_maps, or "
                f"CUDA_VISIBLE_DEVICES there"
            )
        if not value.is_leaf:
            return value.to(wanted)
        moved = value.detach().to(wanted)
        return (moved if type(value) is torch.Tensor else moved.as_subclass(type(value))).requires_grad_(
            value.requires_grad
        )

    @recorded
    def connect(self, array: Array, details: tuple[Any, ...], edge: Edge) -> Any:
        """Return the tensor of one that arrived as the output of a node. It is no parameter, because it is no leaf.

        Args:
            array, details, edge: see ``ArrayLibrary.connect``.
        """
        kind, name = details
        apply = Arrived.apply if torch._C._are_functorch_transforms_active() else apply_arrived
        tensor = apply(ANCHOR, array, name, edge)
        return tensor if kind is None or issubclass(kind, torch.nn.Parameter) else tensor.as_subclass(kind)


_dispatch_keys: Any = torch._C._dispatch_keys

with torch.inference_mode(False):  # input of the nodes of all tensors that arrived, so that PyTorch records them
    ANCHOR = torch.empty(0, requires_grad=True, device="cpu")
    DENSE = _dispatch_keys(ANCHOR)  # those of all dense tensors in the memory of the CPU, and of no others


class Arrived(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """Node of a tensor that arrived in an autograd context. PyTorch's engine stops here, and ours goes on at ``edge``.

    A tensor that was not a leaf can be changed in place, so the tensor is the result of this node, and no leaf.
    """

    @staticmethod
    def forward(ctx: Any, anchor: torch.Tensor, array: Array, name: str, edge: Edge) -> torch.Tensor:
        """Return the tensor.

        Args:
            ctx: the node.
            anchor: ``ANCHOR``.
            array: the elements.
            name: name of a type unknown to NumPy.
            edge: node and slot to which the gradient goes.
        """
        ctx.edge = edge
        return _tensor(array, name)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Refuse a backward of this process alone.

        Args:
            ctx, grads: as PyTorch gives them.

        Raises:
            AutogradError: always.
        """
        raise AutogradError(
            "this graph continues on another worker; call autograd_dist.backward(context_id, [loss]) instead of "
            "loss.backward()"
        )


# ``Arrived.apply`` without what it does for transforms of torch.func: it looks for their wrappers among the arguments.
apply_arrived: Any = super(torch.autograd.Function, Arrived).apply


def _problem(value: torch.Tensor) -> str:
    """Return why a tensor has no elements to be sent; empty if it has."""
    if problem := _unusual(value):
        return problem
    if is_sparse(value):
        return f"it is a sparse tensor ({value.layout}); use tensor.to_dense(), or its indices and values"
    if value.layout is not torch.strided:
        return f"its elements are laid out for one library ({value.layout}); send tensor.to_dense()"
    return ""


def _unusual(value: torch.Tensor) -> str:
    """Return why neither a tensor nor its parts can be sent; empty if they can."""
    kind = type(value)
    if torch._C._functorch.is_functorch_wrapped_tensor(value):
        return "it is a tensor inside a transform of torch.func (vmap, grad, ...); send it outside of the transform"
    if kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ or torch._is_functional_tensor(value):
        return f"PyTorch's {kind.__name__} is no tensor with memory of its own; send a torch.Tensor made from it"
    if value.is_nested:
        return "it is a nested tensor; send the list of its parts, tensor.unbind()"
    if value.is_quantized:
        return f"it is a quantized tensor ({value.dtype}); send tensor.dequantize(), or its int_repr() and scale"
    if value.device.type == "meta":
        return "it is a meta tensor, which has a shape and no elements"
    return ""


def _on_host(plain: torch.Tensor) -> torch.Tensor:
    """Return the elements of a tensor on a device in memory of the host, which a GPU can write fast."""
    return torch.empty_like(plain, device="cpu", pin_memory=plain.is_cuda).copy_(plain)


def _array(plain: torch.Tensor) -> Array:
    """Return the elements of a tensor without history, over the same memory unless they overlap or are to be conjugated."""
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if 0 in plain.stride():
        plain = plain.contiguous()  # an expanded tensor arrives with all its elements
    if plain.dtype not in NUMPY_TYPES:
        plain = plain.view(TORCH_INTEGERS[plain.element_size()])
    array: Array = plain.numpy()
    return array


def _tensor(array: Array, name: str) -> torch.Tensor:
    tensor = torch.from_numpy(array if array.flags.writeable else np.array(array))
    if not name:
        return tensor
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise TypeError(
            f"a tensor of torch.{name} arrived, and PyTorch {torch.__version__} here does not have that type"
        )
    return tensor.view(dtype)


library = TorchTensors()
