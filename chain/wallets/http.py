"""Custodians behind an HTTP API, in the shapes that wallet-as-a-service providers publish.

``Http``: the wallets are the service account's. ``POST /wallets {"network", "name", "externalId"}``
makes one and answers with it: ``{"id", "network", "address", "status", …}``; the address may come
later, by ``GET /wallets/ID``. What fails halfway is requested again with the same
``Idempotency-Key`` and ``externalId``, so no second wallet is made; a 409 that names the duplicate
(``error.details.duplicate.id``) is an answer, too.

``Delegated``: the wallets are the user's, who signs for them with the same passkey. The user's
registration is begun there as well (``POST /auth/registration/delegated``); its challenge is what
the passkey signs, and the passkey is handed on (``POST /auth/registration/enduser``), which makes
the wallets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from webauthn.helpers import base64url_to_bytes

from chain.wallets.adapters import Custodian, CustodyFailed, Invitation, Made, Owner, Proof
from chain.wallets.http_api import WalletApi

_LONGEST_NAME = 100  # characters
_SHORTEST_CHALLENGE = 16  # bytes


class Http(Custodian):
    """See the module."""

    name = "http"

    def create(self, owner: Owner, networks: Sequence[str], proof: Proof | None) -> Iterator[Made]:
        for network in networks:
            api = WalletApi()
            external_id = f"{owner.user_id}:{network}"
            body = {
                "network": network,
                "name": owner.username[:_LONGEST_NAME],
                "externalId": external_id,
            }
            key = hashlib.sha256(f"wallet {external_id}".encode()).hexdigest()
            yield api.wallet(api.post("/wallets", body, {"Idempotency-Key": key}), network)


class Delegated(Custodian):
    """See the module."""

    name = "http"

    def invite(self, owner: Owner) -> Invitation:
        body = {"email": owner.username, "kind": "EndUser"}
        response = WalletApi().post("/auth/registration/delegated", body)
        token, challenge = (response.get(n) for n in ("temporaryAuthenticationToken", "challenge"))
        try:
            raw_challenge = base64url_to_bytes(challenge) if isinstance(challenge, str) else b""
        except ValueError:
            raw_challenge = b""
        if not isinstance(token, str) or not token or len(raw_challenge) < _SHORTEST_CHALLENGE:
            raise CustodyFailed("the registration has no challenge")
        return Invitation(raw_challenge, token)

    def create(self, owner: Owner, networks: Sequence[str], proof: Proof | None) -> Iterator[Made]:
        if proof is None:
            return  # only a registration makes wallets
        api = WalletApi()
        response = proof.credential["response"]
        info = {
            "credId": proof.credential["id"],
            "clientData": response["clientDataJSON"],
            "attestationData": response["attestationObject"],
        }
        body = {
            "firstFactorCredential": {"credentialKind": "Fido2", "credentialInfo": info},
            "wallets": [{"network": network} for network in networks],
        }
        headers = {"Authorization": f"Bearer {proof.token}"}
        created = api.post("/auth/registration/enduser", body, headers, is_signed=False)
        for network in networks:
            yield api.wallet(_of_network(created.get("wallets"), network), network)


def _of_network(wallets: Any, network: str) -> Any:
    for wallet in wallets if isinstance(wallets, list) else ():
        if isinstance(wallet, dict) and wallet.get("network") == network:
            return wallet
    raise CustodyFailed("the service has made no wallet on a network")
