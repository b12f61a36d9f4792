"""The classes of people, as the object store sees them."""

from __future__ import annotations

from typing import Any

from objects import registry
from objects.core.schema import SYSTEM_FIELDS
from objects.rules import set_rules
from objects.users.installation_rules import InstallationRules
from objects.users.models import Installation, Role, Session, User
from objects.users.role_rules import RoleRules
from objects.users.session_rules import SessionRules
from objects.users.user_rules import UserRules

_CLASSES: dict[str, tuple[type[Any], dict[str, str]]] = {
    "_User": (User, {"emailVerified": "email_verified", "authData": "auth_data"}),
    "_Session": (
        Session,
        {
            "installationId": "installation_id",
            "expiresAt": "expires_at",
            "createdWith": "created_with",
        },
    ),
    "_Role": (Role, {}),
    "_Installation": (
        Installation,
        {
            "installationId": "installation_id",
            "deviceToken": "device_token",
            "deviceType": "device_type",
        },
    ),
}
_PROMOTED = {
    "_User": ("username", "email", "emailVerified", "authData"),
    "_Session": ("user", "installationId", "expiresAt", "createdWith"),
    "_Role": ("name",),
    "_Installation": ("installationId", "deviceToken", "deviceType", "channels"),
}


def offer_classes() -> None:
    """Offer the models of people as classes, with their rules."""
    for class_name, (model, columns) in _CLASSES.items():
        fields = {name: SYSTEM_FIELDS[class_name][name] for name in _PROMOTED[class_name]}
        registry.model_class(class_name, model, fields, columns=columns)
    set_rules("_User", UserRules())
    set_rules("_Session", SessionRules())
    set_rules("_Role", RoleRules())
    set_rules("_Installation", InstallationRules())
