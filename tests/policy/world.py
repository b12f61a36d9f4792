"""Callers of every kind, and every way on which one can meet an object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from backend.errors import ObjectNotFound, OperationForbidden, ServiceError
from backend.principal import CLIENT, MASTER, READ_ONLY_MASTER, Authority, Principal
from objects import classes, service
from objects.core.find_options import FindLimits, parse_find_options, parse_get_options

OWNER = Principal(Authority.CLIENT, user_id="owner00001")
MEMBER = Principal(Authority.CLIENT, user_id="member0001", roles=frozenset({"Team"}))
STRANGER = Principal(Authority.CLIENT, user_id="stranger01")

CALLERS: Mapping[str, Principal] = {
    "master": MASTER,
    "reader": READ_ONLY_MASTER,
    "owner": OWNER,
    "member": MEMBER,
    "stranger": STRANGER,
    "client": CLIENT,
}
PUBLIC: dict[str, Any] = {
    action: {"*": True}
    for action in ("find", "get", "count", "create", "update", "delete", "addField")
}


def pointer(class_name: str, object_id: str) -> dict[str, Any]:
    return {"__type": "Pointer", "className": class_name, "objectId": object_id}


def user(principal: Principal) -> dict[str, Any]:
    return pointer("_User", str(principal.user_id))


def make(class_name: str, **fields: Any) -> str:
    """A new object, by the master key."""
    return service.create(MASTER, class_name, fields).object_id


def permit(class_name: str, **permissions: Any) -> None:
    """Set the permissions of a class as a whole."""
    classes.change(MASTER, class_name, {"classLevelPermissions": permissions})


def find(principal: Principal, class_name: str, **params: Any) -> list[dict[str, Any]]:
    options = parse_find_options(params, FindLimits())
    return service.find(principal, class_name, options).objects()


def get(principal: Principal, class_name: str, object_id: str, **params: Any) -> dict[str, Any]:
    options = parse_get_options(params, FindLimits())
    found = service.get(principal, class_name, object_id, options)
    return found if isinstance(found, dict) else found.object()


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

    def ways(self) -> dict[str, Callable[[Principal], bool]]:
        """Ways to meet the document; each says whether the caller does."""
        doc, ref = self.doc, pointer("Ref", self.ref)
        related = {"$relatedTo": {"object": ref, "key": "docs"}}
        friends = {"$relatedTo": {"object": pointer("Doc", doc), "key": "friends"}}
        docs = {"className": "Doc", "where": {}}
        select = {"query": docs, "key": "name"}

        def finds(**params: Any) -> Callable[[Principal], bool]:
            return lambda p: doc in [obj["objectId"] for obj in find(p, "Doc", **params)]

        def leads(**where: Any) -> Callable[[Principal], bool]:
            return lambda p: bool(find(p, "Ref", where=where))

        return {
            "find": finds(),
            "find by id": finds(where={"objectId": doc}),
            "find in order": finds(order="-name,place.x"),
            "find with $or": finds(where={"$or": [{"name": "doc"}, {"name": "x"}]}),
            "find with $nor": finds(where={"$nor": [{"name": "x"}]}),
            "find with keys": finds(keys="name"),
            "find members": finds(where=related),
            "find by a member": finds(where={"friends": pointer("Friend", self.friend)}),
            "get": lambda p: outcome(lambda: get(p, "Doc", doc)) == "yes",
            "count": lambda p: count(p, "Doc") == 1,
            "count members": lambda p: count(p, "Doc", **related) == 1,
            "include": lambda p: "to" in find(p, "Ref", include="to")[0],
            "include all": lambda p: "to" in find(p, "Ref", include="*")[0],
            "include of a list": lambda p: bool(find(p, "Ref", include="list")[0]["list"]),
            "include in a get": lambda p: "to" in get(p, "Ref", self.ref, include="to"),
            "keys through a pointer": lambda p: "to" in find(p, "Ref", keys="to.name")[0],
            "$inQuery": leads(to={"$inQuery": docs}),
            "$inQuery inside of $or": leads(**{"$or": [{"to": {"$inQuery": docs}}]}),
            "$notInQuery": lambda p: not leads(to={"$notInQuery": docs})(p),
            "$select": leads(docName={"$select": select}),
            "$dontSelect": lambda p: not leads(docName={"$dontSelect": select})(p),
            "members of the document": lambda p: bool(find(p, "Friend", where=friends)),
            "redirectClassNameForKey": lambda p: bool(
                find(p, "Ref", redirectClassNameForKey="docs")
            ),
        }
