"""Users, sessions, roles and installations: classes with routes of their own, and signing in."""

from __future__ import annotations

from typing import Any

from backend.http.permissions import Requires
from backend.openapi import Operation, answer, body, ref
from backend.openapi.operations import query
from objects.access.visible_classes import VisibleClass
from objects.core.schema.definition import SYSTEM_FIELDS, FieldType
from objects.views.openapi import values
from objects.views.openapi.classes import (
    CREATED,
    DONE,
    GET_PARAMETERS,
    OBJECT_FIELDS,
    UPDATED,
    ClassSchemas,
    Paths,
    Words,
    routes,
    words_of,
)

Json = dict[str, Any]

_USERS, _SESSIONS = "Users", "Sessions"
_TEXT: Json = {"type": "string"}
_SESSION_TOKEN: Json = {"type": "string", "description": "For `X-Svc-Session-Token`."}
_PASSWORD: Json = {"type": "string", "format": "password"}
_AUTH_DATA: Json = {
    "type": ["object", "null"],
    "description": "Proofs of other services: `google`, `apple`, `mfa` and so on.",
}


def _ids(one: str, many: str) -> dict[str, str]:
    return {
        "find": f"list{many}",
        "create": f"add{one}",
        "get": f"read{one}",
        "update": f"change{one}",
        "delete": f"remove{one}",
    }


# The classes that have routes of their own, beside those below `/classes`.
ROUTES = {
    "_User": ("/users", Words(_USERS, "a user", "users", _ids("User", "Users"))),
    "_Session": (
        "/sessions",
        Words(_SESSIONS, "a session", "sessions", _ids("Session", "Sessions")),
    ),
    "_Role": ("/roles", Words("Roles", "a role", "roles", _ids("Role", "Roles"))),
    "_Installation": (
        "/installations",
        Words(
            "Installations",
            "an installation",
            "installations",
            _ids("Installation", "Installations"),
        ),
    ),
}

SCHEMAS: dict[str, Json] = {
    "SignedUpAnswer": {
        "type": "object",
        "properties": {**OBJECT_FIELDS, "sessionToken": _SESSION_TOKEN},
        "required": ["objectId", "createdAt"],
    },
    "PasswordForm": {
        "type": "object",
        "properties": {
            "username": _TEXT,
            "email": _TEXT,
            "password": _PASSWORD,
            "authData": _AUTH_DATA,
        },
        "required": ["password"],
        "description": "A user name or an address, and the password; `authData.mfa.token` where"
        " the user has a second factor.",
    },
    "EmailForm": {
        "type": "object",
        "properties": {"email": {"type": "string", "examples": ["ann@example.org"]}},
        "required": ["email"],
    },
    "LogInAsForm": {"type": "object", "properties": {"userId": _TEXT}, "required": ["userId"]},
    "ChallengeData": {
        "type": "object",
        "properties": {"challengeData": {"type": "object"}},
        "required": ["challengeData"],
    },
}


def classes_of_people(classes: list[VisibleClass]) -> list[VisibleClass]:
    """``_User`` and ``_Session`` as far as everybody knows them, where the caller may do nothing
    in them: the routes for signing in speak of them."""
    known = {one.name for one in classes}
    return [
        VisibleClass(name, 0, SYSTEM_FIELDS[name], frozenset(), frozenset())
        for name in ("_User", "_Session")
        if name not in known
    ]


def describe(classes: ClassSchemas, visible: list[VisibleClass]) -> Paths:
    """The routes of people, and what their classes have beside other ones."""
    _complete(classes, visible)
    paths: Paths = {}
    for one in visible:
        if one.name in ROUTES:
            path, words = ROUTES[one.name]
            found = routes(path, classes.forms[one.name], words, one.actions)
            if one.name == "_User":
                alias = routes(
                    "/classes/_User", classes.forms["_User"], words_of("_User"), one.actions
                )
                _sign_up(found, "/users", ref(classes.own_user))
                _sign_up(alias, "/classes/_User", ref(classes.own_user))
                found.update(alias)
            elif one.name == "_Installation":
                _register(found)
            paths.update(found)
    return {**paths, **_signing_in(ref(classes.own_user)), **_own_session(classes)}


def _complete(classes: ClassSchemas, visible: list[VisibleClass]) -> None:
    """Add what an account's owner sees and sends, and what only its bearer sees of a session."""
    users = classes.forms["_User"]
    credentials = {"password": _PASSWORD, "email": _TEXT, "authData": _AUTH_DATA}
    for name in (users.create, users.update):
        classes.schemas[name]["properties"].update(credentials)
    account = classes.schemas[users.read]
    own = {
        "email": values.read_form(FieldType("String")),
        "authData": _AUTH_DATA,
        "sessionToken": _SESSION_TOKEN,
    }
    classes.schemas[classes.own_user] = {
        **account,
        "description": "A user as the user sees it.",
        "properties": {**account["properties"], **own},
    }
    for one in visible:
        if one.name == "_Role":
            classes.schemas[classes.forms[one.name].create]["required"] = ["name", "ACL"]


def _sign_up(paths: Paths, path: str, own_user: Json) -> None:
    operations = paths.get(path, {})
    if "post" not in operations:
        return
    plain = operations["post"]
    operations["post"] = Operation(
        plain.id,
        plain.tag,
        "Sign up, or in with another service's proof",
        {
            "201": answer("Somebody new.", ref("SignedUpAnswer"), Location="Location"),
            "200": answer("Somebody whom the proof in `authData` knows.", own_user),
        },
        body=plain.body,
        description="`username` and `password`, or `authData`.",
    )


def _register(paths: Paths) -> None:
    operations = paths.get("/installations", {})
    if "post" not in operations:
        return
    plain = operations["post"]
    operations["post"] = Operation(
        plain.id,
        plain.tag,
        "Register an app on a device",
        {**CREATED, "200": answer("It was registered before.", ref("CreatedAnswer"))},
        body=plain.body,
        description="`deviceType`, and `installationId` or `deviceToken`.",
    )


def _signing_in(own_user: Json) -> Paths:
    account = {"200": answer("The user, with a session.", own_user)}
    user = {"200": answer("The user.", own_user)}
    proof = tuple(
        query(name, {"type": "string"}, "", required=name == "password")
        for name in ("username", "email", "password")
    )
    mail = body(ref("EmailForm"))
    return {
        "/users/me": {
            "get": Operation(
                "currentUser",
                _USERS,
                "The user of the session",
                user,
                parameters=GET_PARAMETERS,
            )
        },
        "/login": {
            "post": Operation("logIn", _USERS, "Log in", account, body=body(ref("PasswordForm"))),
            "get": Operation(
                "logInByQuery",
                _USERS,
                "Log in, as old clients do it",
                account,
                parameters=proof,
                description="Better by `POST`: addresses are kept in logs.",
            ),
        },
        "/verifyPassword": {
            "post": Operation(
                "verifyPassword",
                _USERS,
                "Whether a password is right; no session begins",
                user,
                body=body(ref("PasswordForm")),
            ),
            "get": Operation(
                "verifyPasswordByQuery",
                _USERS,
                "Whether a password is right, as old clients ask it",
                user,
                parameters=proof,
            ),
        },
        "/logout": {"post": Operation("logOut", _USERS, "End the session", DONE)},
        "/loginAs": {
            "post": Operation(
                "logInAs",
                _USERS,
                "Begin a session of any user",
                account,
                requires=Requires.MASTER_KEY,
                body=body(ref("LogInAsForm")),
            )
        },
        "/challenge": {
            "post": Operation(
                "challenge",
                _USERS,
                "What other services want answered before signing in",
                {"200": answer("What they ask.", ref("ChallengeData"))},
                body=body(ref("ChallengeData")),
            )
        },
        "/upgradeToRevocableSession": {
            "post": Operation(
                "upgradeSession",
                _SESSIONS,
                "For sessions of long ago; there are none",
                {"200": answer("The session.", own_user)},
            )
        },
        "/requestPasswordReset": {
            "post": Operation(
                "requestPasswordReset", _USERS, "Ask for a link for a new password", DONE, body=mail
            )
        },
        "/verificationEmailRequest": {
            "post": Operation(
                "requestVerification",
                _USERS,
                "Ask for a link that verifies an address",
                DONE,
                body=mail,
            )
        },
    }


def _own_session(classes: ClassSchemas) -> Paths:
    forms = classes.forms["_Session"]
    return {
        "/sessions/me": {
            "get": Operation(
                "currentSession",
                _SESSIONS,
                "The session of the request",
                {"200": answer("The session.", ref(forms.read))},
            ),
            "put": Operation(
                "changeCurrentSession",
                _SESSIONS,
                "Change the session of the request",
                UPDATED,
                body=body(ref(forms.update), required=False),
            ),
        },
    }
