"""``/users``, ``/sessions`` and the routes that begin and end sessions (docs/users.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, NotRequired, TypedDict

from backend.http.call import Call
from backend.http.idempotency import Keeping
from backend.http.permissions import Requires
from backend.http.renderers import Answer
from backend.http.views import ServiceView
from backend.kernel.errors import (
    AccountAlreadyLinked,
    InvalidSessionToken,
    OperationForbidden,
)
from backend.kernel.json_types import Wire
from backend.kernel.principal import Principal
from backend.openapi import LOCATION, DateTime, answer, describes, query
from objects import service
from objects.core.names import SESSION, USER, ClassName, ObjectId
from objects.core.query.options import parse_find_options, parse_get_options
from objects.storage.records import wire_object
from objects.users import sign_in
from objects.users.accounts.owner_view import owners_view
from objects.users.sessions import search as session_search
from objects.users.sessions import tokens
from objects.views.bodies import (
    DONE,
    FIELDS,
    GET_PARAMETERS,
    OWN_USER,
    SESSION_CHANGE,
    UPDATED,
    AuthData,
    Password,
    SessionToken,
)
from objects.views.bodies import SESSION as SESSION_FORM
from objects.views.classes import (
    ObjectsView,
    ObjectView,
    address_below,
    created_answer,
    find_limits,
    found_body,
)


class SignedUpAnswer(TypedDict):
    objectId: str
    createdAt: DateTime
    updatedAt: NotRequired[DateTime]
    sessionToken: NotRequired[SessionToken]


class PasswordForm(TypedDict):
    """A user name or an address, and the password; `authData.mfa.token` where the user has a
    second factor."""

    username: NotRequired[str]
    email: NotRequired[str]
    password: Password
    authData: NotRequired[AuthData]


class LogInAsForm(TypedDict):
    userId: str


class ChallengeData(TypedDict):
    challengeData: dict[str, Any]


class ChallengeForm(ChallengeData):
    """A user name or an address may come along, with the password."""

    username: NotRequired[str]
    email: NotRequired[str]
    password: NotRequired[Password]


_ACCOUNT = answer("The user, with a session.", OWN_USER)
_USER = answer("The user.", OWN_USER)
_QUERY = tuple(
    query(name, {"type": "string"}, required=name == "password")
    for name in ("username", "email", "password")
)


class UsersView(ObjectsView):
    """Find users; sign up, or in with another service's proof."""

    @describes(
        "addUser",
        "Sign up, or in with another service's proof",
        request=FIELDS,
        response=(
            answer("A new user.", SignedUpAnswer, 201, LOCATION),
            answer("A user whom the proof in `authData` belongs to.", OWN_USER),
        ),
        description="`username` and `password`, or `authData`.",
    )
    def post(self, call: Call, class_name: ClassName) -> Answer:
        body = call.body
        signed_in = sign_in.sign_in_with_providers(call.principal, body)
        if signed_in is not None:
            return _signed_in(signed_in)
        try:
            created = service.create(call.principal, class_name, body)
        except AccountAlreadyLinked:
            # Another request signed up with the same proof at the same moment.
            signed_in = sign_in.sign_in_with_providers(call.principal, body)
            if signed_in is None:
                raise
            return _signed_in(signed_in)
        return created_answer(created, "/users")


def _signed_in(account: Wire) -> Answer:
    location = address_below("/users", str(account["objectId"]))
    return Answer(account, headers={"Location": location})


class UserView(ObjectView):
    """One user."""

    def get(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        if object_id != call.principal.user_id:
            return super().get(call, class_name, object_id)
        return _own_account(call, object_id)

    def put(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        auth_data = call.body.get("authData")
        answer = super().put(call, class_name, object_id)
        token = sign_in.session_after_linking(call.principal, object_id, auth_data)
        return answer if token is None else Answer({**answer.body, "sessionToken": token})


class MeView(ServiceView):
    """The user of the session."""

    tag = "Users"

    @describes("currentUser", "The user of the session", parameters=GET_PARAMETERS, response=_USER)
    def get(self, call: Call) -> Answer:
        principal = call.principal
        if principal.is_master and principal.session_token is not None:
            options = parse_get_options(call.params, find_limits())
            return Answer(sign_in.own_account(principal.session_token, principal, options))
        if principal.user_id is None:
            raise InvalidSessionToken("Invalid session token")
        return _own_account(call, principal.user_id)


def _own_account(call: Call, user_id: str) -> Answer:
    options = parse_get_options(call.params, find_limits())
    account = wire_object(service.get(call.principal, USER, ObjectId(user_id), options))
    return Answer(owners_view(call.principal, account))


class LoginView(ServiceView):
    """Sign in, by ``GET`` or ``POST``. A session token that comes along doesn't matter."""

    tag = "Users"
    proves: ClassVar[Callable[[Principal, Mapping[str, Any]], Wire]] = sign_in.log_in
    with_session = False
    # Undone, a wrong guess would not have been counted.
    in_transaction = False
    # A session may have ended since; another one does no harm.
    keeping = Keeping.NOT

    @describes(
        "logInByQuery",
        "Log in, as old clients do it",
        parameters=_QUERY,
        response=_ACCOUNT,
        description="Better by `POST`: addresses are stored in logs.",
    )
    def get(self, call: Call) -> Answer:
        return self.post(call)

    @describes("logIn", "Log in", request=PasswordForm, response=_ACCOUNT)
    def post(self, call: Call) -> Answer:
        return Answer(type(self).proves(call.principal, {**call.params, **call.body}))


class VerifyPasswordView(LoginView):
    """Whether a password is right, without a session."""

    proves = sign_in.verify_password

    @describes(
        "verifyPasswordByQuery",
        "Whether a password is right, as old clients request it",
        parameters=_QUERY,
        response=_USER,
    )
    def get(self, call: Call) -> Answer:
        return super().get(call)

    @describes(
        "verifyPassword",
        "Whether a password is right; no session starts",
        request=PasswordForm,
        response=_USER,
    )
    def post(self, call: Call) -> Answer:
        return super().post(call)


class LoginAsView(ServiceView):
    """A session of any user, for the master key."""

    tag = "Users"
    requires = Requires.MASTER_KEY

    def answer(self, call: Call, **kwargs: str) -> Answer:
        if not call.principal.is_master:  # Parse's message for this route alone
            raise OperationForbidden("master key is required", status=403)
        return super().answer(call, **kwargs)

    @describes("logInAs", "Start a session of any user", request=LogInAsForm, response=_ACCOUNT)
    def post(self, call: Call) -> Answer:
        user_id = call.body.get("userId") or call.params.get("userId")
        return Answer(sign_in.log_in_as(call.principal, user_id))


class LogoutView(ServiceView):
    """End the session."""

    tag = "Users"

    @describes("logOut", "End the session", response=DONE)
    def post(self, call: Call) -> Answer:
        sign_in.log_out(call.principal)
        return Answer({})


class ChallengeView(ServiceView):
    """What another service wants answered."""

    tag = "Users"
    with_session = False
    # Undone, a wrong guess would not have been counted.
    in_transaction = False

    @describes(
        "challenge",
        "What other services require before signing in",
        request=ChallengeForm,
        response=answer("The challenge data of each service that has some.", ChallengeData),
    )
    def post(self, call: Call) -> Answer:
        return Answer(sign_in.challenge(call.principal, call.body))


class UpgradeSessionView(ServiceView):
    """Exchange the session for a revocable one; all are."""

    tag = "Sessions"
    keeping = Keeping.NOT

    @describes(
        "upgradeSession",
        "Start another session, as SDKs do for sessions of old versions",
        response=answer("The new session.", SESSION_FORM),
    )
    def post(self, call: Call) -> Answer:
        return Answer(sign_in.upgrade_session(call.principal))


class SessionsView(ObjectsView):
    """Sessions: find some, start one."""

    def get(self, call: Call, class_name: ClassName) -> Answer:
        options = parse_find_options(call.params, find_limits())
        return Answer(found_body(session_search.find(call.principal, options)))


class SessionView(ObjectView):
    """One session."""

    def get(self, call: Call, class_name: ClassName, object_id: ObjectId) -> Answer:
        if object_id != call.principal.session_id:
            return super().get(call, class_name, object_id)
        options = parse_get_options(call.params, find_limits())
        session = wire_object(service.get(call.principal, class_name, object_id, options))
        return Answer(session_search.as_own(call.principal, session, options))


class OwnSessionView(ServiceView):
    """The session of the request itself; expired ones are shown too."""

    tag = "Sessions"
    with_session = False

    @describes(
        "currentSession",
        "The session of the request",
        response=answer("The session.", SESSION_FORM),
    )
    def get(self, call: Call) -> Answer:
        principal = call.principal
        if principal.session_token is None:
            raise InvalidSessionToken("Session token required.")
        return Answer(sign_in.own_session(principal.session_token, principal))

    @describes(
        "changeCurrentSession",
        "Change the session of the request",
        request=SESSION_CHANGE,
        response=UPDATED,
    )
    def put(self, call: Call) -> Answer:
        principal = call.principal
        if principal.session_token is None:
            raise InvalidSessionToken("Session token required.")
        session = tokens.authenticate(principal.session_token)
        if not principal.is_master:
            principal = replace(
                principal,
                user_id=session.user_id,
                roles=session.roles,
                session_id=session.session_id,
            )
        updated = service.update(principal, SESSION, ObjectId(session.session_id), call.body)
        return Answer({"updatedAt": updated.updated_at, **updated.fields})
