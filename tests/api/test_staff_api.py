"""The JSON endpoints of the admin's pages: who may call them, and the form of their errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.exceptions import PermissionDenied
from django.test import RequestFactory
from rest_framework import serializers
from rest_framework.response import Response

from backend.http.staff_api import StaffAPIView
from backend.kernel.errors import DuplicateValue
from tests.objects.admin.staff import staff_user

pytestmark = pytest.mark.django_db

TOKEN = "t" * 32


class Row(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=3)


class Rows(serializers.Serializer[Any]):
    rows = Row(many=True)
    limit = serializers.IntegerField(max_value=10, default=1)


class Endpoint(StaffAPIView):
    permissions = {"GET": "objects.view_storedobject", "POST": "objects.change_storedobject"}

    def get(self, request):
        return Response({"limit": 1})

    def post(self, request):
        rows = Rows(data=request.data)
        rows.is_valid(raise_exception=True)
        match rows.validated_data["rows"][0]["name"]:
            case "two":
                raise DuplicateValue("There is such a row.")
            case "own":
                raise PermissionDenied
            case "bug":
                raise ZeroDivisionError("a secret")
        return Response(rows.validated_data)


def call(method: str, user: Any, body: Any = None, **headers: str) -> tuple[int, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = RequestFactory().generic(method, "/", raw, "application/json", headers=headers)
    request.COOKIES["csrftoken"] = TOKEN
    request.user = user
    response = Endpoint.as_view()(request)
    if isinstance(response, Response):
        response.render()
    return response.status_code, json.loads(response.content)


def post(user: Any, body: Any) -> tuple[int, Any]:
    return call("POST", user, body, **{"X-CSRFToken": TOKEN})


@pytest.mark.parametrize(
    ("make_user", "reads", "writes"),
    [
        (lambda: staff_user(None), 200, 200),
        (lambda: staff_user("Editors"), 200, 200),
        (lambda: staff_user("Viewers"), 200, 403),
        (lambda: User.objects.create_user("plain", is_staff=True), 403, 403),
        (lambda: User.objects.create_superuser("former", is_active=False), 403, 403),
        (lambda: User.objects.create_user("no-staff", is_superuser=True), 403, 403),
        (AnonymousUser, 403, 403),
    ],
)
def test_staff_with_the_permission_of_the_method_are_let_in(
    make_user: Callable[[], Any], reads, writes
):
    user = make_user()
    assert call("GET", user)[0] == reads
    assert post(user, {"rows": [{"name": "a"}]})[0] == writes


def test_a_write_without_the_token_of_the_page_is_refused():
    status, body = call("POST", staff_user(None), {"rows": [{"name": "a"}]})
    assert (status, body["code"]) == (403, 119)
    assert "CSRF" in body["error"]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"rows": None}, 400, "rows: "),
        ({"rows": [{"name": "a"}, {"name": "long"}]}, 400, "rows.1.name: "),
        ({"rows": [{"name": "a"}], "limit": 11}, 400, "limit: "),
        ({}, 400, "rows: "),
        (b"[]", 400, ""),
        (b"{", 400, ""),
        (b'{"rows": NaN}', 400, ""),
        (b"\xff", 400, ""),
        (b'{"rows":' * 5000, 400, ""),
        (b" " * (6 << 20), 413, ""),
        ({"rows": [{"name": "two"}]}, 400, "There is such a row."),
        ({"rows": [{"name": "own"}]}, 403, "You don't have the permission for this."),
    ],
)
def test_an_error_has_the_form_of_rest_and_names_its_place(body, status, error):
    answered, content = post(staff_user(None), body)
    assert answered == status
    assert set(content) == {"code", "error"}
    assert content["error"].startswith(error)


def test_a_fault_of_ours_says_nothing_but_the_id_of_the_request():
    status, content = post(staff_user(None), {"rows": [{"name": "bug"}]})
    assert status == 500
    assert "secret" not in content["error"]


def test_another_method_is_refused():
    status, content = call("DELETE", staff_user(None), {}, **{"X-CSRFToken": TOKEN})
    assert (status, content["code"]) == (403, 119)
