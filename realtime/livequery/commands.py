"""The commands of clients: subscribe, unsubscribe, and fetch the current results."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Final

from backend.kernel.errors import InvalidSessionToken, OperationForbidden, ServiceError
from backend.kernel.limits.statements import slow_statements
from backend.kernel.networks import client_network
from backend.kernel.principal import Principal
from backend.kernel.texts.encoding import encode_json
from backend.limits import Request, decide_here, rules_for
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from backend.settings.rate_limits import SUBSCRIPTIONS
from objects.core.names import ClassName
from objects.core.query.tree import FindOptions
from objects.service import find
from realtime.core import messages
from realtime.core.effort import memory_of
from realtime.livequery import query_parsing, trigger_calls
from realtime.livequery.access import current_table, unsent_fields
from realtime.livequery.engine import LiveQueries
from realtime.livequery.groups import Client, Subscription, is_too_large
from realtime.livequery.identities import Identity, require_active
from realtime.livequery.trigger_calls import AuthorizedQuery, client_context

log = get_logger("livequery")

_MAX_MESSAGES: Final = 4
"""The total length of a connection's subscriptions, in messages of the greatest length."""


async def subscribe(
    engine: LiveQueries, client: Client, message: messages.Subscribe, text: str
) -> None:
    """Start a subscription and confirm it, or send the error. A former subscription with the same
    request id ends in any case. ``text`` is the message."""
    former = client.subscriptions.get(message.request_id)
    try:
        await _subscribe(engine, client, message, text, former)
    except ServiceError as error:
        if former is not None:
            engine.remove_subscription(former)
        log.info(
            "subscription refused",
            class_name=message.query.class_name,
            address=client.socket.address,
            code=error.code,
            error=error.message,
        )
        client.socket.enqueue(
            messages.error(
                error.code, error.message, reconnect=False, request_id=message.request_id
            )
        )


async def _subscribe(
    engine: LiveQueries,
    client: Client,
    message: messages.Subscribe,
    text: str,
    former: Subscription | None,
) -> None:
    class_name = query_parsing.check_class(message.query.class_name)
    _check_rate(client, client.principal(client.identity))
    max_subscriptions = service_settings.LIVE_QUERY_MAX_SUBSCRIPTIONS
    if former is None and len(client.subscriptions) >= max_subscriptions:
        raise OperationForbidden(f"A connection has at most {max_subscriptions} subscriptions.")
    size = len(text)
    total = size + sum(subscription.size for subscription in client.subscriptions.values())
    if former is not None:
        total -= former.size
    max_total = _MAX_MESSAGES * service_settings.WS_MESSAGE_SIZE
    if total > max_total:
        raise OperationForbidden(
            f"The subscriptions of a connection have at most {max_total} characters together."
        )
    memory = memory_of(text)
    engine.memory.reserve(client.socket.address, memory, former.memory if former is not None else 0)
    try:
        await _start(engine, client, message, former, class_name, size, memory)
    finally:
        # A started subscription has its own share.
        engine.memory.release(client.socket.address, memory)


async def _start(
    engine: LiveQueries,
    client: Client,
    message: messages.Subscribe,
    former: Subscription | None,
    class_name: ClassName,
    size: int,
    memory: int,
) -> None:
    await engine.capture(class_name)
    # The master key reads everything, so a session doesn't matter.
    token = None if client.caller.is_master else message.session_token or None
    own: Identity | None = None
    try:
        if token is not None:
            own = await engine.authenticate(client.socket, token)
        elif client.needs_session:
            raise InvalidSessionToken("Invalid session token")
        identity = client.identity if own is None else own
        authorized = await _authorize(engine, client, message, identity)
        if not engine.is_connected(client):
            return
        if former is not None:
            engine.remove_subscription(former)
        subscription = Subscription(
            client,
            message.request_id,
            authorized,
            identity,
            size,
            memory,
            holds_identity=own is not None,
        )
        engine.add_subscription(subscription)
        own = None
        client.socket.enqueue(messages.subscribed(client.recipient, message.request_id))
    finally:
        engine.release_identity(own)
        engine.release_capture(class_name)


async def _authorize(
    engine: LiveQueries, client: Client, message: messages.Subscribe, identity: Identity | None
) -> AuthorizedQuery:
    """Return the query with its caller's current rights."""
    require_active(identity)
    generation = identity.generation if identity is not None else 0
    principal, counts = client.principal(identity), engine.counts()

    def authorize() -> AuthorizedQuery:
        requested = query_parsing.parse_query(message.query, as_master=principal.is_master)
        with _context(client, principal):
            return trigger_calls.subscribe(principal, requested, counts)

    authorized = await engine.in_thread(client.socket, authorize)
    while identity is not None and identity.generation != generation:
        require_active(identity)
        generation = identity.generation
        authorized = await engine.in_thread(
            client.socket, partial(_renew, client.principal(identity), authorized)
        )
    return authorized


def _renew(principal: Principal, authorized: AuthorizedQuery) -> AuthorizedQuery:
    return trigger_calls.renew(
        principal, authorized, current_table(authorized.requested.class_name)
    )


def unsubscribe(engine: LiveQueries, client: Client, request_id: int) -> None:
    """End a subscription and confirm it."""
    subscription = client.subscriptions.get(request_id)
    if subscription is None:
        client.socket.enqueue(_unknown(client, request_id))
        return
    engine.remove_subscription(subscription)
    client.socket.enqueue(messages.unsubscribed(client.recipient, request_id))


async def fetch(engine: LiveQueries, client: Client, request_id: int) -> None:
    """Send the current results of a subscription's query, as a find over REST returns them."""
    subscription = client.subscriptions.get(request_id)
    if subscription is None:
        client.socket.enqueue(_unknown(client, request_id))
        return
    principal, authorized = subscription.principal, subscription.authorized
    try:
        if not principal.is_master:
            slow_statements().check(client_network(client.socket.address))
        _check_rate(client, principal)
        objects = await engine.in_thread(
            client.socket, lambda: _find_objects(client, principal, authorized)
        )
    except ServiceError as error:
        subscription.send_error(error.code, error.message)
        return
    if subscription.cohort is None:
        return
    if is_too_large(objects):
        subscription.send_too_large("What is found")
    else:
        client.socket.enqueue(messages.result(client.recipient, request_id, objects))


def _check_rate(client: Client, principal: Principal) -> None:
    """Count a request against the limits of its address and user. Raises ``RateLimited``."""
    rules = rules_for(SUBSCRIPTIONS, "GET")
    if rules:
        limited = Request(rules, SUBSCRIPTIONS, client.socket.address, principal)
        refusal = decide_here(limited).refusal
        if refusal is not None:
            raise refusal


def _find_objects(client: Client, principal: Principal, authorized: AuthorizedQuery) -> str:
    requested, effective = authorized.requested, authorized.effective
    options = FindOptions(
        where=requested.where,
        limit=service_settings.DEFAULT_LIMIT,
        keys=effective.keys,
        raw_where=requested.raw_where,
    )
    with _context(client, principal):
        result = find(principal, effective.class_name, options, also=effective.where)
    unsent = unsent_fields(effective.class_name)
    return ",".join(
        encode_json(
            {
                "className": effective.class_name,
                **{name: value for name, value in obj.items() if name not in unsent},
            }
        ).decode()
        for obj in result.objects()
    )


def _context(client: Client, principal: Principal) -> AbstractContextManager[None]:
    socket = client.socket
    return client_context(socket.address, socket.headers, principal, request_id=socket.request_id)


def _unknown(client: Client, request_id: int) -> str:
    return messages.error(
        messages.NOT_CONNECTED,
        f"Cannot find subscription with clientId {client.id} subscriptionId {request_id}."
        " Make sure you subscribe to live query server.",
        reconnect=False,
        request_id=request_id,
    )
