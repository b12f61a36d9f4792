"""Access to nodes: the only room that calls them, and the only one that imports web3.

``attempt(network_id, step)`` runs ``step`` with a ``Node`` of one provider, and with another one if
that fails. ``agreed`` compares the result of one provider with the others, and ``witnessed`` is the
height up to which two returned the same. ``ask_several`` calls more than one provider, and
``witnesses`` requires it. ``health`` reports on all of them, and ``leave_out`` suspends one that is
wrong.
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
