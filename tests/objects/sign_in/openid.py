"""Signing in by the issuer of these tests."""

from __future__ import annotations

from typing import Any

import pytest

from backend.kernel.errors import ObjectNotFound
from objects.users import adapters
from objects.users.adapters import ProviderIdentity


def verify(token: Any, **more: Any) -> ProviderIdentity:
    return adapters.verify("idp", {"id_token": token, **more})


def refused(token: Any, **more: Any) -> bool:
    with pytest.raises(ObjectNotFound) as caught:
        verify(token, **more)
    assert caught.value.message == "idp auth is invalid for this user."
    return True
