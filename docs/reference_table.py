"""Packages of the API reference, in order: an object that two of them export is documented by the first."""

PACKAGES = {
    "telegrad.rpc": "Remote calls, references and streams; who is in the job.",
    "telegrad.rpc.functions": "Marks of functions that are called remotely.",
    "telegrad.rpc.backend_registry": "Agents of other kinds, as in PyTorch.",
    "telegrad.autograd_dist": "Gradients through remote calls, and optimizers of remote parameters.",
    "telegrad.collective": "Process groups: what all ranks of a job do together.",
    "telegrad.collective.optim": "Optimizers for process groups.",
    "telegrad.pipelining": "Models in stages on different workers.",
    "telegrad.checkpoint": "The state of a training in a folder.",
    "telegrad.launcher": "Start of worker processes from a program.",
    "telegrad.data": "Datasets, samplers and loaders.",
    "telegrad.nn": "Modules: layers, losses, containers.",
    "telegrad.nn.functional": "Layers and losses as functions.",
    "telegrad.nn.init": "Initial values of parameters.",
    "telegrad.nn.parallel": "Equal models on all ranks.",
    "telegrad.nn.utils": "Gradients clipped, parameters as vectors, weights reparametrized.",
    "telegrad.nn.utils.parametrizations": "Parametrizations of weights.",
    "telegrad.nn.utils.parametrize": "Parameters that are functions of others.",
    "telegrad.nn.utils.prune": "Weights set to zero.",
    "telegrad.nn.utils.rnn": "Sequences of different lengths.",
    "telegrad.optim": "Optimizers of one process.",
    "telegrad.optim.lr_scheduler": "Schedules of learning rates.",
    "telegrad.distributions": "Probability distributions.",
    "telegrad.distributions.constraints": "Sets of values that parameters and samples may have.",
    "telegrad.func": "Transforms of functions: derivatives and vectorization.",
    "telegrad.amp": "Mixed precision.",
    "telegrad": "Tensors and their operations.",
    "telegrad.linalg": "Linear algebra.",
    "telegrad.fft": "Fourier transforms.",
    "telegrad.special": "Special functions.",
    "telegrad.masked": "Reductions of the elements that a mask names.",
    "telegrad.sparse": "Sparse tensors.",
    "telegrad.signal": "Window functions, below the name ``windows``.",
    "telegrad.autograd": "Gradients in one process.",
    "telegrad.autograd.graph": "The recorded graph.",
    "telegrad.autograd.functional": "Derivatives of functions, computed at once.",
    "telegrad.autograd.forward_ad": "Derivatives forward.",
    "telegrad.capture": "Calls recorded once and replayed.",
    "telegrad.futures": "Values that arrive later.",
    "telegrad.errors": "Errors that programs can catch.",
    "telegrad.profiler": "Times, shapes and memory of operations and calls.",
    "telegrad.allocator": "How freed memory is kept.",
    "telegrad.cuda": "Answers for programs that ask for a GPU: there is none.",
    "telegrad.rref": "More about references.",
    "telegrad.interop": "Arrays of other libraries.",
    "telegrad.interop.jax": "Functions of JAX in distributed autograd.",
    "telegrad.testing": "Tools for tests of distributed programs.",
    "telegrad.testing.simulator": "Jobs on a simulated clock and network.",
}

# Exported, but not for programs: parts that other packages need. They may change in any version.
INTERNAL = {
    "telegrad": "bfloat16",  # there where ml_dtypes is
    "telegrad.futures": """WAIT_CODE Blocker Canceller Driver ProgramClock Waiter attempt attempt_async block broke_protected
        complete_once copy_error copy_outcome direct_dependents in_thread free interruptible interrupts_protected
        raised_by_handler refuse_in_handler run_callbacks shield opens program_clock thread_role wait_for_outcomes""",
    "telegrad.autograd": "GraphTask attach push_forward reached",
    "telegrad.autograd.functional": "Function Inputs",
    "telegrad.errors": "as_runtime_error original_error",
    "telegrad.allocator": "ENVIRONMENT share_arenas",
    "telegrad.cuda": "NO_GPU USES_A_GPU",
}

# Documented by a later package than the first that has them.
ELSEWHERE = {"telegrad.nn.functional": "sigmoid tanh"}

# Pages of packages with many names, by folders of ``core/ops`` and files; the rest is "General".
FAMILIES = {
    "telegrad": {
        "Creation": "create",
        "Element by element": "elementwise",
        "Indexing": "index",
        "Linear algebra": "linalg",
        "Random numbers": "random",
        "Reductions": "reduce",
        "Shapes": "shape",
        "Special functions and spectra": "special spectral",
        "Layers": "window linear normalization pixels grid_sampling native layer_norm piecewise activation distance",
        "Tensor": "tensor",
        "Data types and constants": "constants devices dtype_names dtypes size",
    },
    "telegrad.nn": {
        "Activations": "activation softmax adaptive_softmax",
        "Containers": "module containers parameter parameter_containers hooks errors data_parallel",
        "Layers": "linear convolution embedding embedding_bag recurrent recurrent_cells attention transformer dropout lazy",
        "Losses": "loss class_loss embedding_loss linear_cross_entropy",
        "Normalization": "batch_normalization normalization",
        "Pooling and shapes": "pooling fractional_pooling unpooling padding reshaping",
    },
    "telegrad.nn.functional": {
        "Activations": "activation gelu piecewise softmax elementwise",
        "Layers": """linear embedding embedding_bag attention multi_head dropout pixels grid_sampling distance shape reduce
            linalg core""",
        "Losses": "loss class_loss embedding_loss ctc linear_cross_entropy",
        "Normalization": "batch_norm layer_norm normalization",
        "Convolution and pooling": "window pooling convolution",
    },
}

# Packages of PyTorch that ``telegrad.compat.torch`` has as modules of its own.
TORCH = {
    "distributed": "collective",
    "distributed.rpc": "rpc",
    "distributed.optim": "autograd_dist",
    "nn.functional": "nn.functional",
    "nn.init": "nn.init",
    "nn.utils": "nn.utils",
    "nn.parallel": "nn.parallel",
    "optim.lr_scheduler": "optim.lr_scheduler",
    "autograd.graph": "autograd.graph",
    "autograd.functional": "autograd.functional",
    "autograd.forward_ad": "autograd.forward_ad",
    "multiprocessing": "launcher",
}

# Sections by what users look for; other names stand under the file in which they are written.
GROUPS = {
    "telegrad.rpc": {
        "Calls": "rpc_sync rpc_async remote stream Stream map get_rpc_timeout _set_rpc_timeout CurrentCall current_call",
        "References": "RRef value",
        "Calls to many workers": "mesh Mesh ValueMesh sharded scattered",
        "Buffers": "Buffer",
        "Joining and leaving a job": """init_rpc init_rpc_async shutdown shutdown_async wait_for_workers
            wait_for_workers_async leave_requested GrpcRpcBackendOptions RpcBackendOptions BackendType TlsFiles""",
        "Workers": "WorkerInfo get_worker_info get_worker_infos on_worker_joined on_worker_lost",
        "All workers together": "_barrier _barrier_async _all_gather _all_gather_async _wait_all",
        "Calls after a failure": "RetryPolicy idempotent exactly_once CallJournal call_journal",
        "Watching": "observe why debug_info set_trace trace_calls metrics serve_metrics _server_process_global_profile",
    },
    "telegrad.collective": {
        "Groups": """init_process_group destroy_process_group new_group is_available is_initialized get_backend get_rank
            get_world_size get_global_rank get_group_rank get_process_group_ranks ProcessGroup GroupMember Work ReduceOp""",
        "Tensors": """all_reduce broadcast reduce all_gather all_gather_into_tensor gather scatter reduce_scatter
            reduce_scatter_tensor all_to_all all_to_all_single barrier""",
        "Messages": "send recv isend irecv",
        "Objects": "all_gather_object broadcast_object_list gather_object scatter_object_list",
        "Uneven inputs": "Join Joinable JoinHook",
        "Jobs that change size": "ElasticTraining",
    },
}
