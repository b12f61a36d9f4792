"""The way to nodes: the only package that talks to them, and the only one that knows web3.

``attempt(network_id, step)`` runs ``step`` with a ``Node`` of one provider, and with another one if
that fails. ``agreed`` compares what one provider has said with the others, and ``witnessed`` is
how far two have said the same; ``ask_several`` asks more than one, ``witnesses`` insists on it.
``health`` says how all of them are, and ``leave_out`` leaves one alone that is known to be wrong.
"""

from chain.core.node import Node
from chain.rpc.agreement import agreed, leave_out, tags_of_others, witnessed
from chain.rpc.client.health import ProviderHealth
from chain.rpc.reports import health
from chain.rpc.requests import ask_several, attempt, choose_another, witnesses

__all__ = [
    "Node",
    "ProviderHealth",
    "agreed",
    "ask_several",
    "attempt",
    "choose_another",
    "health",
    "leave_out",
    "tags_of_others",
    "witnessed",
    "witnesses",
]
