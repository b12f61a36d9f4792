"""Callers of every kind, and every way on which one can meet an object.

Each way is tried twice: at the object service, by principals that are made here, and over REST,
by users who have signed up and hold their roles through other roles.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from backend.kernel.errors import (
    InvalidClassName,
    ObjectNotFound,
    OperationForbidden,
    ServiceError,
)
from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Authority, Principal
from objects import service
from objects.core.query.options import FindLimits, parse_find_options, parse_get_options
from objects.service import classes
from tests.objects.access.tables import MEMBER_ID, OWNER_ID, STRANGER_ID
from tests.objects.access.transports import Send, directly
from tests.rest import Api, Reply

OWNER = Principal(Authority.CLIENT, user_id=OWNER_ID)
MEMBER = Principal(Authority.CLIENT, user_id=MEMBER_ID, roles=frozenset({"Team"}))
STRANGER = Principal(Authority.CLIENT, user_id=STRANGER_ID)

CALLERS: Mapping[str, Principal] = {
    "master": MASTER,
    "reader": READ_ONLY_MASTER,
    "owner": OWNER,
    "member": MEMBER,
    "stranger": STRANGER,
    "client": CLIENT,
}


def pointer(class_name: str, object_id: str) -> dict[str, Any]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def user(principal: Principal) -> dict[str, Any]:
    return pointer("_User", str(principal.user_id))


def make(class_name: str, **fields: Any) -> str:
    """A new object, by the master key."""
    return service.create(MASTER, class_name, fields).object_id


def stored_or_named(class_name: str) -> str:
    """The id of an object of the class; of none where the service alone makes them."""
    try:
        return make(class_name)
    except OperationForbidden:
        with contextlib.suppress(InvalidClassName):  # it is there
            classes.create(MASTER, class_name, {"fields": {}})
        return "abcdefghij"


def permit(class_name: str, **permissions: Any) -> None:
    """Set the permissions of a class as a whole."""
    classes.change(MASTER, class_name, {"classLevelPermissions": permissions})


def find(principal: Principal, class_name: str, **params: Any) -> list[dict[str, Any]]:
    options = parse_find_options(params, FindLimits())
    return service.find(principal, class_name, options).objects()


def get(principal: Principal, class_name: str, object_id: str, **params: Any) -> dict[str, Any]:
    options = parse_get_options(params, FindLimits())
    response = service.get(principal, class_name, object_id, options)
    return response if isinstance(response, dict) else response.object()


def count(principal: Principal, class_name: str, **where: Any) -> int:
    options = parse_find_options({"where": where, "count": 1, "limit": 0}, FindLimits())
    number = service.find(principal, class_name, options).count
    assert number == service.count(principal, class_name, options.where)
    assert number is not None
    return number


def outcome(action: Callable[[], Any]) -> str:
    """``yes``, or how it was refused: ``forbidden``, ``not found``, ``login``."""
    try:
        action()
    except OperationForbidden:
        return "forbidden"
    except ObjectNotFound as error:
        return "login" if "authenticated" in error.message else "not found"
    except ServiceError as error:
        return type(error).__name__
    return "yes"


def outcome_over_rest(reply: Reply) -> str:
    """``outcome`` of a request over REST."""
    if reply.status < 300:
        return "yes"
    code, message = reply.json["code"], reply.json["error"]
    assert code in (101, 119), reply.json
    if code == 119:
        return "forbidden"
    return "login" if "authenticated" in message else "not found"


class Place:
    """A document, and other objects that lead to it; they themselves are open to everybody."""

    def __init__(self, **fields: Any) -> None:
        self.doc = make("Doc", name="doc", secret="s", tags=["t"], place={"x": 1}, **fields)
        to_doc = pointer("Doc", self.doc)
        self.friend = make("Friend", name="friend")
        adding = {"__op": "AddRelation", "objects": [pointer("Friend", self.friend)]}
        service.update(MASTER, "Doc", self.doc, {"friends": adding})
        self.ref = make(
            "Ref",
            to=to_doc,
            list=[to_doc],
            docName="doc",
            docs={"__op": "AddRelation", "objects": [to_doc]},
        )

    def ways(self) -> list[Way]:
        """Ways to meet the document; each says whether a caller does."""
        doc, ref = self.doc, pointer("Ref", self.ref)
        related = {"$relatedTo": {"object": ref, "key": "docs"}}
        friends = {"$relatedTo": {"object": pointer("Doc", doc), "key": "friends"}}
        docs = {"className": "Doc", "where": {}}
        select = {"query": docs, "key": "name"}
        counting = {"count": 1, "limit": 0}

        def is_there(met: Met) -> bool:
            return doc in [obj["objectId"] for obj in met.objects]

        def is_counted(met: Met) -> bool:
            return met.count == 1

        def is_met(met: Met) -> bool:
            return bool(met.objects)

        def is_not_met(met: Met) -> bool:
            return not met.objects

        def is_included(met: Met) -> bool:
            return "to" in met.objects[0]

        def of_doc(name: str, **params: Any) -> Way:
            return Way(name, "Doc", params, is_there)

        def of_ref(name: str, shows: Callable[[Met], bool], **params: Any) -> Way:
            return Way(name, "Ref", params, shows)

        return [
            of_doc("find"),
            of_doc("find by id", where={"objectId": doc}),
            of_doc("find in order", order="-name,place.x"),
            of_doc("find with $or", where={"$or": [{"name": "doc"}, {"name": "x"}]}),
            of_doc("find with $nor", where={"$nor": [{"name": "x"}]}),
            of_doc("find with keys", keys="name"),
            of_doc("find members", where=related),
            of_doc("find by a member", where={"friends": pointer("Friend", self.friend)}),
            Way("get", "Doc", {}, is_there, doc),
            Way("count", "Doc", counting, is_counted),
            Way("count members", "Doc", {"where": related, **counting}, is_counted),
            of_ref("include", is_included, include="to"),
            of_ref("include all", is_included, include="*"),
            of_ref("include of a list", lambda met: bool(met.objects[0]["list"]), include="list"),
            Way("include in a get", "Ref", {"include": "to"}, is_included, self.ref),
            of_ref("keys through a pointer", is_included, keys="to.name"),
            of_ref("$inQuery", is_met, where={"to": {"$inQuery": docs}}),
            of_ref("$inQuery in $or", is_met, where={"$or": [{"to": {"$inQuery": docs}}]}),
            of_ref("$notInQuery", is_not_met, where={"to": {"$notInQuery": docs}}),
            of_ref("$select", is_met, where={"docName": {"$select": select}}),
            of_ref("$dontSelect", is_not_met, where={"docName": {"$dontSelect": select}}),
            Way("members of the document", "Friend", {"where": friends}, is_met),
            Way(
                "count the document's members", "Friend", {"where": friends, **counting}, is_counted
            ),
            of_ref("redirectClassNameForKey", is_met, redirectClassNameForKey="docs"),
        ]


@dataclass(frozen=True)
class Met:
    """What a query found."""

    objects: list[dict[str, Any]]
    count: int | None = None


@dataclass(frozen=True)
class Way:
    """A query by which a caller meets an object, or doesn't. A refused one doesn't meet it."""

    name: str
    class_name: str
    params: Mapping[str, Any]
    shows: Callable[[Met], bool]
    object_id: str | None = None

    def meets(self, principal: Principal) -> bool:
        """Whether the caller does, asking the door."""
        params = dict(self.params)
        try:
            if self.object_id is not None:
                met = Met([get(principal, self.class_name, self.object_id, **params)])
            else:
                options = parse_find_options(params, FindLimits())
                results = service.find(principal, self.class_name, options)
                met = Met(results.objects(), results.count)
        except (OperationForbidden, ObjectNotFound):
            return False
        return self.shows(met)

    def meets_over_rest(self, api: Api, send: Send = directly) -> bool:
        """Whether the caller does, asking over REST."""
        path = f"/classes/{self.class_name}"
        if self.object_id is not None:
            path = f"{path}/{self.object_id}"
        reply = send(api, "GET", path, dict(self.params))
        if reply.status != 200:
            assert reply.json["code"] in (101, 119), (self.name, reply.json)
            return False
        if self.object_id is not None:
            return self.shows(Met([reply.json]))
        return self.shows(Met(reply.json["results"], reply.json.get("count")))
