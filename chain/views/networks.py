"""``/networks``: what isn't an object of a network, for the master key.

Its state, its providers, whose addresses are written and never shown, and the end of a halt. The
network is an object of the class ``Blockchain``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from backend.http.call import Call
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import (
    InvalidValue,
    ObjectNotFound,
    OperationForbidden,
    ValidationFailed,
)
from backend.openapi import EmptyObject, answer, describes, optional
from chain import rpc
from chain.core.names import LONGEST_PROVIDER_NAME, network_of
from chain.indexing import head
from chain.indexing.head.halts import CannotResume
from chain.models import Provider
from chain.networks import providers, status
from chain.rpc import ProviderHealth
from chain.views import bodies
from objects.core.values import wire_time
from objects.database import maintenance

_FIELDS: Final = {
    "name": "name",
    "url": "url",
    "socketUrl": "socket_url",
    "weight": "weight",
    "active": "active",
    "requestsPerSecond": "requests_per_second",
    "batchSize": "batch_size",
    "largestRange": "largest_range",
}
_WIRE: Final = {key: name for name, key in _FIELDS.items()}


class _NetworkView(ServiceView):
    """A route below a network."""

    tag = "Networks"
    requires = Requires.MASTER_KEY
    parameters = (bodies.NETWORK_ID,)

    def parse_names(self, names: Mapping[str, str]) -> dict[str, Any]:
        try:
            return {**names, "network_id": network_of(names["network_id"])}
        except ValueError as error:
            raise InvalidValue(f"networkId: {error}") from None


class NetworksView(ServiceView):
    """The state of all networks, as ``chain_status --json`` prints it."""

    tag = "Networks"
    requires = Requires.MASTER_KEY

    @describes(
        "listNetworks",
        "The state of all networks",
        response=answer("The state of each network.", bodies.NetworkStates),
    )
    def get(self, call: Call) -> Answer:
        return Answer({"results": status.networks(), "chainPaused": maintenance.is_chain_paused()})


class NetworkView(_NetworkView):
    """The state of one network."""

    @describes(
        "showNetwork",
        "The state of a network",
        response=answer("The state of the network.", bodies.NetworkState),
    )
    def get(self, call: Call, network_id: int) -> Answer:
        states = status.networks(network_id)
        if not states:
            raise ObjectNotFound(f"There is no network {network_id}.")
        return Answer(states[0])


class ProvidersView(_NetworkView):
    """The providers of a network: list them, add one."""

    @describes(
        "listProviders",
        "The providers of a network",
        response=answer("The providers of the network.", bodies.Providers),
    )
    def get(self, call: Call, network_id: int) -> Answer:
        described = _described(network_id)
        if not described:
            providers.check_network(network_id)
        return Answer({"results": described})

    @describes(
        "addProvider",
        "Add a provider to a network",
        request=bodies.NewProvider,
        response=answer("It is added.", bodies.Provider, 201),
        description="No request is sent to it.",
    )
    def post(self, call: Call, network_id: int) -> Answer:
        _check_may_write(call)
        fields = _fields(call.body)
        for name in ("name", "url"):
            if name not in fields:
                raise ValidationFailed(f"{name} is required")
        try:
            row = providers.add(network_id, **fields)
        except providers.WrongField as wrong:
            raise _wire_error(wrong) from None
        return Answer(_one(network_id, row.name), status=201)


class ProviderView(_NetworkView):
    """One provider: show, change, remove it."""

    @describes("showProvider", "A provider", response=answer("The provider.", bodies.Provider))
    def get(self, call: Call, network_id: int, name: str) -> Answer:
        return Answer(_one(network_id, name))

    @describes(
        "changeProvider",
        "Change fields of a provider",
        request=bodies.ProviderForm,
        response=answer("The provider after the change.", bodies.Provider),
        description="`null` removes `socketUrl` or a limit.",
    )
    def put(self, call: Call, network_id: int, name: str) -> Answer:
        _check_may_write(call)
        fields = _fields(call.body)
        try:
            providers.change(network_id, _name(name), fields)
        except providers.WrongField as wrong:
            raise _wire_error(wrong) from None
        return Answer(_one(network_id, fields.get("name", name)))

    @describes(
        "removeProvider",
        "Remove a provider",
        response=answer("The provider was removed.", EmptyObject),
    )
    def delete(self, call: Call, network_id: int, name: str) -> Answer:
        _check_may_write(call)
        providers.remove(network_id, _name(name))
        return Answer({})


class ResumeView(_NetworkView):
    """The end of a halt, as ``chain_resume`` ends it."""

    in_transaction = False

    @describes(
        "resumeNetwork",
        "Index a halted network again",
        request=optional(bodies.EndOfHalt),
        response=answer("Indexing of the network resumes.", EmptyObject),
    )
    def post(self, call: Call, network_id: int) -> Answer:
        _check_may_write(call)
        unknown = call.body.keys() - {"unwindTo", "fromScratch"}
        if unknown:
            raise ValidationFailed(f"{min(unknown)}: unknown field")
        block, is_from_scratch = call.body.get("unwindTo"), call.body.get("fromScratch", False)
        if block is not None and (type(block) is not int or block < 0):
            raise ValidationFailed("unwindTo: expected the number of a block")
        if type(is_from_scratch) is not bool:
            raise ValidationFailed("fromScratch: expected true or false")
        if is_from_scratch and block is not None:
            raise ValidationFailed("unwindTo: not together with fromScratch")
        maintenance.check()
        try:
            if is_from_scratch:
                head.index_from_scratch(network_id)
            else:
                head.resume(network_id, unwind_to=block)
        except CannotResume as reason:
            raise ValidationFailed(str(reason)) from None
        return Answer({})


def _check_may_write(call: Call) -> None:
    if not call.principal.may_write_as_master:
        raise OperationForbidden("read-only masterKey isn't allowed to change a network.")


def _fields(body: Mapping[str, Any]) -> dict[str, Any]:
    for name in body:
        if name not in _FIELDS:
            raise ValidationFailed(f"{name}: unknown field")
    return {_FIELDS[name]: value for name, value in body.items()}


def _wire_error(wrong: providers.WrongField) -> ValidationFailed:
    return ValidationFailed(f"{_WIRE[wrong.field]}: {wrong.reason}")


def _name(name: str) -> str:
    """A name of the path. Any text that PostgreSQL can compare, since names that were stored before
    ``provider_name`` was enforced stay reachable."""
    if len(name) > LONGEST_PROVIDER_NAME or not name.isprintable():
        raise ObjectNotFound("The network has no such provider.")
    return name


def _one(network_id: int, name: str) -> dict[str, Any]:
    provider = _described(network_id, _name(name))
    if not provider:
        raise ObjectNotFound(f"The network has no provider {name}.")
    return provider[0]


def _described(network_id: int, name: str | None = None) -> list[dict[str, Any]]:
    """The providers without their addresses, and how they have been lately."""
    rows = Provider.objects.filter(network_id=network_id)
    if name is not None:
        rows = rows.filter(name=name)
    health = {
        provider.name: provider
        for provider in rpc.health(network_id)
        if provider.source == "provider"
    }
    return [_wire(row, health.get(row.name)) for row in rows]


def _wire(row: Provider, health: ProviderHealth | None) -> dict[str, Any]:
    settings = {
        name: getattr(row, key) for name, key in _FIELDS.items() if name not in ("url", "socketUrl")
    }
    details = {} if health is None else _known(health)
    return {**settings, "hasSocketUrl": row.socket_url is not None, **details}


def _known(health: ProviderHealth) -> dict[str, Any]:
    return {
        "head": health.head,
        "lag": health.lag,
        "latency": health.latency,
        "failures": health.failures,
        "pausedUntil": health.paused_until and wire_time(health.paused_until),
        "trouble": health.trouble,
        "checkedAt": health.checked_at and wire_time(health.checked_at),
    }
