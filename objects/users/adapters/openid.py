"""OpenID Connect: an identity token (``authData.NAME.id_token``) that the issuer has signed.

Checked are the signature, by a key of the issuer and an algorithm that was chosen beforehand; the
issuer; that the token was made for one of our client ids (``aud``, ``azp``); its times; and the
``nonce`` if the client sends the one that it asked with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import jwt

from backend.kernel.json_types import Json
from objects.users.adapters.base import Adapter, ProviderIdentity, Unproven, proof_text
from objects.users.adapters.http import Unreachable, allowed, fetch
from objects.users.adapters.keys import ALGORITHMS, IssuerKeys

LEEWAY = 60  # seconds that clocks may differ


class OpenId(Adapter):
    """Any issuer. Options: ``issuer``, ``clientIds``, and if need be ``jwksUri`` (else found by
    discovery), ``algorithms``, ``subject`` (the claim that is the id), ``requiredClaims``.
    """

    issuer = ""
    jwks_uri = ""
    algorithms: tuple[str, ...] = ("RS256", "ES256")
    subject = "sub"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        self.client_ids = frozenset(self.texts("clientIds"))
        self.issuer = self.text("issuer", self.issuer)
        self.jwks_uri = options.get("jwksUri", self.jwks_uri)
        self.subject = self.text("subject", self.subject)
        if "algorithms" in options:
            self.algorithms = self.texts("algorithms")
        if not set(self.algorithms) <= ALGORITHMS:
            raise self.misconfigured(f"algorithms must be of {', '.join(sorted(ALGORITHMS))}.")
        self.required_claims = options.get("requiredClaims", {})
        if not isinstance(self.required_claims, Mapping):
            raise self.misconfigured("requiredClaims must be an object.")
        for url in filter(None, (self.issuer, self.jwks_uri)):
            if not isinstance(url, str) or not allowed(url):
                raise self.misconfigured("issuer and jwksUri must be https addresses.")
        self._keys = IssuerKeys(self._key_list)

    def verify(self, data: Mapping[str, Json]) -> ProviderIdentity:
        claims = self.claims(proof_text(data, "id_token", "token"), data.get("nonce"))
        identity = self.identity(claims)
        return ProviderIdentity(identity, {"id": identity})

    def identity(self, claims: Mapping[str, Any]) -> str:
        """The id of whom these claims are about."""
        value = claims.get(self.subject)
        if not isinstance(value, str) or not value:
            raise Unproven(f"the token has no {self.subject}")
        return value

    def accepts_issuer(self, claims: Mapping[str, Any]) -> bool:
        """Whether the token's issuer is ours."""
        return claims.get("iss") == self.issuer

    def claims(self, token: str, nonce: Json = None) -> dict[str, Any]:
        """What a token says, once everything about it is checked."""
        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
            # Access tokens of the same issuer say at+jwt.
            if algorithm not in self.algorithms or str(kind).upper() != "JWT":
                raise Unproven("the token is of another kind")
            key = self._keys.find(key_id)
            if key is None or algorithm not in key.algorithms:
                raise Unproven("the token is signed with an unknown key")
            claims = jwt.decode(
                token,
                key.public,
                algorithms=[algorithm],
                audience=self.client_ids,
                leeway=LEEWAY,
                options={"require": ["iss", "aud", "exp", "iat", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise Unproven(f"the token is refused: {type(error).__name__}") from None
        if not self.accepts_issuer(claims):
            raise Unproven("the token is of another issuer")
        self._check_parties(claims)
        self._check_nonce(claims, nonce)
        for name, expected in self.required_claims.items():
            if claims.get(name) != expected:
                raise Unproven(f"the token's {name} is not the required one")
        return claims

    def _check_parties(self, claims: Mapping[str, Any]) -> None:
        party, audience = claims.get("azp"), claims["aud"]
        if party is None and isinstance(audience, list) and len(audience) > 1:
            raise Unproven("the token is for several and doesn't say who asked for it")
        if party is not None and party not in self.client_ids:
            raise Unproven("the token was asked for by another client")

    def _check_nonce(self, claims: Mapping[str, Any], nonce: Json) -> None:
        if nonce is None:
            return
        # Apps send Apple and Facebook the hash of the nonce that they keep.
        if not isinstance(nonce, str) or claims.get("nonce") not in (
            nonce,
            hashlib.sha256(nonce.encode("utf-8", "replace")).hexdigest(),
        ):
            raise Unproven("the nonce is another one")

    def _key_list(self) -> str:
        if self.jwks_uri:
            return str(self.jwks_uri)
        answer = fetch(f"{self.authority().rstrip('/')}/.well-known/openid-configuration")
        if answer.status != 200:
            raise Unreachable(f"its configuration was answered with {answer.status}")
        document = answer.json()
        uri = document.get("jwks_uri")
        if not self.discovered(document.get("issuer")) or not isinstance(uri, str):
            raise Unreachable("its configuration is that of another issuer")
        return uri

    def authority(self) -> str:
        """Below this address the issuer keeps its configuration."""
        return self.issuer

    def discovered(self, issuer: object) -> bool:
        """Whether the issuer that its own configuration names is ours."""
        return issuer == self.issuer
