"""Every route is in the document, with the methods and the rights that it has."""

from __future__ import annotations

import re
from typing import Any

import pytest

from backend.http.permissions import Requires
from backend.openapi.descriptions import routes_of
from backend.rest_urls import urlpatterns
from tests.backend.openapi.document import METHODS, document, operations

pytestmark = pytest.mark.django_db

# What the description of a route says of the names in it.
NAME = re.compile(r"<(?:str|path):(\w+)>")
SECURITY = {
    "applicationId": Requires.APPLICATION,
    "applicationId restApiKey": Requires.CLIENT_KEY,
    "applicationId masterKey": Requires.MASTER_KEY,
}
# Views that ask for other rights in one of their methods than in the others.
BY_METHOD = {
    ("/config", "put"),
    ("/files/{name}", "delete"),
    ("/files/{appId}/{name}", "delete"),
    ("/events/{name}", "get"),
}


def as_described(pattern: str) -> str:
    def camel(match: re.Match[str]) -> str:
        first, *more = match[1].split("_")
        return "{" + first + "".join(word.title() for word in more) + "}"

    return "/" + NAME.sub(camel, pattern)


ROUTES = {as_described(str(route.pattern)): route for route in urlpatterns}


def methods_of(view: Any) -> set[str]:
    handlers = {"show": "get", "take": "post"}
    if hasattr(view, "show"):
        return {method for name, method in handlers.items() if hasattr(view, name)}
    methods = {method.lower() for method in view()._methods()} & set(METHODS)
    return {method for method in methods if method != "head"}


@pytest.mark.parametrize("path", ROUTES)
def test_a_route_is_described(path, master):
    assert path in document(master)["paths"]


@pytest.mark.parametrize("path", ROUTES)
def test_the_methods_of_a_route_are_described(path, master):
    view = getattr(ROUTES[path].callback, "view_class", None)
    item = document(master)["paths"][path]
    expected = {"get"} if view is None else methods_of(view)
    assert set(item) & set(METHODS) == expected


@pytest.mark.parametrize("route", routes_of(urlpatterns), ids=lambda route: route.path)
def test_a_view_describes_what_each_of_its_methods_does_and_returns(route):
    assert route.operations
    for operation in route.operations.values():
        assert operation.id
        assert operation.tag
        assert operation.summary
        assert not operation.summary.endswith(".")
        # Uploads without a name, or with a slash in it, are always refused.
        assert operation.responses or operation.id in {
            "uploadNamelessFile",
            "uploadFileWithSlash",
            "uploadFileWithSlashes",
        }


def test_what_a_route_requires_is_described(master):
    for path, method, operation in operations(document(master)):
        view = getattr(ROUTES[path].callback, "view_class", None) if path in ROUTES else None
        security = operation.get("security")
        if view is None or security == [{}] or (path, method) in BY_METHOD:
            continue
        least = " ".join((security or document(master)["security"])[0])
        assert SECURITY[least] is view.requires, path


def test_nothing_is_described_that_isn_t_there(master):
    from backend.http.edge.routing import resolve

    for path, _, _ in operations(document(master)):
        assert resolve(re.sub(r"{\w+}", "x", path)) is not None, path


def test_ids_of_operations_are_unique_and_those_of_classes_can_t_meet_others(master):
    master.make("User", name="not a _User")
    operation_ids = [operation["operationId"] for _, _, operation in operations(document(master))]
    assert len(operation_ids) == len(set(operation_ids))
    assert "getUser" in operation_ids
    verbs = re.compile(r"(find|create|get|update|delete)[A-Z_]")
    of_classes = {
        operation["operationId"]
        for path, _, operation in operations(document(master))
        if path.startswith("/classes/") and "{className}" not in path
    }
    assert [
        operation_id
        for operation_id in operation_ids
        if verbs.match(operation_id) and operation_id not in of_classes
    ] == []
