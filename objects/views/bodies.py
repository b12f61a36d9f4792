"""The bodies and parameters that several views of objects share, for the API document."""

from __future__ import annotations

from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

from backend.openapi import LOCATION, DateTime, answer, optional, parameter, ref

FIND_PARAMETERS: Final = tuple(
    parameter(name)
    for name in ("where", "limit", "skip", "order", "keys", "excludeKeys", "include", "count")
)
GET_PARAMETERS: Final = tuple(parameter(name) for name in ("keys", "excludeKeys", "include"))

ACL_CHANGE: Final = {"anyOf": [ref("AccessList"), {"type": "null"}, ref("DeleteOperator")]}
AccessList: TypeAlias = Annotated[Any, Meta(extra_json_schema=ref("AccessList"))]
_ACLChange: TypeAlias = Annotated[Any, Meta(extra_json_schema=ACL_CHANGE)]
SessionToken: TypeAlias = Annotated[str, Meta(description="For `X-Svc-Session-Token`.")]
Password: TypeAlias = Annotated[str, Meta(extra_json_schema={"format": "password"})]
AuthData: TypeAlias = Annotated[
    dict[str, Any] | None,
    Meta(description="Proofs of other services: `google`, `apple`, `mfa` and so on."),
]


EmptyAnswer: TypeAlias = Annotated[dict[str, Any], Meta(max_length=0, title="EmptyAnswer")]


class CreatedAnswer(TypedDict):
    """Beside these, fields that the service has computed."""

    objectId: str
    createdAt: DateTime


class UpdatedAnswer(TypedDict):
    """Beside this, the results of operators."""

    updatedAt: DateTime


class AnyObject(TypedDict):
    """An object of any class: its fields are beside these."""

    objectId: str
    createdAt: DateTime
    updatedAt: DateTime
    ACL: NotRequired[AccessList]


class AnyResults(TypedDict):
    results: list[AnyObject]
    count: NotRequired[Annotated[int, Meta(description="With the parameter `count`.")]]


class AnyFields(TypedDict, total=False):
    """Fields by name: values, typed values, operators."""

    ACL: _ACLChange


# The forms of ``_User`` and ``_Session``, which the classes' part of the document makes.
OWN_USER: Final = ref("OwnUser")
SESSION: Final = ref("Session")
SESSION_CHANGE: Final = optional(ref("SessionUpdate"))

FIELDS: Final = optional(AnyFields)
CREATED: Final = answer("The new object.", CreatedAnswer, 201, LOCATION)
UPDATED: Final = answer("It is changed.", UpdatedAnswer)
DONE: Final = answer("It is done.", EmptyAnswer)
