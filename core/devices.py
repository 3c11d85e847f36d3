"""Devices: where tensors live. Here that is the CPU; the names are there so that programs ask, and are answered."""

from __future__ import annotations

from typing import Any

__all__ = ["device"]


class device(str):  # noqa: N801 - PyTorch's name
    """A place for tensors, ``device("cpu")`` or ``device("cuda", 0)``: its own name, so it equals that string.

    Any place can be named. Making or moving a tensor elsewhere than to the CPU is a ``ValueError``.

    Attributes:
        type: the kind of place, ``"cpu"``.
        index: which of its kind, or ``None``.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None  # type: ignore[assignment]  # instead of the strings' search

    def __new__(cls, device: str, index: int | None = None) -> device:
        """
        Raises:
            ValueError: the name is no ``"kind"`` or ``"kind:number"``, or has a number and ``index`` is given too.
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
    """Tensors live on the CPU; elsewhere is an error, so that no program believes that it runs there.

    Raises:
        ValueError: a device other than the CPU.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise ValueError(f"there is no device {str(device)!r}; tensors live on the cpu")
