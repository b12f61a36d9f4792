"""The messages of live queries, as Parse's SDKs speak them.

Messages of clients are parsed into typed messages, or rejected with the place and the reason;
unknown keys are rejected too. Messages of the server are JSON text. Checks that depend on the
caller are elsewhere.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

from backend.kernel.texts.encoding import encode_json
from realtime.core.outcome import Op

MAX_REQUEST_ID: Final = 2**53 - 1
MAX_TOKEN: Final = 512
MAX_KEY: Final = 1024
MAX_CLASS_NAME: Final = 128
MAX_FIELDS: Final = 500
MAX_FIELD: Final = 512

# The codes of errors that aren't those of REST.
MALFORMED: Final = 1
NOT_CONNECTED: Final = 2
UNKNOWN_OP: Final = 3
WRONG_KEY: Final = 4

_UNKNOWN_KEY: Final = "Additional properties not allowed"
_LIBRARY_UNKNOWN_KEY: Final = "Object contains unknown field"

_OPS: Final = ("connect", "subscribe", "update", "unsubscribe", "query")


class InvalidMessage(Exception):
    """A client's message that is rejected.

    ``request_id`` is None if it couldn't be read. ``reconnect`` makes SDKs connect again.
    """

    def __init__(
        self, code: int, error: str, request_id: int | None = None, *, reconnect: bool = False
    ) -> None:
        super().__init__(error)
        self.code = code
        self.error = error
        self.request_id = request_id
        self.reconnect = reconnect


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Connect(_Message, frozen=True):
    """The first message: the application, one of its keys, and a session."""

    op: Literal["connect"]
    application_id: str
    javascript_key: str | None = None
    client_key: str | None = None
    windows_key: str | None = None
    rest_key: str | None = msgspec.field(default=None, name="restAPIKey")
    master_key: str | None = None
    session_token: str | None = None
    installation_id: str | None = None

    def __repr__(self) -> str:
        return "Connect(…)"  # has keys in it


class LiveQuery(_Message, frozen=True):
    """The query of a subscription: a class, a ``where``, the fields to send, the fields to watch.

    ``fields`` is what older SDKs call ``keys``.
    """

    class_name: str
    where: dict[str, Any]
    keys: list[str] | None = None
    fields: list[str] | None = None
    watch: list[str] | None = None

    @property
    def selected(self) -> list[str] | None:
        """The fields to send; None for all of them."""
        return self.fields if self.keys is None else self.keys


class Subscribe(_Message, frozen=True):
    """Start a subscription, or replace it (``update``)."""

    op: Literal["subscribe", "update"]
    request_id: int
    query: LiveQuery
    session_token: str | None = None

    def __repr__(self) -> str:
        return f"Subscribe({self.request_id})"


class Unsubscribe(_Message, frozen=True):
    """End a subscription."""

    op: Literal["unsubscribe"]
    request_id: int


class Fetch(_Message, frozen=True):
    """Send the current results of a subscription's query."""

    op: Literal["query"]
    request_id: int


ClientMessage: TypeAlias = Connect | Subscribe | Unsubscribe | Fetch


class _Start(msgspec.Struct, frozen=True, rename="camel"):
    op: str
    request_id: Any = None


_start: Final = msgspec.json.Decoder(_Start)
_decoders: Final[dict[str, msgspec.json.Decoder[Any]]] = {
    "connect": msgspec.json.Decoder(Connect),
    "subscribe": msgspec.json.Decoder(Subscribe),
    "update": msgspec.json.Decoder(Subscribe),
    "unsubscribe": msgspec.json.Decoder(Unsubscribe),
    "query": msgspec.json.Decoder(Fetch),
}


def parse_message(text: str) -> ClientMessage:
    """Parse a client's message.

    Raises ``InvalidMessage`` with code 1 (malformed) or 3 (unknown op).
    """
    try:
        start = _start.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidMessage(MALFORMED, _reason(error)) from None
    raw_id = start.request_id
    request_id = raw_id if type(raw_id) is int and 0 <= raw_id <= MAX_REQUEST_ID else None
    decoder = _decoders.get(start.op)
    if decoder is None:
        raise InvalidMessage(UNKNOWN_OP, f"op: expected one of {', '.join(_OPS)}", request_id)
    try:
        message: ClientMessage = decoder.decode(text)
        _check(message)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        reason = _reason(error)
        # SDKs connect again after this error, and send what they understand of a subscription.
        reconnect = reason.startswith(_UNKNOWN_KEY)
        raise InvalidMessage(MALFORMED, reason, request_id, reconnect=reconnect) from None
    return message


def _reason(error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        # The library's text has the type, the place and the name of an unknown key, no value.
        text = str(error)[:200]
        return f"{_UNKNOWN_KEY}: {text}" if text.startswith(_LIBRARY_UNKNOWN_KEY) else text
    return "not valid JSON"


def _check(message: ClientMessage) -> None:
    if isinstance(message, Connect):
        for name in ("javascript_key", "client_key", "windows_key", "rest_key", "master_key"):
            _check_length(getattr(message, name), name, MAX_KEY)
        _check_length(message.application_id, "applicationId", MAX_KEY)
        _check_length(message.installation_id, "installationId", MAX_TOKEN)
        _check_length(message.session_token, "sessionToken", MAX_TOKEN)
        return
    if not 0 <= message.request_id <= MAX_REQUEST_ID:
        raise msgspec.ValidationError(f"requestId: expected a number from 0 to {MAX_REQUEST_ID}")
    if isinstance(message, Subscribe):
        _check_length(message.session_token, "sessionToken", MAX_TOKEN)
        _check_length(message.query.class_name, "query.className", MAX_CLASS_NAME)
        for name in ("keys", "fields", "watch"):
            _check_fields(getattr(message.query, name), f"query.{name}")


def _check_length(text: str | None, place: str, most: int) -> None:
    if text is not None and len(text) > most:
        raise msgspec.ValidationError(f"{place}: longer than {most} characters")


def _check_fields(names: list[str] | None, place: str) -> None:
    if names is None:
        return
    if not names:
        raise msgspec.ValidationError(f"{place}: expected at least one field")
    if len(names) > MAX_FIELDS:
        raise msgspec.ValidationError(f"{place}: more than {MAX_FIELDS} fields")
    if len(set(names)) < len(names):
        raise msgspec.ValidationError(f"{place}: a field is named twice")
    for name in names:
        _check_length(name, place, MAX_FIELD)


# -- Messages of the server -----------------------------------------------------------------------


def _text(value: object) -> str:
    return encode_json(value).decode()


def recipient(client_id: str, installation_id: str | None) -> str:
    """Return the members that every message to a client has, without braces."""
    members = f'"clientId":{_text(client_id)}'
    if installation_id is not None:
        members += f',"installationId":{_text(installation_id)}'
    return members


def connected(client: str) -> str:
    """Return the response to ``connect``. ``client`` is a result of ``recipient``, as below."""
    return f'{{"op":"connected",{client}}}'


def subscribed(client: str, request_id: int) -> str:
    """Return the response to ``subscribe`` and to ``update``."""
    return f'{{"op":"subscribed",{client},"requestId":{request_id}}}'


def unsubscribed(client: str, request_id: int) -> str:
    """Return the response to ``unsubscribe``."""
    return f'{{"op":"unsubscribed",{client},"requestId":{request_id}}}'


def result(client: str, request_id: int, objects: str) -> str:
    """Return the response to ``query``; ``objects`` are JSON members of a list."""
    return f'{{"op":"result",{client},"requestId":{request_id},"results":[{objects}]}}'


def error(code: int, text: str, *, reconnect: bool, request_id: int | None = None) -> str:
    """Return an error message. SDKs reconnect if ``reconnect`` is set."""
    about = "" if request_id is None else f',"requestId":{request_id}'
    again = "true" if reconnect else "false"
    return f'{{"op":"error","code":{code},"error":{_text(text)},"reconnect":{again}{about}}}'


# Events are frequent, so they are joined from parts that are encoded once, as bytes.

_HEADS: Final[dict[Op, bytes]] = {
    "create": b'{"op":"create',
    "update": b'{"op":"update',
    "enter": b'{"op":"enter',
    "leave": b'{"op":"leave',
    "delete": b'{"op":"delete',
}


def event_middle(client: str, request_id: int) -> bytes:
    """Return the part of an event between the op and the objects, for one subscription."""
    return f'",{client},"requestId":{request_id},'.encode()


def identity_only(class_name: str, object_id: str) -> bytes:
    """Return the class and id of an object that may no longer be read, for ``event_body``."""
    return encode_json({"className": class_name, "objectId": object_id})


def event_body(shown: bytes, original: bytes | None) -> bytes:
    """Return the part of an event from its objects (JSON) to the closing brace."""
    if original is None:
        return b'"object":%b}' % shown
    return b'"object":%b,"original":%b}' % (shown, original)


def event(op: Op, middle: bytes, body: bytes) -> bytes:
    """Return an event message, from the results of ``event_middle`` and ``event_body``."""
    return b"".join((_HEADS[op], middle, body))
