"""The two ceremonies of WebAuthn: options for clients, and what is made of their answers.

Without a ``party``, the relying party is that of the apps' users.

Only this module knows the library. Anything wrong from a client ends in ``Unverified`` with a
reason, or is what it says: challenge, origin, domain, the user's presence and (by the setting)
verification, attestation and signature have been checked then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import webauthn
from webauthn.helpers import (
    base64url_to_bytes,
    bytes_to_base64url,
    decode_credential_public_key,
    decoded_public_key_to_cryptography,
    options_to_json_dict,
)
from webauthn.helpers.cose import COSEAlgorithmIdentifier as Algorithm
from webauthn.helpers.structs import (
    AttestationConveyancePreference,
    AttestationFormat,
    AuthenticatorSelectionCriteria,
    AuthenticatorTransport,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from backend.kernel.json_types import Json
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from objects.users.passkeys import relying_party
from objects.users.passkeys.challenges import Issued
from objects.users.passkeys.relying_party import RelyingParty

Credential = dict[str, Any]
"""What an authenticator answered, in the standard's JSON form, with nothing else in it."""

ALGORITHMS: Final = (
    Algorithm.ECDSA_SHA_256,
    Algorithm.EDDSA,
    Algorithm.RSASSA_PKCS1_v1_5_SHA_256,
)
PATIENCE: Final = 300_000  # milliseconds that a browser lets the user take
KIND: Final = "Fido2"
_LONGEST_ID = 1364  # characters; 1023 bytes
_LONGEST = 65_536  # characters
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_TRANSPORTS = {transport.value for transport in AuthenticatorTransport}
_LONGEST_REASON = 300

_T = TypeVar("_T")

log = get_logger("passkeys")


class Unverified(Exception):
    """What a client sent isn't what it has to be. The text says what, and is for the client."""


@dataclass(frozen=True, slots=True)
class NewPasskey:
    """A passkey whose attestation has been verified."""

    credential_id: str
    public_key: bytes
    sign_count: int
    aaguid: str
    attestation: str
    transports: list[str]
    backed_up: bool
    user_verified: bool


@dataclass(frozen=True, slots=True)
class Assertion:
    """A signature by a passkey that has been verified."""

    sign_count: int
    backed_up: bool
    user_verified: bool


# -- Options --------------------------------------------------------------------------------------


def registration_options(
    issued: Issued,
    user_id: str,
    username: str,
    existing: Sequence[str] = (),
    *,
    party: RelyingParty | None = None,
) -> dict[str, Json]:
    """What a client hands to ``navigator.credentials.create``, and the names that wallet services
    have for some of it. ``known`` are passkeys that the authenticator needn't make again."""
    party = party or relying_party.of_apps()
    options = webauthn.generate_registration_options(
        rp_id=party.domain,
        rp_name=party.name,
        user_id=user_id.encode(),
        user_name=username,
        user_display_name=username,
        challenge=issued.challenge,
        timeout=PATIENCE,
        attestation=AttestationConveyancePreference(service_settings.WEBAUTHN_ATTESTATION),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            require_resident_key=True,
            user_verification=_verification(),
        ),
        exclude_credentials=_descriptors(existing),
        supported_pub_key_algs=list(ALGORITHMS),
    )
    shown: dict[str, Any] = options_to_json_dict(options)
    return {
        **shown,
        "pubKeyCredParam": shown["pubKeyCredParams"],
        "supportedCredentialKinds": {"firstFactor": [KIND], "secondFactor": []},
        "temporaryAuthenticationToken": issued.token,
    }


def authentication_options(
    issued: Issued, allowed: Sequence[str], *, party: RelyingParty | None = None
) -> dict[str, Json]:
    """What a client hands to ``navigator.credentials.get``."""
    options = webauthn.generate_authentication_options(
        rp_id=(party or relying_party.of_apps()).domain,
        challenge=issued.challenge,
        timeout=PATIENCE,
        allow_credentials=_descriptors(allowed),
        user_verification=_verification(),
    )
    shown: dict[str, Any] = options_to_json_dict(options)
    return {**shown, "temporaryAuthenticationToken": issued.token}


def _verification() -> UserVerificationRequirement:
    return UserVerificationRequirement(service_settings.WEBAUTHN_USER_VERIFICATION)


def _is_verification_required() -> bool:
    return _verification() is UserVerificationRequirement.REQUIRED


def _descriptors(ids: Sequence[str]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(id=base64url_to_bytes(credential_id)) for credential_id in ids
    ]


# -- Forms ----------------------------------------------------------------------------------------


def read_attestation(body: Mapping[str, Any]) -> Credential:
    """A new credential: the standard's JSON form, or the one of wallet services
    (``firstFactorCredential``; a ``recoveryCredential`` beside it is ignored)."""
    if "firstFactorCredential" in body:
        place = "firstFactorCredential"
        factor = _part(body, place, "")
        if factor.get("credentialKind") != KIND:
            raise Unverified(f"{place}.credentialKind: only {KIND} is supported")
        info = _part(factor, "credentialInfo", f"{place}.")
        names = {"clientDataJSON": "clientData", "attestationObject": "attestationData"}
        return _credential(info, "credId", info, f"{place}.credentialInfo.", names)
    _check_type(body)
    names = {"clientDataJSON": "clientDataJSON", "attestationObject": "attestationObject"}
    return _credential(body, "id", _part(body, "response", ""), "response.", names)


def read_assertion(body: Mapping[str, Any]) -> Credential:
    """A signature: the standard's JSON form, or the one of wallet services (``firstFactor``)."""
    if "firstFactor" in body:
        factor = _part(body, "firstFactor", "")
        if factor.get("kind") != KIND:
            raise Unverified(f"firstFactor.kind: only {KIND} is supported")
        place = "firstFactor.credentialAssertion."
        info = _part(factor, "credentialAssertion", "firstFactor.")
        names = {
            "clientDataJSON": "clientData",
            "authenticatorData": "authenticatorData",
            "signature": "signature",
        }
        return _credential(info, "credId", info, place, names)
    _check_type(body)
    names = {name: name for name in ("clientDataJSON", "authenticatorData", "signature")}
    return _credential(body, "id", _part(body, "response", ""), "response.", names)


def _check_type(body: Mapping[str, Any]) -> None:
    if body.get("type") != "public-key":
        raise Unverified("type: expected public-key")


def _part(body: Mapping[str, Any], name: str, place: str) -> Mapping[str, Any]:
    value = body.get(name)
    if not isinstance(value, Mapping):
        raise Unverified(f"{place}{name}: expected an object")
    return value


def _credential(
    body: Mapping[str, Any],
    id_name: str,
    parts: Mapping[str, Any],
    place: str,
    names: Mapping[str, str],
) -> Credential:
    id_place = place if parts is body else ""
    credential_id = _text(body, id_name, id_place, _LONGEST_ID)
    if parts is not body and _text(body, "rawId", "", _LONGEST_ID) != credential_id:
        raise Unverified("rawId: isn't the same as id")
    response: dict[str, Any] = {
        name: _text(parts, theirs, place, _LONGEST) for name, theirs in names.items()
    }
    if parts.get("userHandle") is not None:
        response["userHandle"] = _text(parts, "userHandle", place, _LONGEST_ID)
    transports = parts.get("transports")
    if isinstance(transports, list):
        # A list, for others that are made later are nothing wrong.
        supported = [
            transport
            for transport in transports
            if isinstance(transport, str) and transport in _TRANSPORTS
        ]
        response["transports"] = sorted(set(supported))
    return {"id": credential_id, "rawId": credential_id, "type": "public-key", "response": response}


def _text(body: Mapping[str, Any], name: str, place: str, longest: int) -> str:
    value = body.get(name)
    text = value.rstrip("=") if isinstance(value, str) else ""
    if not _BASE64URL(text) or len(text) > longest or len(text) % 4 == 1:
        raise Unverified(f"{place}{name}: expected base64url")
    # One spelling: unused bits may say anything.
    return bytes_to_base64url(base64url_to_bytes(text))


# -- Verifying ------------------------------------------------------------------------------------


def verify_attestation(
    credential: Credential, challenge: bytes, *, party: RelyingParty | None = None
) -> NewPasskey:
    """The new passkey, if the answer to the challenge holds in all its parts."""
    party = party or relying_party.of_apps()

    def verify() -> NewPasskey:
        proven = webauthn.verify_registration_response(
            credential=_without(credential, "userHandle"),
            expected_challenge=challenge,
            expected_rp_id=party.domain,
            expected_origin=list(party.origins),
            require_user_verification=_is_verification_required(),
            supported_pub_key_algs=list(ALGORITHMS),
        )
        _check_frame(credential)
        if bytes_to_base64url(proven.credential_id) != credential["id"]:
            raise Unverified("the id isn't the one that was attested")
        # A key that can't be one would be found out at the first log-in, which is too late.
        key = decode_credential_public_key(proven.credential_public_key)
        decoded_public_key_to_cryptography(key)
        is_silent = proven.fmt == AttestationFormat.NONE
        if is_silent and service_settings.WEBAUTHN_ATTESTATION == "direct":
            raise Unverified("an authenticator that says nothing of itself isn't accepted")
        return NewPasskey(
            credential_id=credential["id"],
            public_key=proven.credential_public_key,
            sign_count=proven.sign_count,
            aaguid=proven.aaguid,
            attestation=AttestationFormat(proven.fmt).value,
            transports=credential["response"].get("transports", []),
            backed_up=proven.credential_backed_up,
            user_verified=proven.user_verified,
        )

    return _verified(verify)


def verify_assertion(
    credential: Credential,
    challenge: bytes,
    public_key: bytes,
    *,
    party: RelyingParty | None = None,
) -> Assertion:
    """What the signature says, if it is right. The counter is to be compared by the caller."""
    party = party or relying_party.of_apps()

    def verify() -> Assertion:
        proven = webauthn.verify_authentication_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=party.domain,
            expected_origin=list(party.origins),
            credential_public_key=public_key,
            # The library checks it before the signature; a client that can't sign doesn't learn of
            # it.
            credential_current_sign_count=0,
            require_user_verification=_is_verification_required(),
        )
        _check_frame(credential)
        return Assertion(proven.new_sign_count, proven.credential_backed_up, proven.user_verified)

    return _verified(verify)


def user_handle(credential: Credential) -> str | None:
    """The user whose passkey it is, as the authenticator says; None if it doesn't."""
    handle = credential["response"].get("userHandle")
    if handle is None:
        return None
    try:
        return base64url_to_bytes(handle).decode("ascii")
    except UnicodeDecodeError:
        return ""


def _verified(verify: Callable[[], _T]) -> _T:
    try:
        return verify()
    except Unverified:
        raise
    except Exception as error:
        # The library reads certificates, CBOR and keys that others have made, and what it raises
        # on them is as various. Its own texts are about these; the others may be about anything.
        is_of_library = type(error).__module__.startswith("webauthn.")
        if not is_of_library:
            log.info("an authenticator's answer can't be read", error=type(error).__name__)
        text = str(error).partition(". See __cause__")[0] if is_of_library else "it can't be read"
        clean = "".join(character if character.isprintable() else "?" for character in text)
        raise Unverified(clean[:_LONGEST_REASON] or "it isn't right") from None


def _check_frame(credential: Credential) -> None:
    """Refuse what was asked for from a page of others that has one of ours in a frame."""
    client_data = json.loads(base64url_to_bytes(credential["response"]["clientDataJSON"]))
    if client_data.get("crossOrigin") or client_data.get("topOrigin") is not None:
        raise Unverified("passkeys aren't made or used in frames of other sites")


def _without(credential: Credential, name: str) -> Credential:
    response = {key: value for key, value in credential["response"].items() if key != name}
    return {**credential, "response": response}
