"""What an adapter is.

A subclass says in ``verify`` who is proven by what the client sent. It raises ``Unproven`` if
nobody is and ``Unreachable`` if the provider can't be reached, with the reason. The reason goes to
the log; the client learns only which of the two it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured

from backend.kernel.errors import ObjectNotFound, ServiceUnavailable
from backend.kernel.json_types import Json
from backend.kernel.texts.encoding import describe
from objects.users.adapters.http import Unreachable

_log = structlog.get_logger(__name__)
_LONGEST_ID = 255


@dataclass(frozen=True)
class ProviderIdentity:
    """A user's identity at a provider.

    ``id`` is unique there and never given to another user. ``data`` may be kept with the user and
    shown to its owner: it holds no token and no secret.
    """

    id: str
    data: dict[str, Json] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Json]:
        """What the user's ``authData`` says of it."""
        return {**self.data, "id": self.id}


class Unproven(Exception):
    """The proof doesn't hold. The text says why, for the log; it must not repeat the proof."""


class Adapter:
    """One provider. ``name`` is its key in ``authData``, ``options`` what its setting says."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self.name = name
        self.options = options

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        """Return the identity that ``authData.NAME`` proves. Raises ``Unproven``."""
        raise NotImplementedError

    def challenge(self, data: Mapping[str, Json]) -> dict[str, Json] | None:
        """What a client has to answer; None if nothing, as with most providers."""
        return None

    def accepts_id(self, claimed: str, identity: ProviderIdentity) -> bool:
        """Whether an ``id`` that the client sent means this identity."""
        return claimed == identity.id

    def identify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        """``verify``, with everything that holds for every provider."""
        try:
            if not isinstance(data, Mapping) or not data:
                raise Unproven("no proof was sent")
            identity = self.verify(data)
            if not 0 < len(identity.id) <= _LONGEST_ID or not identity.id.isprintable():
                raise Unproven("the provider's id can't be kept")
            claimed = data.get("id")
            if isinstance(claimed, int) and not isinstance(claimed, bool):
                claimed = str(claimed)  # GitHub's and Facebook's are numbers
            if claimed is not None and not (
                isinstance(claimed, str) and self.accepts_id(claimed, identity)
            ):
                raise Unproven("the id is not the proven one")
        except Unproven as error:
            _log.info("sign_in_refused", provider=self.name, reason=describe(error))
            raise ObjectNotFound(f"{self.name} auth is invalid for this user.") from None
        except Unreachable as error:
            _log.warning("provider_unreachable", provider=self.name, reason=describe(error))
            raise ServiceUnavailable(f"{self.name} can't be reached at the moment.") from None
        return identity

    def misconfigured(self, problem: str) -> ImproperlyConfigured:
        """The error to raise from ``__init__`` for options that can't work."""
        return ImproperlyConfigured(f"AUTH_ADAPTERS: {self.name}: {problem}")

    def texts(self, option: str) -> tuple[str, ...]:
        """An option that lists at least one text."""
        value = self.options.get(option)
        if (
            not isinstance(value, list | tuple)
            or not value
            or not all(isinstance(item, str) and item for item in value)
        ):
            raise self.misconfigured(f"{option} must list at least one text.")
        return tuple(value)

    def text(self, option: str, default: str | None = None) -> str:
        """An option that is a text."""
        value = self.options.get(option, default)
        if not isinstance(value, str) or not value:
            raise self.misconfigured(f"{option} must be a text.")
        return value


def proof_text(data: Mapping[str, Json], *names: str, longest: int = 16_384) -> str:
    """The first of these entries that was sent, which must be a text of a sane length."""
    for name in names:
        value = data.get(name)
        if value is None:
            continue
        if not isinstance(value, str) or not 0 < len(value) <= longest:
            raise Unproven(f"{name} is not a usable text")
        return value
    raise Unproven(f"{' or '.join(names)} is missing")
