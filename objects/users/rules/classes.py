"""The classes of people, as the object store sees them."""

from __future__ import annotations

from typing import Any

from objects.core.names import INSTALLATION, ROLE, SESSION, USER, ClassName
from objects.core.schema.definition import SYSTEM_FIELDS
from objects.definitions import registry
from objects.rules import set_rules
from objects.users.models import Installation, Role, Session, User
from objects.users.rules.installations import InstallationRules
from objects.users.rules.roles import RoleRules
from objects.users.rules.sessions import SessionRules
from objects.users.rules.users import UserRules

_CLASSES: dict[ClassName, tuple[type[Any], dict[str, str]]] = {
    USER: (User, {"emailVerified": "email_verified", "authData": "auth_data"}),
    SESSION: (
        Session,
        {
            "installationId": "installation_id",
            "expiresAt": "expires_at",
            "createdWith": "created_with",
        },
    ),
    ROLE: (Role, {}),
    INSTALLATION: (
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
        fields = {
            name: type_
            for name, type_ in SYSTEM_FIELDS[class_name].items()
            if name in _PROMOTED[class_name]
        }
        registry.model_class(class_name, model, fields, columns=columns)
    set_rules(USER, UserRules())
    set_rules(SESSION, SessionRules())
    set_rules(ROLE, RoleRules())
    set_rules(INSTALLATION, InstallationRules())
