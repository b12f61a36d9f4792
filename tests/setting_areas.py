"""The areas of ``backend.settings.areas``, each with its values from the environment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from backend.settings import declaration
from backend.settings.areas import files as file_area
from backend.settings.areas import mail as mail_area
from backend.settings.areas.chain import Chain
from backend.settings.areas.files import Files
from backend.settings.areas.http import Metrics
from backend.settings.areas.mail import Mail
from backend.settings.areas.passkeys import Passkeys
from backend.settings.areas.sign_in import SignIn


def _at(area: type[declaration.Area], public_url: str) -> dict[str, Any]:
    """The values of an area of a service with this address."""
    with patch.dict(os.environ, {"PUBLIC_URL": public_url} if public_url else {}):
        return area.read()


def _with_networks(networks: Iterable[str]) -> dict[str, Any]:
    with patch.dict(os.environ, {"METRICS_NETWORKS": ",".join(networks)}):
        return Metrics.read()


mail = SimpleNamespace(
    service_values=lambda public_url: _at(Mail, public_url),
    django_values=mail_area.django_values,
    template_folders=mail_area.template_folders,
)
files = SimpleNamespace(
    service_values=lambda public_url="": _at(Files, public_url), storage=file_area.storage
)
metrics = SimpleNamespace(service_values=_with_networks)
signers = SimpleNamespace(service_values=Chain.read)
wallets = SimpleNamespace(service_values=Passkeys.read)
providers = SimpleNamespace(read=lambda: SignIn.read()["AUTH_ADAPTERS"])
