"""Names for extenders: the parts of new operations, nodes and backward passes.

Users import from ``telegrad``. Code that adds an operation, cuts the graph (as distributed autograd does) or runs a
backward pass imports from here.
"""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .array_like import ArrayLike, as_array, change, holds, strided, within, write
from .array_memory import address as memory_address
from .array_memory import aligned as aligned_memory
from .array_memory import storage as memory_owner
from .autograd.accumulate import AccumulateGrad, accumulate_grad, divert
from .autograd.anomaly import anomaly_mode, detect_anomaly
from .autograd.edges import attach, gradient_edge
from .autograd.engine import GraphTask
from .autograd.grad_mode import is_grad_enabled
from .autograd.hooks import HookTable, RemovableHandle
from .autograd.leaf_gradient import BorrowedGradient
from .autograd.node import Edge, Edges, Node
from .autograd.sparse_leaves import leaf_with
from .autograd.unwatched import ignore_changes
from .devices import check_device
from .dtypes import bfloat16, dtype_by_name, wide
from .interception import ArgumentCast, TensorFunctionMode, Watcher, intercepted, plain, set_argument_cast, watchers
from .interception import entered as interceptors_entered
from .ops.index.array_elements import add_at
from .ops.reduce.cumulative import add_runs, write_sums
from .ops.reduce.losses import check_broadcast, check_reduction, reduced
from .ops.special.exponential_arrays import expm1_negative, log1p_exp
from .ops.special.single_error_arrays import normal_share
from .ops.table.array_functions import column_sums, row_dots, row_maxima, row_sums
from .ops.table.blockwise import blockwise
from .ops.table.dims import one_dim
from .ops.table.factories import binary, comparison, unary
from .ops.table.fused import fused
from .ops.table.in_place import inplace
from .ops.table.in_place_history import changed
from .ops.table.nodes import keep, keep_result, record, records
from .ops.table.operation import operation
from .ops.table.registry import OPERATIONS
from .ops.table.row_buffers import RowBuffers, in_row_buffers, row_buffer
from .ops.table.rows import ARRAYS, TENSORS, Row
from .ops.table.watched import watched
from .profiler.calls import RecordedCall, end_calls, record_call, take_calls
from .profiler.names import operation_name
from .profiler.scope import profiles, recorded_by
from .random import Generator
from .tensors import Tensor
from .tensors.copying import rebuild
from .types import Array

if TYPE_CHECKING:
    from .autograd.drawing import node_label, nodes_below, svg_box, svg_curve, svg_page
    from .autograd.layout import Layout
    from .autograd.progress import progress_of
else:  # few programs draw graphs, or are observed
    __getattr__ = late_imports(
        __name__,
        {
            **dict.fromkeys(("node_label", "nodes_below", "svg_box", "svg_curve", "svg_page"), "..autograd.drawing"),
            "Layout": "..autograd.layout",
            "progress_of": "..autograd.progress",
        },
    )

__all__ = [
    "Layout",
    "ARRAYS",
    "OPERATIONS",
    "TENSORS",
    "AccumulateGrad",
    "ArgumentCast",
    "Array",
    "ArrayLike",
    "BorrowedGradient",
    "Edge",
    "Edges",
    "Generator",
    "GraphTask",
    "HookTable",
    "Node",
    "RecordedCall",
    "RemovableHandle",
    "Row",
    "RowBuffers",
    "Tensor",
    "TensorFunctionMode",
    "Watcher",
    "add_at",
    "add_runs",
    "aligned_memory",
    "accumulate_grad",
    "anomaly_mode",
    "as_array",
    "attach",
    "binary",
    "blockwise",
    "change",
    "changed",
    "check_broadcast",
    "check_reduction",
    "check_device",
    "column_sums",
    "comparison",
    "detect_anomaly",
    "divert",
    "bfloat16",
    "dtype_by_name",
    "expm1_negative",
    "fused",
    "holds",
    "end_calls",
    "gradient_edge",
    "ignore_changes",
    "in_row_buffers",
    "inplace",
    "intercepted",
    "interceptors_entered",
    "is_grad_enabled",
    "keep",
    "keep_result",
    "leaf_with",
    "log1p_exp",
    "memory_address",
    "memory_owner",
    "node_label",
    "nodes_below",
    "normal_share",
    "one_dim",
    "operation",
    "plain",
    "profiles",
    "progress_of",
    "rebuild",
    "set_argument_cast",
    "record",
    "operation_name",
    "record_call",
    "recorded_by",
    "records",
    "reduced",
    "row_buffer",
    "row_dots",
    "row_maxima",
    "row_sums",
    "strided",
    "svg_box",
    "svg_curve",
    "svg_page",
    "unary",
    "take_calls",
    "watched",
    "watchers",
    "wide",
    "within",
    "write",
    "write_sums",
]
