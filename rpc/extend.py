"""Interface for extensions of the agent: lanes, interceptors, request methods, control topics, and ways to make agents."""

from .agent import Agent, agent_variable
from .backend_registry import BackendType, find_backend, init_backend
from .calling import (
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
from .current import agents as open_agents
from .current import current_agent, rpc_agents
from .dynamic_group import DynamicGroup
from .expulsion import record as record_expulsion
from .gathering import Gathering
from .intervals import IntervalSet
from .lanes.base import Connection, FrameHandle, Lane, LaneListener
from .lanes.inproc import InProcessLane, InProcessNetwork
from .lanes.registry import DEFAULT_LANES, make_lanes, register_lane
from .messages import Incoming, Interceptor, Method, Outgoing
from .options import UNSET_RPC_TIMEOUT, GrpcRpcBackendOptions, RpcBackendOptions
from .peer import Peer
from .pool import Executor
from .producing import Producers
from .remote_warnings import RemoteWarnings, collect_warnings
from .rendezvous import Plan, plan_rendezvous
from .replies import check_future
from .security import PROTOCOL
from .server_call import ServerCall
from .shutdown import Shutdown, shut_down
from .streaming import AHEAD, Stream, open_stream
from .timers import Batch
from .wire.failures import RemoteTraceback, callees_traceback
from .wire.header import Flag, Kind
from .worker_info import WorkerInfo, check_name
from .worker_records import WorkerRecords

__all__ = [
    "AHEAD",
    "DEFAULT_LANES",
    "PROTOCOL",
    "UNSET_RPC_TIMEOUT",
    "Agent",
    "BackendType",
    "Batch",
    "Connection",
    "DynamicGroup",
    "Executor",
    "Flag",
    "Gathering",
    "GrpcRpcBackendOptions",
    "LaneListener",
    "InProcessLane",
    "InProcessNetwork",
    "Incoming",
    "Interceptor",
    "IntervalSet",
    "Kind",
    "Lane",
    "Method",
    "Later",
    "Outgoing",
    "Peer",
    "Plan",
    "Producers",
    "RemoteTraceback",
    "RemoteWarnings",
    "RpcBackendOptions",
    "ServerCall",
    "Stream",
    "Shutdown",
    "FrameHandle",
    "WorkerInfo",
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
    "is_async_execution",
    "label_parts",
    "open_agents",
    "open_request",
    "open_stream",
    "make_lanes",
    "name_of",
    "plan_rendezvous",
    "register_lane",
    "record_expulsion",
    "request_body",
    "resolve_timeout",
    "rpc_agents",
    "serve_calls",
    "shut_down",
]
