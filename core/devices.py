"""Devices. All tensors are on the CPU; other devices have names only, so that programs can ask for them."""

from __future__ import annotations

from typing import Any

__all__ = ["device"]


class device(str):  # noqa: N801 - PyTorch's name
    """A device, ``device("cpu")`` or ``device("cuda", 0)``: a string, so it equals its name.

    Any device can be named. Making or moving a tensor elsewhere than to the CPU raises ``ValueError``.

    Attributes:
        type: the kind of device, such as ``"cpu"``.
        index: the number of the device among its kind, or ``None``.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None  # type: ignore[assignment]  # in place of ``str.index``

    def __new__(cls, device: str, index: int | None = None) -> device:
        """
        Raises:
            ValueError: the name is not ``"kind"`` or ``"kind:number"``, or has a number and ``index`` is given too.
        """
        kind, colon, number = str(device).partition(":")
        if not kind.isalpha() or (colon and not number.isdecimal()) or (colon and index is not None):
            raise ValueError(f'device() takes "cpu", "cpu:0", or ("cpu", 0), and you gave {(device, index)}')
        which = int(number) if colon else index
        self = super().__new__(cls, kind if which is None else f"{kind}:{which}")
        self.type, self.index = kind, which
        return self

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.type, self.index)


CPU = device("cpu")


def check_device(device: Any) -> None:
    """Check that a requested device is the CPU, so that no program believes that it runs elsewhere.

    Raises:
        ValueError: ``device`` is neither the CPU nor ``None``.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise ValueError(f"there is no device {str(device)!r}; all tensors are on the cpu")
