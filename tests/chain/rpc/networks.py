"""Networks and providers for tests of the gateway."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from chain.models import Blockchain, Provider
from chain.rpc.endpoints import seal
from objects.core.names import new_object_id
from tests.evm.node import Node
from tests.evm.proxy import Proxy, proxied


def network(network_id: int = 31337, **fields: Any) -> int:
    """A network of this id."""
    from django.utils import timezone

    now = timezone.now()
    Blockchain.objects.create(
        object_id=new_object_id(), network_id=network_id, created_at=now, updated_at=now, **fields
    )
    return network_id


def provider(url: str, name: str = "first", network_id: int = 31337, **fields: Any) -> Provider:
    """A provider of a network."""
    return Provider.objects.create(network_id=network_id, name=name, url=seal(url), **fields)


def proxies(stack: ExitStack, node: Node, *names: str) -> list[Proxy]:
    """Proxies before one node, each the provider of a name; requests go to the first one first."""
    observed = []
    for place, name in enumerate(names):
        proxy = stack.enter_context(proxied(node))
        provider(proxy.url, name, weight=0 if place else 10)
        observed.append(proxy)
    return observed
