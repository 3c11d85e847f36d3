"""Interface for extensions of the agent: lanes, interceptors, request methods, control topics, and ways to make agents."""

from .agent import Agent
from .backend_registry import BackendType, find_backend, init_backend
from .calls.remote_warnings import RemoteWarnings, collect_warnings
from .calls.serving import ServerCall, check_future
from .current import agents as open_agents
from .current import current_agent, rpc_agents
from .debugging.debugger import Debugger
from .debugging.hooks import install as install_debugger
from .debugging.ide import IdeSessions
from .debugging.sampler import Sampler
from .exactly_once.call_journal import CallJournal
from .functions.calling import (
    Later,
    call_function,
    event_name,
    is_async_execution,
    label_parts,
    name_of,
    open_request,
    request_body,
    resolve_timeout,
    serve_calls,
)
from .functions.producing import Producers
from .functions.streaming import STREAM_AHEAD, Stream, open_stream
from .group.dynamic_group import DynamicGroup
from .group.gathering import Gathering
from .group.logged_group import LoggedGroup
from .group.membership import MembershipEvents
from .group.shutdown import Shutdown, shut_down
from .group.vacancies import Vacancies
from .lanes.frame import FRAME_LENGTH, FrameHandle, WaitingFrame
from .lanes.inproc import InProcessLane, InProcessNetwork
from .lanes.lane import Lane, LaneListener
from .lanes.pipe import Pipe
from .lanes.registry import DEFAULT_LANES, make_lanes, register_lane
from .lanes.session import Session
from .links.control_events import Received, Send, WorkerLost
from .links.intervals import IntervalSet
from .links.peer import Peer
from .links.worker_info import WorkerInfo, check_name
from .links.worker_records import WorkerRecords
from .losses.expulsion import record as record_expulsion
from .observing.command_socket import CommandSocket
from .observing.completions import ids_of_waits, keys_of_requests
from .observing.gather import UpperLayers, observe_worker
from .observing.observer import Observer
from .observing.records import (
    MOST_CHARACTERS,
    MOST_ROWS,
    ObservedContext,
    ObservedEdge,
    ObservedFrame,
    ObservedNodes,
    ObservedPass,
    ObservedReference,
    ObservedReferences,
    ObservedWait,
)
from .observing.thread_waits import place_of_frames
from .options import UNSET_RPC_TIMEOUT, GrpcRpcBackendOptions, RpcBackendOptions
from .rendezvous.meeting import Plan, plan_rendezvous
from .running import agent_variable
from .security.handshake import PROTOCOL
from .security.proofs import PROOF_BYTES, AcceptorProof, DialerProof, protocol_of
from .security.tls import tls_context
from .threads.pool import Executor
from .threads.timers import Batch
from .wire.failures import RemoteTraceback, callees_traceback
from .wire.header import Flag, FrameKind
from .wire.libraries.array_library import ArrayLibrary, LibraryTensor, PackedArray
from .wire.libraries.registry import MissingLibraryError, library_named, library_of, register_arrays
from .wire.messages import Incoming, Interceptor, Method, Outgoing

__all__ = [
    "STREAM_AHEAD",
    "DEFAULT_LANES",
    "FRAME_LENGTH",
    "MOST_CHARACTERS",
    "MOST_ROWS",
    "PROOF_BYTES",
    "PROTOCOL",
    "UNSET_RPC_TIMEOUT",
    "AcceptorProof",
    "Agent",
    "ArrayLibrary",
    "BackendType",
    "Batch",
    "CallJournal",
    "CommandSocket",
    "Debugger",
    "DialerProof",
    "DynamicGroup",
    "Executor",
    "Flag",
    "Gathering",
    "GrpcRpcBackendOptions",
    "LaneListener",
    "LoggedGroup",
    "IdeSessions",
    "InProcessLane",
    "InProcessNetwork",
    "Incoming",
    "Interceptor",
    "IntervalSet",
    "FrameKind",
    "Lane",
    "LibraryTensor",
    "MembershipEvents",
    "MissingLibraryError",
    "Method",
    "Later",
    "ObservedContext",
    "ObservedEdge",
    "ObservedNodes",
    "ObservedPass",
    "ObservedReference",
    "ObservedFrame",
    "ObservedReferences",
    "place_of_frames",
    "ObservedWait",
    "Observer",
    "Outgoing",
    "PackedArray",
    "Peer",
    "Pipe",
    "Plan",
    "Producers",
    "Received",
    "RemoteTraceback",
    "RemoteWarnings",
    "RpcBackendOptions",
    "Sampler",
    "Send",
    "ServerCall",
    "Session",
    "Stream",
    "Shutdown",
    "FrameHandle",
    "Vacancies",
    "WaitingFrame",
    "UpperLayers",
    "WorkerInfo",
    "WorkerLost",
    "WorkerRecords",
    "agent_variable",
    "call_function",
    "callees_traceback",
    "check_future",
    "check_name",
    "collect_warnings",
    "current_agent",
    "event_name",
    "find_backend",
    "init_backend",
    "install_debugger",
    "ids_of_waits",
    "is_async_execution",
    "keys_of_requests",
    "label_parts",
    "library_named",
    "library_of",
    "observe_worker",
    "open_agents",
    "open_request",
    "open_stream",
    "make_lanes",
    "name_of",
    "plan_rendezvous",
    "protocol_of",
    "register_arrays",
    "register_lane",
    "record_expulsion",
    "request_body",
    "resolve_timeout",
    "rpc_agents",
    "serve_calls",
    "shut_down",
    "tls_context",
]
