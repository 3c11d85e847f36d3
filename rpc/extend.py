"""Interface for extensions of the agent: lanes, interceptors, request methods, control topics, and ways to make agents."""

from typing import TYPE_CHECKING

from ..base.late_imports import late_imports
from .agent import Agent as Agent
from .backend_registry import BackendType as BackendType
from .backend_registry import find_backend as find_backend
from .backend_registry import init_backend as init_backend
from .calls.current_call import current_call as current_call
from .calls.late_parts import LateInterceptor as LateInterceptor
from .calls.remote_warnings import RemoteWarnings as RemoteWarnings
from .calls.remote_warnings import collect_warnings as collect_warnings
from .calls.server_call import ServerCall as ServerCall
from .calls.server_call import check_future as check_future
from .current import current_agent as current_agent
from .current import open_agents as open_agents
from .current import rpc_agents as rpc_agents
from .debugging.hooks import debugger_of as debugger_of
from .debugging.hooks import install_debugger as install_debugger
from .device_maps import device_name as device_name
from .functions.calling import EXACTLY_ONCE_MARK as EXACTLY_ONCE_MARK
from .functions.calling import Later as Later
from .functions.calling import call_function as call_function
from .functions.calling import event_name as event_name
from .functions.calling import is_async_execution as is_async_execution
from .functions.calling import label_parts as label_parts
from .functions.calling import name_of as name_of
from .functions.calling import open_request as open_request
from .functions.calling import request_body as request_body
from .functions.calling import resolve_timeout as resolve_timeout
from .functions.calling import serve_calls as serve_calls
from .group.dynamic_group import DynamicGroup as DynamicGroup
from .group.gathering import Gathering as Gathering
from .group.membership import MembershipEvents as MembershipEvents
from .group.shutdown import Shutdown as Shutdown
from .group.shutdown import shut_down as shut_down
from .group.vacancies import Vacancies as Vacancies
from .lanes.frame import FRAME_LENGTH as FRAME_LENGTH
from .lanes.frame import FrameHandle as FrameHandle
from .lanes.frame import WaitingFrame as WaitingFrame
from .lanes.inproc import InProcessLane as InProcessLane
from .lanes.inproc import InProcessNetwork as InProcessNetwork
from .lanes.lane import Lane as Lane
from .lanes.lane import LaneListener as LaneListener
from .lanes.pipe import Pipe as Pipe
from .lanes.registry import DEFAULT_LANES as DEFAULT_LANES
from .lanes.registry import make_lanes as make_lanes
from .lanes.registry import register_lane as register_lane
from .lanes.session import Session as Session
from .links.control_events import Received as Received
from .links.control_events import Send as Send
from .links.control_events import WorkerLost as WorkerLost
from .links.intervals import IntervalSet as IntervalSet
from .links.peer import Peer as Peer
from .links.worker_info import WorkerInfo as WorkerInfo
from .links.worker_info import check_name as check_name
from .links.worker_records import WorkerRecords as WorkerRecords
from .losses.expulsion import record_expulsion as record_expulsion
from .observing.command_socket import CommandSocket as CommandSocket
from .observing.wait_hooks import watch_waits as watch_waits
from .options import STREAM_AHEAD as STREAM_AHEAD
from .options import UNSET_RPC_TIMEOUT as UNSET_RPC_TIMEOUT
from .options import GrpcRpcBackendOptions as GrpcRpcBackendOptions
from .options import RpcBackendOptions as RpcBackendOptions
from .options import check_timeout as check_timeout
from .rendezvous.meeting import Plan as Plan
from .rendezvous.meeting import plan_rendezvous as plan_rendezvous
from .running import agent_variable as agent_variable
from .security.handshake import PROTOCOL as PROTOCOL
from .security.proofs import PROOF_BYTES as PROOF_BYTES
from .security.proofs import AcceptorProof as AcceptorProof
from .security.proofs import DialerProof as DialerProof
from .security.proofs import protocol_of as protocol_of
from .security.tls import tls_context as tls_context
from .threads.ioloop import may_block as may_block
from .threads.pool import Executor as Executor
from .threads.timers import Batch as Batch
from .wire.failures import RemoteTraceback as RemoteTraceback
from .wire.failures import callees_traceback as callees_traceback
from .wire.function_names import reference as reference
from .wire.function_names import resolve as resolve
from .wire.header import Flag as Flag
from .wire.header import FrameKind as FrameKind
from .wire.libraries.array_library import ArrayLibrary as ArrayLibrary
from .wire.libraries.array_library import LibraryTensor as LibraryTensor
from .wire.libraries.array_library import MissingDeviceError as MissingDeviceError
from .wire.libraries.array_library import PackedArray as PackedArray
from .wire.libraries.forks import started_libraries as started_libraries
from .wire.libraries.in_place import note_written as note_written
from .wire.libraries.in_place import tensor_over as tensor_over
from .wire.libraries.registry import MissingLibraryError as MissingLibraryError
from .wire.libraries.registry import library_named as library_named
from .wire.libraries.registry import library_of as library_of
from .wire.libraries.registry import register_arrays as register_arrays
from .wire.libraries.registry import usual_libraries as usual_libraries
from .wire.messages import REPEATED as REPEATED
from .wire.messages import Incoming as Incoming
from .wire.messages import Interceptor as Interceptor
from .wire.messages import Method as Method
from .wire.messages import Outgoing as Outgoing
from .wire.messages import Topic as Topic
from .wire.promises import Promise as Promise
from .wire.raw_body import RawBody as RawBody

if TYPE_CHECKING:
    from .debugging.debugger import Debugger as Debugger
    from .debugging.ide import IdeSessions as IdeSessions
    from .debugging.sampler import Sampler as Sampler
    from .exactly_once.applying import Applying as Applying
    from .exactly_once.call_journal import CallJournal as CallJournal
    from .exactly_once.sending import StreamSender as StreamSender
    from .functions.producing import Producers as Producers
    from .functions.streaming import Stream as Stream
    from .functions.streaming import open_stream as open_stream
    from .group.logged_group import LoggedGroup as LoggedGroup
    from .meshes.mesh_calls import MeshCalls as MeshCalls
    from .observing.completions import ids_of_waits as ids_of_waits
    from .observing.completions import keys_of_requests as keys_of_requests
    from .observing.gather import UpperLayers as UpperLayers
    from .observing.gather import observe_worker as observe_worker
    from .observing.observer import Observer as Observer
    from .observing.records import MOST_CHARACTERS as MOST_CHARACTERS
    from .observing.records import MOST_ROWS as MOST_ROWS
    from .observing.records import ObservedContext as ObservedContext
    from .observing.records import ObservedEdge as ObservedEdge
    from .observing.records import ObservedFrame as ObservedFrame
    from .observing.records import ObservedNodes as ObservedNodes
    from .observing.records import ObservedPass as ObservedPass
    from .observing.records import ObservedReference as ObservedReference
    from .observing.records import ObservedReferences as ObservedReferences
    from .observing.records import ObservedWait as ObservedWait
    from .observing.thread_waits import frames_of as frames_of
    from .observing.thread_waits import place_of_frames as place_of_frames
else:  # most workers do without
    __getattr__ = late_imports(
        __name__,
        {
            "Debugger": "..debugging.debugger",
            "IdeSessions": "..debugging.ide",
            "Sampler": "..debugging.sampler",
            "Applying": "..exactly_once.applying",
            "CallJournal": "..exactly_once.call_journal",
            "StreamSender": "..exactly_once.sending",
            "Producers": "..functions.producing",
            **dict.fromkeys(("Stream", "open_stream"), "..functions.streaming"),
            "LoggedGroup": "..group.logged_group",
            "MeshCalls": "..meshes.mesh_calls",
            **dict.fromkeys(("ids_of_waits", "keys_of_requests"), "..observing.completions"),
            **dict.fromkeys(("UpperLayers", "observe_worker"), "..observing.gather"),
            "Observer": "..observing.observer",
            **dict.fromkeys(
                (
                    "MOST_CHARACTERS",
                    "MOST_ROWS",
                    "ObservedContext",
                    "ObservedEdge",
                    "ObservedFrame",
                    "ObservedNodes",
                    "ObservedPass",
                    "ObservedReference",
                    "ObservedReferences",
                    "ObservedWait",
                ),
                "..observing.records",
            ),
            **dict.fromkeys(("frames_of", "place_of_frames"), "..observing.thread_waits"),
        },
    )
