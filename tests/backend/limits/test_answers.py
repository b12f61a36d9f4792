"""Limits as a client meets them: status, header fields, and who is counted as whom."""

from __future__ import annotations

import pytest

from backend.http.context import client_address
from backend.kernel.principal import APPLICATION, CLIENT, Authority, Principal
from backend.limits import Request, decide, rules_for
from tests import rest
from tests.rest import Api
from tests.threads import at_once

PATH = "/nothing"  # A route isn't needed to be counted.


def statuses(api: Api, times: int = 4, **options) -> list[int]:
    return [api.call("POST", PATH, {}, **options).status for _ in range(times)]


@pytest.fixture
def api() -> Api:
    return Api(rest.CLIENT)


def test_over_the_limit_is_429_with_code_100(api, limit):
    limit({"path": PATH})
    assert statuses(api, 3) == [404] * 3
    refused = api.post(PATH)
    assert refused.error == (429, 100)
    assert refused.json["error"].startswith("Too many requests: try again in ")


def test_a_second_slash_after_the_mount_path_is_no_way_around(api, limit):
    limit({"path": PATH})
    assert statuses(api, 2) == [404] * 2
    assert [api.post(f"/{PATH}").status for _ in range(2)] == [404, 429]


def test_a_rule_may_have_a_message_of_its_own(api, limit):
    limit({"path": PATH, "count": 1, "message": "Slow down."})
    api.post(PATH)
    assert api.post(PATH).json == {"code": 100, "error": "Slow down."}


def test_every_answer_says_what_is_left(api, limit):
    limit({"path": PATH, "count": 2})
    replies = [api.post(PATH) for _ in range(3)]
    assert [reply.headers["RateLimit-Limit"] for reply in replies] == ["2"] * 3
    assert [reply.headers["RateLimit-Remaining"] for reply in replies] == ["1", "0", "0"]
    assert all(1 <= int(reply.headers["RateLimit-Reset"]) <= 61 for reply in replies)
    assert "Retry-After" not in replies[1].headers
    assert replies[2].headers["Retry-After"] == replies[2].headers["RateLimit-Reset"]


def test_a_success_says_what_is_left_too(master, client, limit):
    game = master.make("Game")
    limit({"path": "/classes/*"})
    assert client.get(f"/classes/Game/{game}").headers["RateLimit-Remaining"] == "2"


def test_the_scarcest_of_several_limits_is_reported(api, limit):
    limit({"path": PATH, "count": 9}, {"path": "/*", "count": 4})
    assert api.post(PATH).headers["RateLimit-Limit"] == "4"


def test_what_is_not_limited_says_nothing_of_limits(api, limit):
    limit({"path": PATH})
    assert "RateLimit-Limit" not in api.post("/other").headers


def test_browsers_may_read_the_fields(api, limit):
    limit({"path": PATH})
    reply = api.call("POST", PATH, {}, headers={"Origin": "https://app.example.org"})
    exposed = reply.headers["Access-Control-Expose-Headers"]
    names = {"retry-after", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"}
    assert names <= set(exposed.split(", "))


def test_a_master_key_is_exempt_unless_the_rule_includes_it(limit):
    for headers in (rest.MASTER, rest.READ_ONLY):
        limit({"path": PATH})
        assert statuses(Api(headers)) == [404] * 4
    limit({"path": PATH, "includeMaster": True})
    assert statuses(Api(rest.MASTER)) == [404, 404, 404, 429]


def test_refused_credentials_are_counted_by_address(limit):
    limit({"path": PATH, "per": "user"})
    wrong = Api({**rest.APPLICATION, "X-Svc-Master-Key": "a guess"})
    assert statuses(wrong) == [403, 403, 403, 429]


@pytest.mark.parametrize("per", ["account", "function", "global", ["function", "account"]])
def test_refused_credentials_use_up_nothing_of_others(api, limit, per):
    limit({"path": "/functions/*", "count": 1, "per": per})
    body = {"username": "ann"}
    for _ in range(3):
        assert Api({}).post("/functions/hello", body).status == 403
    assert api.post("/functions/hello", body).status != 429
    assert api.post("/functions/hello", body).status == 429


def test_a_refused_request_says_what_is_left(limit):
    limit({"path": PATH})
    assert Api({}).post(PATH).headers["RateLimit-Remaining"] == "2"


def test_what_can_not_be_read_is_not_counted(api, limit):
    limit({"path": PATH, "count": 1})
    assert api.call("POST", PATH, raw=b"{").status == 400
    assert api.post(PATH).status == 404


def test_addresses_are_counted_apart(api, limit):
    limit({"path": PATH, "count": 1})
    assert statuses(api, 2, REMOTE_ADDR="198.51.100.1") == [404, 429]
    assert statuses(api, 2, REMOTE_ADDR="198.51.100.2") == [404, 429]


@pytest.mark.parametrize(
    ("item", "other"),
    [
        ("2001:db8:1:2::3", "2001:db8:1:2:ffff::4"),
        ("198.51.100.1", "::ffff:198.51.100.1"),
    ],
)
def test_a_network_of_one_customer_is_one_caller(api, limit, item, other):
    limit({"path": PATH, "count": 1})
    assert statuses(api, 1, REMOTE_ADDR=item) == [404]
    assert statuses(api, 1, REMOTE_ADDR=other) == [429]


def test_other_networks_are_other_callers(api, limit):
    limit({"path": PATH, "count": 1})
    assert statuses(api, 1, REMOTE_ADDR="2001:db8:1:2::3") == [404]
    assert statuses(api, 1, REMOTE_ADDR="2001:db8:1:3::3") == [404]


def test_keys_are_counted_apart(limit):
    limit({"path": PATH, "count": 1, "per": "key"})
    browser = Api({**rest.APPLICATION, "X-Svc-JavaScript-Key": "test-javascript-key"})
    assert statuses(Api(rest.CLIENT), 2) == [404, 429]
    assert statuses(browser, 2) == [404, 429]


def test_a_wrong_key_with_the_right_one_makes_no_other_caller(limit):
    limit({"path": PATH, "count": 1, "per": "key"})
    right = {**rest.APPLICATION, "X-Svc-JavaScript-Key": "test-javascript-key"}
    assert statuses(Api(right), 1) == [404]
    for name in ("REST-API-Key", "Client-Key"):
        assert statuses(Api({**right, f"X-Svc-{name}": "wrong"}), 1) == [429]


def test_global_is_everyone(api, limit):
    limit({"path": PATH, "count": 1, "per": "global"})
    assert statuses(api, 1, REMOTE_ADDR="198.51.100.1") == [404]
    assert statuses(api, 1, REMOTE_ADDR="198.51.100.2") == [429]


def test_functions_are_counted_apart(api, limit):
    limit({"path": "/functions/*", "count": 1, "per": "function"})
    for name in ("a", "b"):
        assert api.post(f"/functions/{name}").status != 429
        assert api.post(f"/functions/{name}").status == 429


def test_two_scopes_together_tell_callers_apart_by_both(api, limit):
    limit({"path": "/functions/*", "count": 1, "per": ["function", "ip"]})
    for name in ("a", "b"):
        for address in ("198.51.100.1", "198.51.100.2"):
            figures = [
                api.call("POST", f"/functions/{name}", {}, REMOTE_ADDR=address).status
                for _ in range(2)
            ]
            assert figures[0] != 429
            assert figures[1] == 429


def passes(principal: Principal | None, address: str = "198.51.100.1") -> bool:
    rules = rules_for(PATH, "POST")
    (verdict,) = decide([Request(rules, PATH, address, principal)])
    return verdict.refusal is None


def user(user_id: str, session_id: str) -> Principal:
    return Principal(Authority.CLIENT, user_id=user_id, session_id=session_id)


def test_users_are_counted_apart_and_over_all_of_their_sessions_and_addresses(limit):
    limit({"path": PATH, "count": 2, "per": "user"})
    assert passes(user("ann", "s1"))
    assert passes(user("ann", "s2"), "198.51.100.2")
    assert not passes(user("ann", "s3"), "198.51.100.3")
    assert passes(user("bob", "s4"))


def test_sessions_are_counted_apart(limit):
    limit({"path": PATH, "count": 1, "per": "session"})
    assert passes(user("ann", "s1"))
    assert passes(user("ann", "s2"))
    assert not passes(user("ann", "s2"), "198.51.100.2")


@pytest.mark.parametrize("per", ["user", "session"])
def test_who_is_not_logged_in_is_counted_by_address(limit, per):
    limit({"path": PATH, "count": 1, "per": per})
    assert passes(CLIENT)
    assert not passes(APPLICATION)
    assert passes(CLIENT, "198.51.100.2")


def test_an_account_is_counted_from_all_addresses(api, limit):
    limit({"path": PATH, "count": 1, "per": "account"})
    body = {"username": "ann", "password": "guess"}
    assert api.call("POST", PATH, body, REMOTE_ADDR="198.51.100.1").status == 404
    assert api.call("POST", PATH, body, REMOTE_ADDR="198.51.100.2").status == 429
    assert api.post(PATH, {"username": "bob"}).status == 404


def test_a_request_that_names_no_account_is_not_counted_by_account(api, limit):
    limit({"path": PATH, "count": 1, "per": "account"})
    for body in ({}, {"username": ""}, {"username": {"$ne": ""}}, {"email": 5}):
        assert [api.post(PATH, body).status for _ in range(2)] == [404, 404]


def test_requests_at_the_same_moment_never_pass_the_limit(limit):
    limit({"path": PATH, "count": 5})
    results = at_once([lambda: Api(rest.CLIENT).post(PATH).status] * 20)
    assert sorted(results) == [404] * 5 + [429] * 15


def test_items_of_batches_at_the_same_moment_never_pass_the_limit(limit):
    limit({"path": "/schemas", "count": 7})
    item = {"method": "GET", "path": "/api/schemas"}

    def run() -> list[int]:
        reply = Api(rest.CLIENT).post("/batch", {"requests": [item] * 5})
        return [answer["error"]["code"] for answer in reply.json]

    results = [code for codes in at_once([run] * 6) for code in codes]
    assert sorted(results) == [100] * 23 + [119] * 7


def test_the_address_is_that_which_the_proxy_saw(api, limit, settings):
    limit({"path": PATH, "count": 1})
    settings.SERVICE = {**settings.SERVICE, "TRUSTED_PROXIES": ("10.0.0.0/8",)}
    proxied = {"REMOTE_ADDR": "10.0.0.1", "HTTP_X_FORWARDED_FOR": "1.1.1.1, 198.51.100.7"}
    assert client_address(proxied) == "198.51.100.7"
    forwarded = {"X-Forwarded-For": "1.1.1.1, 198.51.100.7"}
    assert statuses(api, 2, headers=forwarded, REMOTE_ADDR="10.0.0.1") == [404, 429]
    assert statuses(api, 1, REMOTE_ADDR="198.51.100.7") == [429]
