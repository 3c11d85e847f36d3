"""References to the parameters of models whose modules are on many workers."""

from __future__ import annotations

from typing import Any

from ..core.futures import Future, wait_all
from ..nn import Module, Parameter
from ..nn.extend import is_module
from ..rpc.extend import UNSET_RPC_TIMEOUT, call_function
from .remote_module import RemoteModule
from .rref import RRef


def parameter_rrefs(*models: Module | RRef[Any], recurse: bool = True) -> list[RRef[Parameter]]:
    """Return references to all parameters of models, on all workers, for a ``DistributedOptimizer``.

    Owners are asked at the same time, and each asks other owners for the parts of its module that are there.

    Args:
        models: local modules, which may contain ``RemoteModule``s, and references to modules.
        recurse: whether to return the parameters of modules inside too.

    Returns:
        The references, in the order of the models and of the parameters in each. A local module's own parameters come before
        those of the remote modules inside it. A parameter that is in several places comes once for each model.

    Raises:
        TypeError: one of ``models`` is neither a module nor a reference to one.

    Example:
        >>> import telegrad as tg
        >>> from telegrad.rref import parameter_rrefs
        >>> from telegrad.testing import in_process_cluster
        >>> with in_process_cluster("server", "trainer") as (server, trainer), trainer.use():
        ...     model = tg.nn.Sequential(tg.RemoteModule("server", tg.nn.Linear, (3, 2)), tg.nn.Linear(2, 1))
        ...     print([reference.owner_name() for reference in parameter_rrefs(model)])
        ['trainer', 'trainer', 'server', 'server']
    """
    futures = [future for model in models for future in _ask(model, recurse)]
    return [reference for references in wait_all(futures) for reference in references]


def _ask(model: Module | RRef[Any], recurse: bool) -> list[Future[list[RRef[Parameter]]]]:
    if isinstance(model, RRef):
        agent = model._context.agent
        return [call_function(agent, model.owner(), _at_owner, (model, recurse), None, UNSET_RPC_TIMEOUT)]
    if not is_module(model):
        raise TypeError(f"a model must be an nn.Module or an RRef to one; you gave {type(model).__name__}")
    if isinstance(model, RemoteModule):
        return _ask(model.module_rref, recurse)
    local: Future[list[RRef[Parameter]]] = Future()
    local.set_result([RRef(parameter) for parameter in model.parameters(recurse)])
    inside = [part for part in model.modules() if isinstance(part, RemoteModule)] if recurse else []
    return [local, *(future for part in inside for future in _ask(part, recurse))]


def _at_owner(model: RRef[Module], recurse: bool) -> list[RRef[Parameter]]:
    return parameter_rrefs(model.local_value(), recurse=recurse)
