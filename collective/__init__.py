"""Process groups: tensors that all ranks of a job combine and exchange (``torch.distributed``)."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports

if TYPE_CHECKING:
    from ..agents import init_process_group
    from . import optim as optim
    from . import parallel as parallel
    from .collectives import (
        all_gather,
        all_gather_into_tensor,
        all_reduce,
        all_to_all,
        all_to_all_single,
        barrier,
        broadcast,
        gather,
        reduce,
        reduce_scatter,
        reduce_scatter_tensor,
        scatter,
    )
    from .elastic import ElasticTraining as ElasticTraining
    from .group import ProcessGroup, Work
    from .joining import Join, Joinable, JoinHook
    from .messages import irecv, isend, recv, send
    from .objects import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
    from .reduction import ReduceOp
    from .registry import (
        GroupMember,
        destroy_process_group,
        get_backend,
        get_global_rank,
        get_group_rank,
        get_process_group_ranks,
        get_rank,
        get_world_size,
        is_available,
        is_initialized,
        new_group,
    )
else:
    # Each agent can take part in groups, and imports this package for the numbers of its methods; few do.
    __getattr__ = late_imports(
        __name__,
        {
            "ElasticTraining": ".elastic",
            "optim": ".optim",
            "parallel": ".parallel",
            **dict.fromkeys(
                (
                    "all_gather",
                    "all_gather_into_tensor",
                    "all_reduce",
                    "all_to_all",
                    "all_to_all_single",
                    "barrier",
                    "broadcast",
                    "gather",
                    "reduce",
                    "reduce_scatter",
                    "reduce_scatter_tensor",
                    "scatter",
                ),
                ".collectives",
            ),
            **dict.fromkeys(
                (
                    "ProcessGroup",
                    "Work",
                ),
                ".group",
            ),
            **dict.fromkeys(
                (
                    "Join",
                    "Joinable",
                    "JoinHook",
                ),
                ".joining",
            ),
            **dict.fromkeys(
                (
                    "irecv",
                    "isend",
                    "recv",
                    "send",
                ),
                ".messages",
            ),
            **dict.fromkeys(
                (
                    "all_gather_object",
                    "broadcast_object_list",
                    "gather_object",
                    "scatter_object_list",
                ),
                ".objects",
            ),
            **dict.fromkeys(("ReduceOp",), ".reduction"),
            **dict.fromkeys(
                (
                    "GroupMember",
                    "destroy_process_group",
                    "get_backend",
                    "get_global_rank",
                    "get_group_rank",
                    "get_process_group_ranks",
                    "get_rank",
                    "get_world_size",
                    "is_available",
                    "is_initialized",
                    "new_group",
                ),
                ".registry",
            ),
        },
    )

__all__ = [
    "ElasticTraining",
    "GroupMember",
    "Join",
    "JoinHook",
    "Joinable",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
]
