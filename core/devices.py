"""``device``: where tensors live, which is the CPU."""

from __future__ import annotations

from typing import Any

__all__ = ["device"]


class device(str):  # noqa: N801 - PyTorch's name
    """``device("cpu")``: the CPU, and equal to its name.

    Args:
        type: ``"cpu"``, ``"cpu:0"`` or such a device.
        index: has no meaning.

    Attributes:
        type: ``"cpu"``.
        index: ``None``.

    Raises:
        ValueError: a device other than the CPU.
    """

    __slots__ = ()

    type = "cpu"
    index = None  # type: ignore[assignment]  # which hides str.index

    def __new__(cls, type: Any = "cpu", index: int | None = None) -> device:
        check_device(type)
        return super().__new__(cls, "cpu")

    def __repr__(self) -> str:
        return "device(type='cpu')"


def check_device(device: Any) -> None:
    """Tensors live on the CPU; elsewhere is an error, so that no program believes that it runs there.

    Raises:
        ValueError: a device other than the CPU.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise ValueError(f"there is no device {device!r}; tensors live on the cpu")


CPU = device()
