"""Who may call a function: users, roles, keys on the account, the master key, how often."""

from __future__ import annotations

from typing import Any

import pytest

from functions import RateLimit, Request, before_save, function
from tests.people import make_role, sign_up
from tests.rest import Api


def refusal(api: Api, name: str = "f", params: Any = None) -> str:
    reply = api.post(f"/functions/{name}", params)
    assert reply.error == (400, 142), reply.json
    return str(reply.json["error"])


def allowed(api: Api, name: str = "f") -> bool:
    return api.post(f"/functions/{name}").status == 200


def test_a_function_for_users(client: Api, application: Api, master: Api, reader: Api) -> None:
    @function("f", require_user=True)
    def f(request: Request) -> Any:
        return request.user_id

    for api in (client, application, reader):
        assert refusal(api) == "Validation failed. Please login to continue."
    ann = sign_up("ann")
    assert ann.post("/functions/f").json == {"result": ann.user_id}
    assert allowed(master)


def test_a_function_for_the_master_key(client: Api, master: Api, reader: Api) -> None:
    @function("f", require_master=True)
    def f(request: Request) -> bool:
        return request.master

    text = "Validation failed. Master key is required to complete this request."
    assert refusal(client) == refusal(sign_up("ann")) == refusal(reader) == text
    assert allowed(master)


def test_a_function_for_roles_inherited_ones_among_them(client: Api, master: Api) -> None:
    boss, clerk, stranger = sign_up("boss"), sign_up("clerk"), sign_up("stranger")
    admins = make_role(master, "Admins", [boss])
    make_role(master, "Clerks", [clerk], roles=[admins])

    @function("any", require_any_role=["Clerks", "Others"])
    def any_of(request: Request) -> Any:
        return sorted(request.roles)

    @function("all", require_all_roles=["Clerks", "Admins"])
    def all_of(request: Request) -> None: ...

    assert boss.post("/functions/any").json == {"result": ["Admins", "Clerks"]}
    assert allowed(clerk, "any")
    text = "Validation failed. User does not match the required roles."
    assert refusal(stranger, "any") == text
    assert refusal(client, "any") == "Validation failed. Please login to continue."
    assert allowed(boss, "all")
    text = "Validation failed. User does not match all the required roles."
    assert refusal(clerk, "all") == refusal(stranger, "all") == text


def test_a_function_for_users_with_data_on_their_account(master: Api) -> None:
    @function("f", require_user_keys={"plan": ["pro", "team"], "company": None})
    def f(request: Request) -> None: ...

    bare = sign_up("bare")
    free = sign_up("free", plan="free", company="A")
    paying = sign_up("paying", plan="pro", company="A")
    assert refusal(bare) == "Validation failed. Please set data for plan on your account."
    assert refusal(free) == "Validation failed. Invalid data for plan on your account."
    assert allowed(paying)


def test_what_is_required_may_hold_for_the_master_key_too(master: Api) -> None:
    @function("f", require_user=True, even_master=True)
    def f(request: Request) -> None: ...

    assert refusal(master) == "Validation failed. Please login to continue."
    assert allowed(sign_up("ann"))


def test_a_trigger_has_no_rate_limit() -> None:
    with pytest.raises(TypeError, match="no rate limit"):
        before_save("Note", rate_limit=RateLimit(count=1, window=1))


def test_parameters_are_checked_before_rights(client: Api) -> None:
    @function("f", require_master=True)
    def f(request: Request, n: int) -> None: ...

    assert client.post("/functions/f").error == (400, 141)
    assert client.post("/functions/f", {"n": 1}).error == (400, 142)


def test_a_session_that_is_not_valid_is_refused(client: Api) -> None:
    @function("f")
    def f(request: Request) -> None: ...

    headers = {"X-Svc-Session-Token": "r:nobody"}
    assert client.call("POST", "/functions/f", {}, headers=headers).error == (400, 209)


def test_a_function_is_called_only_so_often(client: Api, master: Api) -> None:
    limit = RateLimit(count=2, window=60, per="user", message="Slowly, please.")

    @function("limited", rate_limit=limit)
    def limited(request: Request) -> None: ...

    ann, bob = sign_up("ann"), sign_up("bob")
    assert [ann.post("/functions/limited").status for _ in range(3)] == [200, 200, 429]
    reply = ann.post("/functions/limited")
    assert (reply.error, reply.json["error"]) == ((429, 100), "Slowly, please.")
    assert int(reply.headers["Retry-After"]) > 0
    assert allowed(bob, "limited")
    assert all(allowed(master, "limited") for _ in range(3))


def test_a_limit_holds_in_a_batch_too(client: Api) -> None:
    @function("few", rate_limit=RateLimit(count=1, window=60, per="global"))
    def few(request: Request) -> None: ...

    item = {"method": "POST", "path": "/api/functions/few", "body": {}}
    answers = client.post("/batch", {"requests": [item, item]}).json
    assert "success" in answers[0]
    assert answers[1]["error"]["code"] == 100


@pytest.mark.parametrize(
    "options",
    [
        {"require_any_role": "Admins"},
        {"require_all_roles": "Admins"},
        {"require_user_keys": "plan"},
        {"unknown": True},
    ],
)
def test_options_that_cannot_be_meant_are_mistakes(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        function("f", **options)
