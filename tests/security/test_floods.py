"""Floods of requests: what one address or user can send, with any requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from django.conf import settings as django_settings

from backend.kernel.principal import CLIENT, MASTER, READ_ONLY_MASTER, Authority, Principal
from backend.limits import Request, decide, rules_for
from backend.limits.approximate_counts import SHARE, ApproximateCounter
from backend.limits.decisions import _approximate_claims, _bucket
from backend.limits.exact_counts import Bucket, Counter, Level
from backend.settings.rate_limits import DEFAULTS, FLOODS, SOCKETS, Rule, read
from tests import rest
from tests.people import sign_up
from tests.rate_limits import limit, nothing_counted
from tests.rest import Api
from tests.threads import at_once

__all__ = ["limit", "nothing_counted"]

HERE, ELSEWHERE = "198.51.100.1", "198.51.100.2"
UNREACHABLE = "redis://127.0.0.1:1/0"
PATIENCE = 30.0
"""Seconds for an answer of Redis, so that a busy machine changes no count."""
FLOOD = {"path": "/*", "count": 5, "approximate": True}


class Clock:
    """Seconds, as a test sets them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Process:
    """The counting of one process."""

    def __init__(self, *rules: dict[str, Any], url: str | None = None, most: int = 10_000) -> None:
        self.clock = Clock()
        self.rules: tuple[Rule, ...] = read(list(rules))
        counter = Counter(url or django_settings.REDIS_URL, pause=0.0, patience=PATIENCE)
        self.floods = ApproximateCounter(counter, _bucket, clock=self.clock, most=most)

    def passes(self, address: str = HERE, principal: Principal = CLIENT) -> bool:
        request = Request(self.rules, "/classes/Game", address, principal)
        outcome = self.floods.admit(_approximate_claims(request))
        return outcome is None or outcome.passes

    def buckets(self) -> int:
        """How many callers Redis counts."""
        with redis.Redis.from_url(django_settings.REDIS_URL) as client:
            return sum(1 for _ in client.scan_iter("limits:*"))

    def passed(self, times: int, address: str = HERE, principal: Principal = CLIENT) -> int:
        return sum(self.passes(address, principal) for _ in range(times))


def rule(count: int, **more: Any) -> dict[str, Any]:
    return {**FLOOD, "window": 60, "per": "ip", "count": count, **more}


def user(user_id: str) -> Principal:
    return Principal(Authority.CLIENT, user_id=user_id)


# -- Over HTTP ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/classes/Game"),
        ("POST", "/classes/Game"),
        ("POST", "/files/a.txt"),
        ("GET", "/files/test-app/a.txt"),
        ("POST", "/installations"),
        ("POST", "/functions/hello"),
        ("POST", "/users"),
        ("GET", "/sessions"),
        ("GET", "/roles"),
        ("POST", "/events/AppOpened"),
        ("POST", "/requestPasswordReset"),
        ("POST", "/batch"),
        ("GET", "/config"),
        ("GET", "/no/such/route"),
    ],
)
def test_a_flood_is_429_on_every_route(client, limit, method, path):
    limit({**FLOOD})
    replies = [client.call(method, path) for _ in range(6)]
    assert 429 not in [reply.status for reply in replies[:5]]
    refused = replies[5]
    assert refused.error == (429, 100)
    assert int(refused.headers["Retry-After"]) >= 1
    assert refused.headers["RateLimit-Limit"] == "5"
    assert refused.headers["RateLimit-Remaining"] == "0"


def test_another_address_is_served_meanwhile(db, client, limit):
    limit({**FLOOD, "count": 1})
    assert client.call("GET", "/config", REMOTE_ADDR=HERE).status == 200
    assert client.call("GET", "/config", REMOTE_ADDR=HERE).status == 429
    assert client.call("GET", "/config", REMOTE_ADDR=ELSEWHERE).status == 200


def test_a_claimed_address_is_not_believed(db, client, limit):
    limit({**FLOOD, "count": 2})
    replies = [
        client.call(
            "GET", "/config", REMOTE_ADDR=HERE, headers={"X-Forwarded-For": f"203.0.113.{number}"}
        )
        for number in range(3)
    ]
    assert [reply.status for reply in replies] == [200, 200, 429]


def test_ipv6_addresses_of_one_network_are_one_caller(db, client, limit):
    limit({**FLOOD, "count": 2})
    addresses = ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", "2001:db8:1:2::3", "2001:db8:1:3::1")
    replies = [client.call("GET", "/config", REMOTE_ADDR=address).status for address in addresses]
    assert replies == [200, 200, 429, 200]


def test_master_keys_are_exempt(db, limit):
    limit({**FLOOD, "count": 1})
    for headers in (rest.MASTER, rest.READ_ONLY):
        assert [Api(headers).get("/config").status for _ in range(4)] == [200] * 4


def test_refused_credentials_are_counted(limit):
    limit({**FLOOD, "count": 2})
    guesses = Api({**rest.APPLICATION, "X-Svc-Master-Key": "a guess"})
    assert [guesses.get("/config").status for _ in range(3)] == [403, 403, 429]


def test_bodies_that_cannot_be_read_are_counted(client, limit):
    limit({**FLOOD, "count": 2})
    replies = [client.call("POST", "/classes/Game", raw=b"{").status for _ in range(3)]
    assert replies == [400, 400, 429]


def test_items_of_a_batch_are_counted(client, master, limit):
    game = master.make("Game", score=1)
    limit({**FLOOD, "path": "/classes/*", "count": 3})
    items = [{"method": "GET", "path": f"/api/classes/Game/{game}"}] * 5
    reply = client.post("/batch", {"requests": items})
    assert [answer["error"]["code"] if "error" in answer else None for answer in reply.json] == [
        None,
        None,
        None,
        100,
        100,
    ]


def test_a_transaction_over_the_limit_does_and_counts_nothing(client, master, limit):
    master.make("Game", score=1)
    limit({**FLOOD, "path": "/classes/*", "count": 3})
    create = {"method": "POST", "path": "/api/classes/Game", "body": {"score": 2}}
    reply = client.post("/batch", {"requests": [create] * 4, "transaction": True})
    assert reply.error == (429, 100)
    assert len(master.results("Game", where={"score": 2})) == 0
    reply = client.post("/batch", {"requests": [create] * 3, "transaction": True})
    assert reply.status == 200
    assert len(master.results("Game", where={"score": 2})) == 3


def test_a_user_is_counted_across_addresses(client, limit):
    ann, bob = sign_up("ann"), sign_up("bob")
    limit({**FLOOD, "per": "user", "signedIn": True, "count": 2})
    addresses = [f"198.51.100.{number}" for number in range(3)]
    assert [ann.call("GET", "/config", REMOTE_ADDR=address).status for address in addresses] == [
        200,
        200,
        429,
    ]
    assert bob.call("GET", "/config", REMOTE_ADDR=addresses[0]).status == 200
    # Requests without a user aren't meant by this rule, from whichever address.
    assert [client.call("GET", "/config", REMOTE_ADDR=HERE).status for _ in range(4)] == [200] * 4


def test_a_refused_request_is_counted_by_no_flood_rule(db, client, limit):
    limit({**FLOOD, "count": 3}, {**FLOOD, "path": "/config", "count": 1})
    assert [client.get("/config").status for _ in range(5)] == [200, 429, 429, 429, 429]
    assert [client.get("/schemas").status for _ in range(3)] == [403, 403, 429]


def test_limits_can_be_switched_off(db, client, limit):
    limit()
    assert {client.get("/config").status for _ in range(10)} == {200}


def test_a_burst_of_a_hundred_meets_none_of_the_defaults(db, client, limit):
    limit("defaults")
    replies = [client.get("/config") for _ in range(100)]
    assert {reply.status for reply in replies} == {200}
    assert not any("RateLimit-Limit" in reply.headers for reply in replies)


# -- Counting -------------------------------------------------------------------------------------


def test_a_normal_app_behind_one_address_never_meets_the_defaults():
    """Twenty requests a second for five minutes, and a burst of a hundred every ten seconds, all
    in one process, as writes of users."""
    process = Process(*FLOODS)
    process.rules = tuple(item for item in process.rules if item.paths == ("/*",))
    for second in range(300):
        process.clock.now += 1
        for number in range(20 + 100 * (second % 10 == 0)):
            assert process.passes(principal=user(f"user{number % 7}"))


def test_sparse_callers_cost_no_call_to_redis():
    process = Process(rule(100))
    free = 100 // SHARE
    for number in range(1000):
        assert process.passed(free, f"10.0.{number >> 8}.{number & 255}") == free
    assert process.buckets() == 0
    process.passes("10.0.0.0")
    assert process.buckets() == 1


def test_one_process_passes_the_limit_exactly():
    assert Process(rule(1000)).passed(3000) == 1000


def test_processes_share_a_limit():
    """Each may exceed it by the share that it passes without a call."""
    first, second, third = (Process(rule(1000)) for _ in range(3))
    passed = sum(process.passed(50) for _ in range(40) for process in (first, second, third))
    assert 950 <= passed <= 1000 + 3 * 1000 // SHARE
    assert first.passed(100) + second.passed(100) + third.passed(100) == 0


def test_a_process_that_was_idle_adds_its_share_and_no_more():
    busy, idle = Process(rule(1000)), Process(rule(1000))
    assert busy.passed(3000) == 1000
    assert idle.passed(3000) == 1000 // SHARE


def test_threads_pass_the_limit_and_at_most_what_a_process_passes_without_a_call():
    process = Process(rule(500))
    # A thread that reports what has passed may be overtaken by those that reserve the rest.
    assert 500 <= sum(at_once([lambda: process.passed(200)] * 8)) <= 500 + 500 // SHARE


class Unreliable(Counter):
    """A Redis whose answers get lost: every third call isn't made."""

    calls = 0

    def lease(
        self, bucket: Bucket, spent: int, expected: int, *, now: float | None = None
    ) -> tuple[int, Level] | None:
        self.calls += 1
        return None if self.calls % 3 == 0 else super().lease(bucket, spent, expected, now=now)


@pytest.mark.parametrize("threads", [1, 8])
def test_what_passes_while_redis_does_not_answer_is_counted_afterwards(threads: int):
    process = Process(rule(500))
    counter = Unreliable(django_settings.REDIS_URL, pause=0.0, patience=PATIENCE)
    process.floods = ApproximateCounter(counter, _bucket, clock=process.clock)
    passed = sum(at_once([lambda: process.passed(1600 // threads)] * threads))
    other = Process(rule(500))
    assert 500 <= passed <= 500 + (threads > 1) * 500 // SHARE
    assert other.passed(500) == 500 // SHARE


def test_a_caller_passes_again_after_the_window():
    process = Process(rule(1000))
    assert process.passed(2000) == 1000
    assert not process.passes()
    process.clock.now += 62
    assert process.passed(2000) == 1000


def test_a_refused_caller_costs_one_call_a_second():
    process = Process(rule(100))
    process.passed(200)
    # What could only be seen by a call: the bucket is empty again.
    with redis.Redis.from_url(django_settings.REDIS_URL) as client:
        for key in client.scan_iter("limits:*"):
            client.delete(key)
    assert process.passed(50) == 0
    process.clock.now += 1.1
    assert process.passes()


def test_without_redis_each_process_applies_the_whole_limit():
    process = Process(rule(1000), url=UNREACHABLE)
    assert process.passed(3000) == 1000
    process.clock.now += 61
    assert process.passed(3000) == 1000


def test_many_addresses_take_a_bounded_memory():
    process = Process(rule(100), most=1000)
    for number in range(50_000):
        process.passes(f"{number >> 8}.{number & 255}.0.1")
        assert len(process.floods) <= 2000


def test_the_length_of_an_address_is_bounded():
    process = Process(rule(100))
    process.passes("x" * 100_000)
    (key,) = process.floods._young
    assert len(key) < 100


def test_a_flood_of_other_addresses_lets_a_busy_one_pass_no_faster_than_its_share():
    process = Process(rule(1000), most=100)
    process.passed(2000)
    for number in range(1000):
        process.passes(f"10.0.{number >> 8}.{number & 255}")
    assert process.passed(2000) <= 1000 // SHARE


def test_without_an_address_nothing_is_counted_by_it():
    """All callers behind a proxy that sends no address would be one."""
    assert Process(rule(3)).passed(10, "") == 10


def test_master_principals_are_not_counted():
    process = Process(rule(1))
    assert process.passed(5, principal=MASTER) == process.passed(5, principal=READ_ONLY_MASTER) == 5


def test_exact_rules_with_approximate_ones_stay_exact(limit):
    limit({"path": "/classes/*", "count": 3}, {**FLOOD, "count": 1000})
    request = Request(rules_for("/classes/Game", "GET"), "/classes/Game", HERE, CLIENT)
    verdicts = [decide([request])[0] for _ in range(4)]
    assert [verdict.refusal is None for verdict in verdicts] == [True, True, True, False]
    assert verdicts[0].quota is not None
    assert verdicts[0].quota.limit == 3


def test_all_defaults_can_be_written_as_text():
    assert read(json.dumps(list(DEFAULTS))) == read("defaults")
    assert any(SOCKETS in item.paths for item in read("defaults"))
