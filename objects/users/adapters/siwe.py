"""The message of Sign-In with Ethereum (EIP-4361): writing one, and reading one strictly.

``read`` takes exactly the grammar of the standard and nothing near it; what it gives back are the
fields as they were signed, with times understood. Whether they are the right ones is not checked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from eth_utils import is_checksum_address

LONGEST = 4096  # characters

_URI = r"[A-Za-z][A-Za-z0-9+.\-]*:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+"
_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
_MESSAGE = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]*)://)?"
    r"(?P<domain>[A-Za-z0-9\-._~:\[\]]+) wants you to sign in with your Ethereum account:\n"
    r"(?P<address>0x[0-9A-Fa-f]{40})\n"
    r"\n"
    r"(?:(?P<statement>[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;= ]+)\n)?"
    r"\n"
    rf"URI: (?P<uri>{_URI})\n"
    r"Version: 1\n"
    r"Chain ID: (?P<chain>[1-9][0-9]{0,18})\n"
    r"Nonce: (?P<nonce>[A-Za-z0-9]{8,128})\n"
    rf"Issued At: (?P<issued>{_TIME})"
    rf"(?:\nExpiration Time: (?P<expires>{_TIME}))?"
    rf"(?:\nNot Before: (?P<starts>{_TIME}))?"
    r"(?:\nRequest ID: (?P<request>[A-Za-z0-9\-._~!$&'()*+,;=:@%]*))?"
    rf"(?:\nResources:(?P<resources>(?:\n- {_URI})*))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Message:
    """What was signed."""

    domain: str
    address: str
    uri: str
    chain_id: int
    nonce: str
    issued_at: datetime
    expires_at: datetime | None = None
    not_before: datetime | None = None
    statement: str | None = None
    scheme: str | None = None

    def text(self) -> str:
        """The message as it is signed."""
        lines = [
            f"{self.domain} wants you to sign in with your Ethereum account:",
            self.address,
            "",
            *([self.statement] if self.statement else []),
            "",
            f"URI: {self.uri}",
            "Version: 1",
            f"Chain ID: {self.chain_id}",
            f"Nonce: {self.nonce}",
            f"Issued At: {_written(self.issued_at)}",
        ]
        if self.expires_at is not None:
            lines.append(f"Expiration Time: {_written(self.expires_at)}")
        return "\n".join(lines)


def read(text: str) -> Message:
    """The message, or ``ValueError`` with what is wrong."""
    match = _MESSAGE.fullmatch(text) if len(text) <= LONGEST else None
    if match is None:
        raise ValueError("it is not a message of EIP-4361")
    if not is_checksum_address(match["address"]):
        raise ValueError("the address has no right checksum")
    issued = _moment(match["issued"])
    assert issued is not None
    return Message(
        domain=match["domain"],
        address=match["address"],
        uri=match["uri"],
        chain_id=int(match["chain"]),
        nonce=match["nonce"],
        issued_at=issued,
        expires_at=_moment(match["expires"]),
        not_before=_moment(match["starts"]),
        statement=match["statement"],
        scheme=match["scheme"],
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _written(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
