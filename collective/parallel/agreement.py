"""Equal modules on all ranks: the same parameters and buffers, with the values of one rank."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from ...base.errors import CollectiveError
from ...core import Tensor
from ..arrays import describe, fill, flat
from ..group import ProcessGroup

Named = Sequence[tuple[str, Tensor]]


def check_equal(group: ProcessGroup, tensors: Named) -> None:
    """Check that all ranks have tensors of the same names, shapes and dtypes, and that require grad alike.

    Raises:
        CollectiveError: they have not; the message names the first difference.
    """
    mine = [f"{name}: {describe(tensor)}{'' if tensor.requires_grad else ' (fixed)'}" for name, tensor in tensors]
    everybody = group.all_gather(group.begin("DistributedDataParallel", None), mine)
    for index, theirs in enumerate(everybody):
        for first, other in zip_longest(everybody[0], theirs):
            if first != other:
                raise CollectiveError(
                    f"the module differs from rank to rank: rank {group.ranks[0]} has {first or 'nothing more'!r} where rank "
                    f"{group.ranks[index]} has {other or 'nothing more'!r}; make the same module everywhere"
                )


def copy_from(group: ProcessGroup, tensors: Named, source: int, what: str) -> None:
    """Give every rank the values of one.

    Args:
        group: the ranks.
        tensors: of equal shapes and dtypes on all ranks; changed, but at the source.
        source: index of the rank.
        what: names the tensors in errors.
    """
    if not tensors or group.size() == 1:
        return
    rows: Any = [flat(tensor) for _, tensor in tensors]
    given = group.broadcast(group.begin(f"broadcast of {what}", f"{len(rows)} tensors"), rows, source)
    if group.index != source:
        for (_, tensor), row in zip(tensors, given, strict=True):
            fill(tensor, np.asarray(row))
