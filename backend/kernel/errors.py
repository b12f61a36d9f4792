"""Errors, with their codes and HTTP statuses.

Every response to a failed request is ``{"code": int, "error": str}``. The code and the HTTP
status are fixed by the class of the error; the numbers are those that the Parse SDKs know,
260 to 262 are the service's own for credentials (docs/rest.md).

ServiceError
├── OtherCause               -1   400
│   ├── SecondFactorMissing  -1   400  the user has a second factor and the request doesn't
│   └── InvalidLink          -1   400  a mailed link that is unknown, used or too old
├── InternalError             1   500  a fault of ours; the text is neutral, the log has the rest
├── RateLimited             100   429
├── ObjectNotFound          101   404
├── InvalidQuery            102   400
├── InvalidClassName        103   400
├── MissingObjectId         104   400
├── InvalidKeyName          105   400
├── InvalidPointer          106   400
├── InvalidJSON             107   400
├── CommandUnavailable      108   400  also 404, 405, 406, 415 for routes, methods, media types
├── IncorrectType           111   400
├── PushMisconfigured       115   400  a push that lacks a part or contradicts itself
├── ObjectTooLarge          116   413
├── OperationForbidden      119   400
│   ├── MasterKeyRequired   119   403
│   └── UnderMaintenance    119   400  the system is read-only for everybody
├── InvalidNestedKey        121   400
├── InvalidFileName         122   400
├── InvalidACL              123   400
├── Timeout                 124   400
├── InvalidEmailAddress     125   400
├── FileTooLarge            129   413
├── FileSaveFailed          130   400  an upload that is refused or can't be stored
├── AmbiguousDeviceToken    132   400
├── MissingDeviceField      135   400
├── FieldNotChangeable      136   400
├── DuplicateValue          137   400
├── InvalidRoleName         139   400
├── ScriptFailed            141   400
│   └── InvalidSecondFactor 141   400  as Parse reports what an adapter refuses
├── ValidationFailed        142   400  a required field is missing
├── InvalidHook             143   400  Parse has no code of its own for webhooks
│   └── HookExists          143   400
├── FileDeleteFailed        153   400
├── DuplicateRequest        159   400  a request id that was used before
├── InvalidEventName        160   400
├── InvalidValue            162   400
├── UsernameMissing         200   400
├── PasswordMissing         201   400
├── UsernameTaken           202   400
├── EmailTaken              203   400
├── EmailMissing            204   400
├── EmailNotFound           205   400  also an address that is not verified
├── SessionMissing          206   400  what only a user may do to their own account
├── AccountAlreadyLinked    208   400
├── InvalidSessionToken     209   400
├── TransactionConflict     251   400
├── UnsupportedService      252   400
├── InvalidSchemaOperation  255   400
├── InvalidApplicationId    260   403
├── InvalidMasterKey        261   403
│   └── InvalidMaintenanceKey 261 403
├── InvalidClientKey        262   403
└── ServiceUnavailable        1   503  a dependency (database, Redis, a provider) can't be reached
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class ServiceError(Exception):
    """An error that a client may see.

    Any other exception is a bug and is answered with one neutral ``InternalError``.
    ``message`` is sent as it is, so it must never hold SQL, a path, a key or a token.
    """

    code: int = 1
    status: int = 400

    def __init__(self, message: str, *, code: int | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status

    def body(self) -> dict[str, object]:
        """The JSON body that a client gets."""
        return {"code": self.code, "error": self.message}


class OtherCause(ServiceError):
    code = -1


class SecondFactorMissing(OtherCause):
    def __init__(self) -> None:
        super().__init__("Missing additional authData mfa")


class InvalidLink(OtherCause):
    def __init__(self) -> None:
        super().__init__("The link is not valid: it was used, it is too old, or it is incomplete.")


class InternalError(ServiceError):
    code, status = 1, 500


class ServiceUnavailable(ServiceError):
    code, status = 1, 503
    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "1"}


class RateLimited(ServiceError):
    code, status = 100, 429


class ObjectNotFound(ServiceError):
    """The object does not exist, or the caller may not know that it does."""

    code, status = 101, 404

    def __init__(self, message: str = "Object not found.") -> None:
        super().__init__(message)


class InvalidQuery(ServiceError):
    code = 102


class InvalidClassName(ServiceError):
    code = 103


class MissingObjectId(ServiceError):
    code = 104


class InvalidKeyName(ServiceError):
    code = 105


class InvalidPointer(ServiceError):
    code = 106


class InvalidJSON(ServiceError):
    code = 107


class CommandUnavailable(ServiceError):
    code = 108


class IncorrectType(ServiceError):
    code = 111


class PushMisconfigured(ServiceError):
    code = 115


class ObjectTooLarge(ServiceError):
    code, status = 116, 413


class OperationForbidden(ServiceError):
    code = 119


class MasterKeyRequired(OperationForbidden):
    status = 403

    def __init__(self, message: str = "unauthorized: master key is required") -> None:
        super().__init__(message)


class UnderMaintenance(OperationForbidden):
    """A write that is refused in maintenance mode.

    The status stays 400, since SDKs repeat requests that fail with 5xx. ``headers`` say when to try
    again, and name the mode for clients that don't want to compare texts.
    """

    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "60", "X-Svc-Mode": "maintenance"}

    def __init__(
        self, message: str = "System is currently in read-only mode for maintenance."
    ) -> None:
        super().__init__(message)


class Held(OperationForbidden):
    """What a restored instance doesn't send before an operator resumes it. ``what`` is a plural.

    As in maintenance mode, the status isn't 503, since SDKs repeat requests that fail with 5xx.
    """

    headers: ClassVar[Mapping[str, str]] = {"Retry-After": "60", "X-Svc-Mode": "held"}

    def __init__(self, what: str) -> None:
        super().__init__(
            f"This instance was restored from a backup, and {what} are held until an operator runs"
            " script/manage resume."
        )


class InvalidNestedKey(ServiceError):
    code = 121


class InvalidFileName(ServiceError):
    code = 122


class InvalidACL(ServiceError):
    code = 123


class Timeout(ServiceError):
    code = 124


class InvalidEmailAddress(ServiceError):
    code = 125


class FileTooLarge(ServiceError):
    code, status = 129, 413


class FileSaveFailed(ServiceError):
    code = 130


class AmbiguousDeviceToken(ServiceError):
    code = 132


class MissingDeviceField(ServiceError):
    code = 135


class FieldNotChangeable(ServiceError):
    code = 136


class DuplicateValue(ServiceError):
    code = 137


class InvalidRoleName(ServiceError):
    code = 139


class ScriptFailed(ServiceError):
    code = 141


class InvalidSecondFactor(ScriptFailed):
    def __init__(self, message: str = "Invalid MFA token") -> None:
        super().__init__(message)


class ValidationFailed(ServiceError):
    code = 142


class InvalidHook(ServiceError):
    code = 143

    def __init__(self, message: str = "invalid hook declaration") -> None:
        super().__init__(message)


class HookExists(InvalidHook):
    """The function or trigger has a webhook already, or is defined here."""


class FileDeleteFailed(ServiceError):
    code = 153


class DuplicateRequest(ServiceError):
    code = 159

    def __init__(self, message: str = "Duplicate request") -> None:
        super().__init__(message)


class InvalidEventName(ServiceError):
    code = 160


class InvalidValue(ServiceError):
    code = 162


class UsernameMissing(ServiceError):
    code = 200


class PasswordMissing(ServiceError):
    code = 201


class UsernameTaken(ServiceError):
    code = 202


class EmailTaken(ServiceError):
    code = 203


class EmailMissing(ServiceError):
    code = 204


class EmailNotFound(ServiceError):
    code = 205


class SessionMissing(ServiceError):
    code = 206


class AccountAlreadyLinked(ServiceError):
    code = 208


class InvalidSessionToken(ServiceError):
    code = 209


class TransactionConflict(ServiceError):
    code = 251


class UnsupportedService(ServiceError):
    code = 252

    def __init__(self, message: str = "This authentication method is unsupported.") -> None:
        super().__init__(message)


class InvalidSchemaOperation(ServiceError):
    code = 255


class InvalidApplicationId(ServiceError):
    code, status = 260, 403

    def __init__(self) -> None:
        super().__init__("unauthorized: invalid application id")


class InvalidMasterKey(ServiceError):
    code, status = 261, 403

    def __init__(self) -> None:
        super().__init__("unauthorized: invalid master key")


class InvalidMaintenanceKey(InvalidMasterKey):
    def __init__(self) -> None:
        ServiceError.__init__(self, "unauthorized: invalid maintenance key")


class InvalidClientKey(ServiceError):
    code, status = 262, 403

    def __init__(self, message: str = "unauthorized") -> None:
        super().__init__(message)
