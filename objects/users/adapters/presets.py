"""OpenID Connect with what is peculiar to Google, Apple and Microsoft."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from objects.users.adapters.base import ProviderIdentity
from objects.users.adapters.openid import OpenId

_TENANT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Google(OpenId):
    """Options: ``clientIds``. List those of the Android and iOS apps too: they are the ``azp``."""

    issuer = "https://accounts.google.com"
    algorithms = ("RS256",)

    def accepts_issuer(self, claims: Mapping[str, Any]) -> bool:
        # Some of Google's libraries give tokens without the scheme.
        return claims.get("iss") in (self.issuer, urlsplit(self.issuer).netloc)


class Apple(OpenId):
    """Options: ``clientIds``: the bundle ids of apps and the services ids of web sites."""

    issuer = "https://appleid.apple.com"
    algorithms = ("RS256",)


class Microsoft(OpenId):
    """Options: ``clientIds``, ``tenants`` (ids; none: any tenant and personal accounts).

    The id is ``oid``, which is the id that Microsoft Graph knows. Where several tenants may sign in
    it is ``TENANT.oid``, because each tenant answers for its own users only.
    """

    issuer = "https://login.microsoftonline.com"
    algorithms = ("RS256",)
    subject = "oid"

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        super().__init__(name, options)
        tenants = options.get("tenants") or ()
        if not isinstance(tenants, list | tuple) or not all(
            _is_tenant(tenant) for tenant in tenants
        ):
            raise self.misconfigured("tenants must list ids of tenants, as UUIDs in lower case.")
        self.tenants = frozenset(tenants)

    def authority(self) -> str:
        return self._issuer_of(min(self.tenants) if len(self.tenants) == 1 else "common")

    def discovered(self, issuer: object) -> bool:
        return issuer in [self._issuer_of(tenant) for tenant in ("{tenantid}", *self.tenants)]

    def accepts_issuer(self, claims: Mapping[str, Any]) -> bool:
        tenant = claims.get("tid")
        is_accepted = tenant in self.tenants if self.tenants else _is_tenant(tenant)
        return is_accepted and claims.get("iss") == self._issuer_of(str(tenant))

    def identity(self, claims: Mapping[str, Any]) -> str:
        own = super().identity(claims)
        return own if len(self.tenants) == 1 else f"{claims['tid']}.{own}"

    def accepts_id(self, claimed: str, identity: ProviderIdentity) -> bool:
        # Clients know the second part, from Graph or their library.
        return claimed in (identity.id, identity.id.rpartition(".")[2])

    def _issuer_of(self, tenant: str) -> str:
        return f"{self.issuer.rstrip('/')}/{tenant}/v2.0"


def _is_tenant(value: object) -> bool:
    return isinstance(value, str) and _TENANT.fullmatch(value) is not None
