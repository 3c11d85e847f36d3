"""``LIMITS``: the sizes at which a plan treats arrays in other ways. Random programs are checked with lower ones, too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Limits:
    """Sizes, in bytes where nothing else is said.

    Attributes:
        large: results from this size on have new memory in each replay, and are made again or made later.
        smaller: the same for programs whose large results need ``much``: to make memory takes little of their
            time. Names of arrays of this size are dropped as soon as they are not needed.
        much: see ``smaller``.
        use: of a large result, for each statement that uses it, at least: views of new memory are made in each replay, too.
        block: one array in a block of a chain. Of 128 KiB and this, this was the faster, on a processor with 1 MiB of cache a
            core: 2.6 and 3.1 ms for 24 calls on 4 MiB.
        chain: the largest array of a chain, at least. Smaller ones take more time in blocks, as views have to be made.
        group: elements. NumPy's vector loops compute this many or a divisor of it at once. Blocks of multiples of it are
            computed in the same groups as the whole array, which matters where a loop computes a group in another way if one
            of its elements is large.
        rounded: whether functions whose rounding may depend on the loop are in chains.
        late: size of a gradient that is made later, in relation to the operands that are kept for it.
        again: other large results that are made before one is made again, in relation to its size.
        operand: an operand of up to this size is kept for that.
    """

    large: int = 1 << 18
    smaller: int = 1 << 16
    much: int = 1 << 24
    use: int = 1 << 13
    block: int = 1 << 18
    chain: int = 1 << 20
    group: int = 64
    rounded: bool = True
    late: float = 2
    again: float = 4
    operand: int = 1 << 16


LIMITS = Limits()
