"""The socket of live queries: Parse's protocol, message by message.

``connect`` comes first: the application's id and any of its keys, as for REST, and perhaps a
session, which counts for every subscription that doesn't bring its own. A wrong key or a session
that has ended closes the connection.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from backend.http.authentication import Credentials, authenticate
from backend.kernel.errors import InvalidClientKey, RateLimited, ServiceError, ServiceUnavailable
from backend.kernel.principal import Authority, Principal
from backend.logs.setup import get_logger
from realtime.core import messages
from realtime.core.messages import Connect, Fetch, Refused, Subscribe, Unsubscribe
from realtime.livequery import commands, trigger_calls
from realtime.livequery.engine import LiveQueries
from realtime.livequery.groups import Client
from realtime.livequery.identities import Identity
from realtime.process.process import Process
from realtime.sockets.connections import POLICY, TRY_AGAIN, Socket

log = get_logger("livequery")

_NO_MEMORY = "There is no memory for this at the moment."
_FAULT = "Internal server error."


class LiveQuerySocket(Socket):
    """One client of live queries."""

    kind = "livequery"
    keys_in_handshake = False

    _engine: LiveQueries
    _client: Client | None = None

    async def opened(self) -> None:
        self._engine = Process.current().part(LiveQueries)

    async def received(self, text: str) -> None:
        try:
            message = messages.parse_message(text)
        except Refused as refused:
            self.count_junk()
            self._refuse(refused.code, refused.error, refused.request_id)
            return
        try:
            await self._answer(message, text)
        except ServiceError as error:
            self._refuse(error.code, error.message, getattr(message, "request_id", None))
        except MemoryError:
            # Without a traceback, whose making takes more of it.
            log.error("no memory for a message")
            self._refuse(ServiceUnavailable.code, _NO_MEMORY, getattr(message, "request_id", None))
        except Exception as error:
            log.error("live query failed", exc_info=error)
            self._refuse(1, _FAULT, getattr(message, "request_id", None))

    async def closed(self) -> None:
        self._engine.drop(self)
        if self._client is not None:
            self._engine.remove_client(self._client)

    async def _answer(self, message: messages.ClientMessage, text: str) -> None:
        if isinstance(message, Connect):
            await self._connect(message)
            return
        client = self._client
        if client is None:
            self.count_junk()
            self._refuse(
                messages.NOT_CONNECTED, "Connect before anything else.", message.request_id
            )
        elif isinstance(message, Subscribe):
            await commands.subscribe(self._engine, client, message, text)
        elif isinstance(message, Unsubscribe):
            commands.unsubscribe(self._engine, client, message.request_id)
        elif isinstance(message, Fetch):
            await commands.fetch(self._engine, client, message.request_id)

    async def _connect(self, message: Connect) -> None:
        if self._client is not None:
            self.count_junk()
            self._refuse(messages.MALFORMED, "This connection is connected already.")
            return
        try:
            caller = _authenticate(message, self.address)
        except ServiceError:
            # Which of them is wrong isn't said, as Parse doesn't.
            self._refuse(messages.WRONG_KEY, "Key in request is not valid")
            self.close_with(POLICY, "wrong key")
            return
        try:
            client = await self._authorize(caller, message.session_token)
        except ServiceError as error:
            self._refuse(error.code, error.message)
            passes = isinstance(error, RateLimited | ServiceUnavailable)
            self.close_with(TRY_AGAIN if passes else POLICY, "not admitted")
            return
        if not self.is_open:
            self._engine.release(client.identity)
            return
        self._client = client
        self._engine.add_client(client)
        self.enqueue(messages.connected(client.recipient))

    async def _authorize(self, caller: Principal, token: str | None) -> Client:
        engine = self._engine
        identity: Identity | None = None
        if token is not None and not caller.is_master:
            identity = await engine.authenticate(self, token)
        client = Client(self, str(uuid4()), caller, identity)
        principal, counts = client.principal(identity), engine.counts()

        def authorize() -> None:
            with trigger_calls.client_context(self.address, self.headers, principal):
                trigger_calls.connect(principal, counts)

        try:
            await engine.in_thread(self, authorize)
        except BaseException:
            engine.release(identity)
            raise
        return client

    def _refuse(self, code: int, error: str, request_id: int | None = None) -> None:
        self.enqueue(messages.error(code, error, reconnect=False, request_id=request_id))


def _authenticate(message: Connect, address: str) -> Principal:
    credentials = Credentials(
        application_id=message.application_id,
        master_key=message.master_key,
        rest_key=message.rest_key,
        javascript_key=message.javascript_key,
        client_key=message.client_key or message.windows_key,
    )
    principal = authenticate(credentials, address, with_session=False)
    if principal.authority is Authority.APPLICATION:
        raise InvalidClientKey
    return replace(principal, installation_id=message.installation_id)
