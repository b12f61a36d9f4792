"""What RATE_LIMITS may say, and which requests a rule means."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from backend.limits.book import Book
from backend.settings.rate_limits import DEFAULTS, SOCKETS, SUBSCRIPTIONS, read

LOG_IN = {("ip", 20, 60), ("ip", "account", 10, 60), ("account", 100, 60)}
RULE = {"path": "/functions/*", "count": 3, "window": 60, "per": "ip"}


def met(path: str, method: str = "POST", /, **rule: object) -> bool:
    return bool(Book(read([{**RULE, **rule}])).rules_for(path, method))


def test_off_is_no_rule():
    assert read("off") == read([]) == read("[]") == ()


def test_a_list_is_instead_of_the_defaults_unless_it_names_them():
    assert len(read("defaults")) == len(DEFAULTS)
    assert len(read([RULE])) == 1
    assert len(read(["defaults", RULE])) == len(DEFAULTS) + 1


def test_text_is_read_as_json():
    assert read(json.dumps([RULE])) == read([RULE])


def test_the_examples_of_the_documentation_are_rules():
    text = (Path(__file__).parents[3] / "docs" / "rate-limits.md").read_text()
    examples = re.findall(r"RATE_LIMITS='(.+?)'", text, re.DOTALL)
    assert [len(read(example)) for example in examples] == [len(DEFAULTS) + 2, 1]


def test_a_rule_has_the_same_name_in_every_process_however_it_is_spelled():
    (parsed,) = read([{**RULE, "methods": ["POST", "GET"], "per": ["ip", "function"]}])
    (other,) = read([{**RULE, "methods": ["GET", "POST"], "per": ["function", "ip"]}])
    assert parsed.name == other.name
    assert parsed.name != read([{**RULE, "count": 4}])[0].name


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("perhaps", "must be off, defaults or a JSON list of rules"),
        ("{}", "must be off, defaults or a JSON list of rules"),
        (7, "must be off, defaults or a JSON list of rules"),
        (["default"], '[0] must be an object, "defaults", "guesses" or "floods"'),
        ([{**RULE, "limit": 3}], "[0] has an unknown name: limit"),
        ([{"path": "/a", "window": 1, "per": "ip"}], "[0].count is missing"),
        ([RULE, {**RULE, "path": "functions"}], "[1].path must be a path such as /login"),
        ([{**RULE, "path": []}], "[0].path must be"),
        ([{**RULE, "path": "/a*"}], "[0].path must be"),
        ([{**RULE, "path": "/a?b=1"}], "[0].path must be"),
        ([{**RULE, "path": "/a/"}], "[0].path must be"),
        ([{**RULE, "path": "/%61"}], "[0].path must be"),
        ([{**RULE, "methods": "PATCH"}], "[0].methods must be"),
        ([{**RULE, "methods": []}], "[0].methods must be"),
        ([{**RULE, "count": 0}], "[0].count must be"),
        ([{**RULE, "count": True}], "[0].count must be"),
        ([{**RULE, "count": 2.5}], "[0].count must be"),
        ([{**RULE, "window": 0}], "[0].window must be"),
        ([{**RULE, "window": float("nan")}], "[0].window must be"),
        ([{**RULE, "window": "60"}], "[0].window must be"),
        ([{**RULE, "per": "planet"}], "[0].per must be"),
        ([{**RULE, "per": {}}], "[0].per must be"),
        ([{**RULE, "includeMaster": "yes"}], "[0].includeMaster must be"),
        ([{**RULE, "message": 1}], "[0].message must be"),
        ([{**RULE, "signedIn": 1}], "[0].signedIn must be"),
        ([{**RULE, "byAuthData": None}], "[0].byAuthData must be"),
        ([{**RULE, "approximate": "yes"}], "[0].approximate must be"),
        (
            [{**RULE, "approximate": True, "refuseWithoutRedis": True}],
            "[0].approximate and refuseWithoutRedis exclude each other",
        ),
        (["guess"], '[0] must be an object, "defaults", "guesses" or "floods"'),
        ([RULE, RULE], "[1] says what a rule before it says"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_place(setting, message):
    with pytest.raises(ValueError, match=r"\A") as caught:
        read(setting)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("rule", "path", "expected"),
    [
        ("/login", "/login", True),
        ("/login", "/login/", True),
        ("/login", "/login//", False),
        ("/login", "/Login", False),
        ("/login", "/login/x", False),
        ("/login", "/loginAs", False),
        ("/functions/*", "/functions/hello", True),
        ("/functions/*", "/functions", False),
        ("/functions/a.b", "/functions/a.b", True),
        ("/functions/a.b", "/functions/axb", False),
        ("/classes/*", "/classes/Game/x7", True),
        ("/classes/*/x7", "/classes/Game/x7", True),
        ("/classes/*/x7", "/classes/Game/y/x7", False),
        ("/*", "/anything/at/all", True),
        ("/*/x", "/anything/x", True),
    ],
)
def test_a_path_means_what_it_says(rule, path, expected):
    assert met(path, path=rule) is expected


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/users", "/classes/_User"),
        ("/users", "/classes/_User/"),
        ("/users/*", "/classes/_User/x7"),
        ("/classes/_User", "/users"),
        ("/classes/*", "/users"),
        ("/classes/*", "/sessions/me"),
        ("/classes/_Role/*", "/roles/x7"),
        ("/installations", "/classes/_Installation"),
    ],
)
def test_a_class_of_people_is_meant_by_both_of_its_paths(rule, path):
    assert met(path, path=rule)


def test_other_classes_have_one_path():
    assert not met("/classes/_Userx", path="/users")
    assert not met("/classes/User", path="/users")
    assert not met("/classes/users", path="/users")


def test_a_rule_is_for_its_methods():
    assert met("/users", "POST", path="/users", methods=["POST"])
    assert not met("/users", "GET", path="/users", methods=["POST"])
    assert met("/users", "HEAD", path="/users", methods=["GET"])


def test_several_paths_share_a_rule():
    book = Book(read([{**RULE, "path": ["/login", "/verifyPassword"]}]))
    assert book.rules_for("/login", "POST") == book.rules_for("/verifyPassword", "GET")


@pytest.mark.parametrize(
    ("path", "method", "limits"),
    [
        ("/login", "POST", LOG_IN),
        ("/login", "GET", LOG_IN),
        ("/verifyPassword", "GET", LOG_IN),
        ("/users", "POST", {("ip", 20, 3600), ("ip", 60, 60)}),
        ("/classes/_User", "POST", {("ip", 20, 3600), ("ip", 60, 60)}),
        ("/requestPasswordReset", "POST", {("ip", 5, 3600), ("account", 5, 3600)}),
        ("/verificationEmailRequest", "POST", {("ip", 5, 3600), ("account", 5, 3600)}),
        ("/users", "GET", set()),
        ("/users/me", "GET", set()),
        ("/classes/Game", "POST", set()),
        ("/classes/Game/x7", "GET", set()),
        ("/functions/hello", "POST", set()),
        ("/functions/registerInit", "POST", {("ip", 30, 60)}),
        ("/functions/registerComplete", "POST", {("ip", 20, 3600)}),
        ("/functions/passkeyLoginInit", "POST", {("ip", 30, 60)}),
        ("/functions/passkeyLoginComplete", "POST", {("ip", 20, 60)}),
        ("/batch", "POST", set()),
        ("/logout", "POST", set()),
    ],
)
def test_the_defaults_limit_what_guesses_and_sends_mail(path, method, limits):
    rules = Book(read("defaults")).rules_for(path, method)
    rules = tuple(rule for rule in rules if not rule.approximate)
    assert {(*rule.per, rule.count, rule.window // 1000) for rule in rules} == limits


ALL = {("ip", 60_000), ("user", 6_000)}
WRITES = {*ALL, ("ip", 30_000), ("user", 3_000)}


@pytest.mark.parametrize(
    ("path", "method", "limits"),
    [
        ("/classes/Game/x7", "GET", ALL),
        ("/classes/Game", "HEAD", ALL),
        ("/classes/Game", "POST", WRITES),
        ("/classes/Game/x7", "PUT", WRITES),
        ("/functions/hello", "POST", WRITES),
        ("/batch", "POST", WRITES),
        ("/users", "POST", WRITES),
        ("/requestPasswordReset", "POST", WRITES),
        ("/events/AppOpened", "POST", WRITES),
        ("/sessions", "GET", ALL),
        ("/installations", "POST", {*WRITES, ("ip", 600)}),
        ("/classes/_Installation", "POST", {*WRITES, ("ip", 600)}),
        ("/files/a.txt", "POST", {*WRITES, ("ip", 600), ("user", 300)}),
        ("/files/app/a.txt", "GET", ALL),
        (SOCKETS, "GET", {*ALL, ("ip", 3_000)}),
        (SUBSCRIPTIONS, "GET", ALL),
    ],
)
def test_the_defaults_limit_floods_of_all_that_a_stranger_can_send(path, method, limits):
    rules = [rule for rule in Book(read("defaults")).rules_for(path, method) if rule.approximate]
    assert {(*rule.per, rule.count) for rule in rules} == limits
    assert {rule.window for rule in rules} == {60_000}


def test_groups_of_defaults_can_be_chosen():
    assert read(["guesses", "floods"]) == read("defaults")
    assert not any(rule.approximate for rule in read(["guesses"]))
    assert all(rule.approximate for rule in read(["floods"]))
    assert len({rule.name for rule in read("defaults")}) == len(DEFAULTS)
