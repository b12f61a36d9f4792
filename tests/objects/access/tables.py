"""What each caller is to get, by hand: the tables that all readings of the policy are held to.

Callers are ``master``, ``reader`` (the read-only master key), ``owner``, ``member`` (of the role
Team), ``stranger`` (logged in, nothing else) and ``client`` (not logged in).
"""

from __future__ import annotations

from typing import Any

OWNER_ID = "owner00001"
MEMBER_ID = "member0001"
STRANGER_ID = "stranger01"

NAMES = ("master", "reader", "owner", "member", "stranger", "client")
ALL = frozenset(NAMES)
MASTERS = frozenset({"master", "reader"})
NOT_MASTERS = ALL - MASTERS

# -- Access lists ---------------------------------------------------------------------------------

_READ, _WRITE = {"read": True}, {"write": True}
_BOTH = {**_READ, **_WRITE}

# Access list, who reads, who writes, other than the master key
LISTS: dict[str, Any] = {
    "none": (None, ALL, NOT_MASTERS),
    "empty": ({}, MASTERS, frozenset()),
    "public": ({"*": _BOTH}, ALL, NOT_MASTERS),
    "public to read": ({"*": _READ}, ALL, frozenset()),
    "public to write": ({"*": _WRITE}, MASTERS, NOT_MASTERS),
    "a user's": ({OWNER_ID: _BOTH}, MASTERS | {"owner"}, frozenset({"owner"})),
    "a user's to read": ({OWNER_ID: _READ}, MASTERS | {"owner"}, frozenset()),
    "a user's to write": ({OWNER_ID: _WRITE}, MASTERS, frozenset({"owner"})),
    "a role's": ({"role:Team": _BOTH}, MASTERS | {"member"}, frozenset({"member"})),
    "another role's": ({"role:Other": _BOTH}, MASTERS, frozenset()),
    "a role named like a user": ({f"role:{OWNER_ID}": _BOTH}, MASTERS, frozenset()),
    "mixed": (
        {"*": _READ, "role:Team": _BOTH, OWNER_ID: _WRITE},
        ALL,
        frozenset({"owner", "member"}),
    ),
}

# -- Permissions of classes -----------------------------------------------------------------------

ACTIONS = ("find", "get", "count", "create", "update", "delete", "addField")
PUBLIC: dict[str, Any] = {action: {"*": True} for action in ACTIONS}

YES, NO, LOGIN, OWN, MISSING = "yes", "forbidden", "login", "own", "not found"


def _expected(owner: str, member: str, stranger: str, client: str) -> dict[str, str]:
    return {"owner": owner, "member": member, "stranger": stranger, "client": client}


# A rule for one action, and what it gives to each caller but the master keys.
RULES: dict[str, Any] = {
    "everybody": ({"*": True}, _expected(YES, YES, YES, YES)),
    "nobody": ({}, _expected(NO, NO, NO, NO)),
    "a user": ({OWNER_ID: True}, _expected(YES, NO, NO, NO)),
    "a role": ({"role:Team": True}, _expected(NO, YES, NO, NO)),
    "anybody logged in": ({"requiresAuthentication": True}, _expected(YES, YES, YES, LOGIN)),
    "a role, or logged in": (
        {"role:Team": True, "requiresAuthentication": True},
        _expected(YES, YES, YES, LOGIN),
    ),
    "whom a pointer names": ({"pointerFields": ["owner"]}, _expected(OWN, OWN, OWN, OWN)),
    "whom a list names": ({"pointerFields": ["team"]}, _expected(OWN, OWN, OWN, OWN)),
    "logged in, and named by a pointer": (
        {"requiresAuthentication": True, "pointerFields": ["owner"]},
        {**_expected(OWN, OWN, OWN, LOGIN), "new objects": YES},
    ),
    "a role, or whom a pointer names": (
        {"role:Team": True, "pointerFields": ["owner"]},
        _expected(OWN, YES, OWN, OWN),
    ),
}


def may(caller: str, expected: dict[str, str], which: str) -> str:
    """What a caller gets who reads the object ``own``, which names the owner, or ``other``."""
    if caller in MASTERS:
        return YES
    if expected[caller] == OWN:
        return YES if (caller, which) == ("owner", "own") else MISSING
    return expected[caller]


def may_write(caller: str, expected: dict[str, str], which: str) -> str:
    """What a caller gets who changes or removes it."""
    return NO if caller == "reader" else may(caller, expected, which)


def may_make(caller: str, expected: dict[str, str]) -> str:
    """What a caller gets who makes an object: no field of it names anybody yet."""
    if caller in MASTERS:
        return YES if caller == "master" else NO
    return expected.get("new objects", NO) if expected[caller] == OWN else expected[caller]


# -- Protected fields -----------------------------------------------------------------------------

SECRET = ["secret"]

# Protected fields; who sees the secret of an object that names the owner, and of one that doesn't
GROUPS: dict[str, Any] = {
    "everybody": ({"*": SECRET}, MASTERS, MASTERS),
    "nobody": ({"*": []}, ALL, ALL),
    "all but a role": ({"*": SECRET, "role:Team": []}, MASTERS | {"member"}, MASTERS | {"member"}),
    "all but a user": ({"*": SECRET, OWNER_ID: []}, MASTERS | {"owner"}, MASTERS | {"owner"}),
    "all who are not logged in": (
        {"*": SECRET, "authenticated": []},
        ALL - {"client"},
        ALL - {"client"},
    ),
    "a role": ({"role:Team": SECRET}, ALL - {"member"}, ALL - {"member"}),
    "all but whom the object names": (
        {"*": SECRET, "userField:owner": []},
        MASTERS | {"owner"},
        MASTERS,
    ),
    "all but whom a list of the object names": (
        {"*": SECRET, "userField:team": []},
        MASTERS | {"owner"},
        MASTERS,
    ),
    "whom the object names": ({"userField:owner": SECRET}, ALL - {"owner"}, ALL),
}

# Questions whose answers would tell the secret, ``{"word": "s"}``.
_ONE = {"secret": {"word": "s"}}
QUESTIONS: dict[str, Any] = {
    "equality": {"where": _ONE},
    "a dotted key": {"where": {"secret.word": "s"}},
    "$ne": {"where": {"secret": {"$ne": 1}}},
    "$exists": {"where": {"secret": {"$exists": True}}},
    "$in": {"where": {"secret": {"$in": [{"word": "s"}]}}},
    "$regex": {"where": {"secret.word": {"$regex": "^s"}}},
    "$or": {"where": {"$or": [{"name": "x"}, _ONE]}},
    "$and": {"where": {"$and": [_ONE, {"name": "own"}]}},
    "$nor": {"where": {"$nor": [_ONE]}},
    "deep inside": {"where": {"$or": [{"$and": [{"$nor": [{"secret.word": {"$gt": ""}}]}]}]}},
    "full text": {"where": {"$text": {"$search": {"$term": "s"}}}},
    "$select on it": {
        "where": {"secret": {"$select": {"query": {"className": "Ref"}, "key": "a"}}}
    },
    "$dontSelect on it": {
        "where": {"secret": {"$dontSelect": {"query": {"className": "Ref"}, "key": "a"}}}
    },
    "order": {"order": "secret"},
    "order, descending": {"order": "name,-secret.word"},
}
