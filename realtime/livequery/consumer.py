"""The socket of live queries: Parse's protocol, message by message.

The first message is ``connect``: the application's id, keys (``key_pairs``), and optionally a
session, which applies to every subscription without its own. A wrong key closes the connection.
With a session that has ended, each subscription needs one of its own.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from backend.kernel.errors import (
    InternalError,
    InvalidSessionToken,
    RateLimited,
    ServiceError,
    ServiceUnavailable,
)
from backend.kernel.principal import Principal
from backend.logs.setup import get_logger
from realtime.core import messages
from realtime.core.messages import Connect, Fetch, InvalidMessage, Subscribe, Unsubscribe
from realtime.livequery import commands, trigger_calls
from realtime.livequery.engine import LiveQueries
from realtime.livequery.groups import Client
from realtime.livequery.identities import Identity
from realtime.livequery.key_pairs import authenticate_client
from realtime.process.process import Process
from realtime.sockets.connections import POLICY, TRY_AGAIN, Socket

log = get_logger("livequery")

_NO_MEMORY = "There is no memory for this at the moment."
_INTERNAL_ERROR = "Internal server error."


class LiveQuerySocket(Socket):
    """One client of live queries."""

    kind = "livequery"
    keys_in_handshake = False

    _engine: LiveQueries
    _client: Client | None = None

    async def on_open(self) -> None:
        self._engine = Process.current().part(LiveQueries)

    async def on_message(self, text: str) -> None:
        try:
            message = messages.parse_message(text)
        except InvalidMessage as error:
            self.count_junk()
            self._send_error(error.code, error.error, error.request_id, reconnect=error.reconnect)
            return
        request_id = getattr(message, "request_id", None)
        try:
            await self._execute(message, text)
        except ServiceError as error:
            self._send_error(error.code, error.message, request_id)
        except MemoryError:
            # Without a traceback, which would need more memory.
            log.error("no memory for a message")
            self._send_error(ServiceUnavailable.code, _NO_MEMORY, request_id)
        except Exception as error:
            log.error("live query failed", exc_info=error)
            self._send_error(InternalError.code, _INTERNAL_ERROR, request_id)

    async def on_close(self) -> None:
        self._engine.drop_requests(self)
        if self._client is not None:
            self._engine.remove_client(self._client)

    async def _execute(self, message: messages.ClientMessage, text: str) -> None:
        if isinstance(message, Connect):
            await self._connect(message)
            return
        client = self._client
        if client is None:
            self.count_junk()
            self._send_error(
                messages.NOT_CONNECTED,
                "Can not find this client, make sure you connect to server before subscribing.",
                message.request_id,
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
            self._send_error(messages.MALFORMED, "This connection is connected already.")
            return
        try:
            caller = replace(
                authenticate_client(message, self.address),
                installation_id=message.installation_id,
            )
        except ServiceError:
            # Like Parse, don't reveal which credential is wrong.
            self._send_error(messages.WRONG_KEY, "Key in request is not valid")
            self.close_with(POLICY, "wrong key")
            return
        try:
            # The SDK for Apple's systems sends an empty text without a login.
            client = await self._authorize(caller, message.session_token or None)
        except ServiceError as error:
            self._send_error(error.code, error.message)
            is_temporary = isinstance(error, RateLimited | ServiceUnavailable)
            self.close_with(TRY_AGAIN if is_temporary else POLICY, "not admitted")
            return
        if not self.is_open:
            self._engine.release_identity(client.identity)
            return
        self._client = client
        self._engine.add_client(client)
        self.enqueue(messages.connected(client.recipient))

    async def _authorize(self, caller: Principal, token: str | None) -> Client:
        engine = self._engine
        identity: Identity | None = None
        needs_session = False
        if token is not None and not caller.is_master:
            try:
                identity = await engine.authenticate(self, token)
            except InvalidSessionToken:
                # The JavaScript SDK connects again with the session that a user had at first,
                # and sends the present one with each subscription.
                needs_session = True
        client = Client(self, str(uuid4()), caller, identity, needs_session=needs_session)
        principal, counts = client.principal(identity), engine.counts()

        def authorize() -> None:
            with trigger_calls.client_context(
                self.address, self.headers, principal, request_id=self.request_id
            ):
                trigger_calls.connect(principal, counts)

        try:
            await engine.in_thread(self, authorize)
        except BaseException:
            engine.release_identity(identity)
            raise
        return client

    def _send_error(
        self, code: int, error: str, request_id: int | None = None, *, reconnect: bool = False
    ) -> None:
        self.enqueue(messages.error(code, error, reconnect=reconnect, request_id=request_id))
