"""For those who extend the agent: lanes, interceptors, request methods, control topics, agents of one's own."""

from .agent import Agent, register_part
from .calling import call_function, is_async_execution, label_parts, open_request, request_body, resolve_timeout
from .current import agent_variable, current_agent
from .current import agents as open_agents
from .intervals import IntervalSet
from .lanes.base import Connection, Host, Lane, Ticket, register_lane
from .lanes.inproc import InProcessLane, InProcessNetwork
from .messages import Flag, Incoming, Interceptor, Kind, Method, Outgoing, Topic
from .options import GrpcRpcBackendOptions
from .peers import Peer, WorkerInfo
from .pool import Executor
from .serving import ServerCall, check_future
from .wire.failures import RemoteTraceback, traceback_text

__all__ = [
    "Agent",
    "Connection",
    "Executor",
    "Flag",
    "GrpcRpcBackendOptions",
    "Host",
    "InProcessLane",
    "InProcessNetwork",
    "Incoming",
    "Interceptor",
    "IntervalSet",
    "Kind",
    "Lane",
    "Method",
    "Outgoing",
    "Peer",
    "RemoteTraceback",
    "ServerCall",
    "Ticket",
    "Topic",
    "WorkerInfo",
    "agent_variable",
    "call_function",
    "check_future",
    "current_agent",
    "is_async_execution",
    "label_parts",
    "open_agents",
    "open_request",
    "register_lane",
    "register_part",
    "request_body",
    "resolve_timeout",
    "traceback_text",
]
