"""``block_lines``: the lines of a statement that runs block by block."""

from __future__ import annotations

from typing import Protocol

from .blocks import Blocks, cut, flattened, written_back
from .values import Kind, Statement, Value


class Writer(Protocol):
    """The part of a ``Source`` that the lines need.

    Attributes:
        views: lines that are run once for each set of buffers.
        renamed: names of values in the place of the usual ones.
    """

    views: list[str]
    renamed: dict[int, str]

    def name(self, value: Value) -> str:
        """Return the name of a value."""

    def constant(self, value: object) -> str:
        """Return the name of a constant."""

    def call(self, statement: Statement, out: str = "") -> str:
        """Return the call of a statement, which writes to ``out``."""

    def placed(self, value: Value) -> bool:
        """Return whether a result lies in a buffer, which has its name from now on."""

    def over(self, value: Value) -> Value | None:
        """Return the operand in whose memory a large result is written; ``None`` if it has its own."""

    def is_static(self, value: Value) -> bool:
        """Return whether a value is the same object in each replay."""

    def scratch(self, value: Value, slot: int, size: int) -> str:
        """Return the name of memory for a block of a value: ``size`` bytes, which all values with one slot share."""


def block_lines(source: Writer, blocks: Blocks) -> list[str]:
    """Return the lines: a loop over the blocks, with the calls in it. Views of memory that stays are made once.

    Args:
        source: gets the names.
        blocks: the statement.
    """
    lines = [_memory(source, value) for value in blocks.made() if not source.placed(value)]
    slots, sizes = blocks.slots()
    inner = {value.number: value for value in blocks.inner}
    divided = [value for number, value in blocks.operands().items() if number not in inner]
    static = [value for value in divided if source.is_static(value)]
    others = [value for value in divided if not source.is_static(value)]
    scratch = [source.scratch(blocks.block_of(inner[number]), slot, sizes[slot]) for number, slot in slots.items()]
    names = {value.number: f"b{value.number}" for value in [*divided, *inner.values()]}
    first = blocks.parts[0].result or blocks.parts[0].target
    assert first is not None
    loop = f"loop{first.number}_{len(source.views)}"
    given = f"{blocks.flat}, {blocks.length}, {blocks.step}"
    arrays = "".join(f"{source.name(value)}, " for value in static)
    source.views.append(
        f"{loop} = {source.constant(cut)}({given}, ({arrays}), ({''.join(f'{each}, ' for each in scratch)}))"
    )
    wholes = {value.number: source.name(value) for value in others}
    for value in others if blocks.flat else ():
        wholes[value.number] = f"f{value.number}"
        lines.append(f"f{value.number} = {source.constant(flattened)}({source.name(value)})")
    targets = ["place", *[names[value.number] for value in static], *[names[number] for number in slots]]
    lines.append(f"for {', '.join(targets)}, in {loop}:")
    lines += [f"    {names[value.number]} = {wholes[value.number]}[place]" for value in others]
    source.renamed = names
    lines += [f"    {_line(source, part)}" for part in blocks.parts]
    source.renamed = {}
    changed = {part.target.number for part in blocks.parts if part.target is not None}
    for value in others if blocks.flat else ():
        if value.number in changed:
            lines.append(f"{source.constant(written_back)}({source.name(value)}, {wholes[value.number]})")
    if others:
        held = [names[value.number] for value in others] + [wholes[value.number] for value in others if blocks.flat]
        held += [
            f"b{part.result.number}" for part in blocks.parts if part.kind is Kind.VIEW and part.result is not None
        ]
        lines.append(f"{' = '.join(held)} = None")
    return lines


def _memory(source: Writer, value: Value) -> str:
    """Return the line that makes the memory of a result."""
    operand = source.over(value)
    if operand is not None:
        return f"{source.name(value)} = {over(source, operand, value)}"
    return f"{source.name(value)} = empty({tuple(value.shape)}, {source.constant(value.dtype)})"


def over(source: Writer, operand: Value, value: Value) -> str:
    """Return the memory of an operand as that of a result, which may have another dtype of that size."""
    name = source.name(operand)
    return name if operand.dtype == value.dtype else f"{name}.view({source.constant(value.dtype)})"


def _line(source: Writer, part: Statement) -> str:
    value = part.result
    if value is None:
        return source.call(part)
    name = source.renamed.setdefault(value.number, f"b{value.number}")
    return f"{name} = {source.call(part)}" if part.kind is Kind.VIEW else source.call(part, name)
