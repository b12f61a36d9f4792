"""Protected fields: neither shown, nor asked about, on any way."""

from __future__ import annotations

import pytest

from backend.kernel.errors import OperationForbidden
from backend.kernel.principal import MASTER
from objects import service
from tests.objects.access.tables import GROUPS, PUBLIC, QUESTIONS, SECRET
from tests.objects.access.world import (
    CALLERS,
    CLIENT,
    MEMBER,
    OWNER,
    STRANGER,
    find,
    get,
    make,
    permit,
    pointer,
    user,
)

pytestmark = pytest.mark.django_db

_OF_SUB_QUERIES = {name: ask for name, ask in QUESTIONS.items() if "where" in ask}

groups = pytest.mark.parametrize(("protected", "own", "other"), GROUPS.values(), ids=GROUPS)


@pytest.fixture
def docs():
    secret = {"secret": {"word": "s"}, "score": 1, "tags": []}
    own = make("Doc", name="own", owner=user(OWNER), team=[user(OWNER)], **secret)
    return {"own": own, "other": make("Doc", name="other", **secret)}


def protect(protected, class_name="Doc"):
    permit(class_name, **PUBLIC, protectedFields=protected)


@groups
def test_a_protected_field_is_shown_to_no_one_on_any_way(docs, protected, own, other):
    refs = {which: make("Ref", to=pointer("Doc", doc)) for which, doc in docs.items()}
    to_docs = [pointer("Doc", doc) for doc in docs.values()]
    make("Holder", docs={"__op": "AddRelation", "objects": to_docs})
    protect(protected)
    for caller, principal in CALLERS.items():
        for which, doc in docs.items():
            observed = caller in (own if which == "own" else other)
            ref = refs[which]
            where = {"objectId": doc}
            shown = {
                "find": find(principal, "Doc", where=where)[0],
                "find with keys": find(principal, "Doc", where=where, keys="secret,name")[0],
                "find with a dotted key": find(principal, "Doc", where=where, keys="secret.word")[
                    0
                ],
                "find with include": find(principal, "Doc", where=where, include="*")[0],
                "get": get(principal, "Doc", doc),
                "include": get(principal, "Ref", ref, include="to")["to"],
                "keys through a pointer": get(principal, "Ref", ref, keys="to.secret")["to"],
                "redirect": next(
                    obj
                    for obj in find(principal, "Holder", redirectClassNameForKey="docs")
                    if obj["objectId"] == doc
                ),
            }
            for way, obj in shown.items():
                assert ("secret" in obj) == observed, (caller, which, way)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_about_a_protected_field_is_refused(docs, ask):
    make("Ref", a=1)
    protect({"*": SECRET})
    for principal in (OWNER, MEMBER, STRANGER, CLIENT):
        with pytest.raises(OperationForbidden):
            find(principal, "Doc", **ask)
        with pytest.raises(OperationForbidden):
            find(principal, "Doc", **ask, count=1, limit=0)
    find(MASTER, "Doc", **ask)


@pytest.mark.parametrize("ask", _OF_SUB_QUERIES.values(), ids=_OF_SUB_QUERIES)
def test_a_question_through_a_sub_query_is_refused(docs, ask):
    make("Ref", to=pointer("Doc", docs["own"]), word="s")
    protect({"*": SECRET})
    query = {"className": "Doc", **ask}
    for where in (
        {"to": {"$inQuery": query}},
        {"to": {"$notInQuery": query}},
        {"$or": [{"to": {"$inQuery": query}}]},
        {"word": {"$select": {"query": query, "key": "name"}}},
    ):
        with pytest.raises(OperationForbidden):
            find(CLIENT, "Ref", where=where)
        find(MASTER, "Ref", where=where)


def test_a_protected_field_can_not_be_selected_or_sorted_by_in_a_sub_query(docs):
    make("Ref", to=pointer("Doc", docs["own"]), word="s")
    protect({"*": SECRET})
    for where in (
        {"word": {"$select": {"query": {"className": "Doc"}, "key": "secret.word"}}},
        {"word": {"$dontSelect": {"query": {"className": "Doc"}, "key": "secret"}}},
        {"to": {"$inQuery": {"className": "Doc", "order": "secret", "limit": 1}}},
    ):
        with pytest.raises(OperationForbidden):
            find(CLIENT, "Ref", where=where)


def test_a_redirected_question_is_about_the_class_that_it_runs_on(docs):
    to_docs = [pointer("Doc", doc) for doc in docs.values()]
    make("Holder", docs={"__op": "AddRelation", "objects": to_docs}, secret=1)
    protect({"*": SECRET})
    with pytest.raises(OperationForbidden):
        find(CLIENT, "Holder", redirectClassNameForKey="docs", where={"secret.word": "s"})
    with pytest.raises(OperationForbidden):
        find(CLIENT, "Holder", redirectClassNameForKey="docs", order="secret")


def test_a_protected_relation_tells_no_members(docs):
    friend = make("Friend")
    adding = {"__op": "AddRelation", "objects": [pointer("Friend", friend)]}
    service.update(MASTER, "Doc", docs["own"], {"friends": adding})
    protect({"*": ["friends"]})
    related = {"$relatedTo": {"object": pointer("Doc", docs["own"]), "key": "friends"}}
    for where in (related, {"$or": [related]}):
        with pytest.raises(OperationForbidden):
            find(CLIENT, "Friend", where=where)
    with pytest.raises(OperationForbidden):
        find(CLIENT, "Doc", where={"friends": pointer("Friend", friend)})
    with pytest.raises(OperationForbidden):
        find(CLIENT, "Doc", redirectClassNameForKey="friends")
    assert "friends" not in get(CLIENT, "Doc", docs["own"])


def test_the_answer_to_a_write_shows_no_protected_field(docs):
    protect({"*": ["score", "tags"]})
    body = {"score": {"__op": "Increment", "amount": 0}, "tags": {"__op": "Add", "objects": []}}
    assert service.update(CLIENT, "Doc", docs["own"], body).fields == {}
    assert service.create(CLIENT, "Doc", {**body, "name": "x"}).fields == {}
    assert service.update(MASTER, "Doc", docs["own"], body).fields == {"score": 1, "tags": []}


def test_the_answer_to_a_write_hides_what_is_hidden_from_whom_the_object_names(docs):
    protect({"userField:owner": ["score"]})
    body = {"score": {"__op": "Increment", "amount": 0}}
    assert service.update(OWNER, "Doc", docs["own"], body).fields == {}


def test_a_question_about_what_is_hidden_from_whom_the_object_names_is_refused(docs):
    protect({"userField:owner": SECRET})
    for principal in (OWNER, STRANGER):
        with pytest.raises(OperationForbidden):
            find(principal, "Doc", where={"secret.word": "s"})
    assert len(find(CLIENT, "Doc", where={"secret.word": "s"})) == 2


def test_a_question_that_only_some_objects_would_answer_is_refused(docs):
    protect({"*": SECRET, "userField:owner": []})
    with pytest.raises(OperationForbidden):
        find(OWNER, "Doc", where={"secret.word": "s"})


def test_a_protected_field_may_be_written(docs):
    protect({"*": SECRET})
    service.update(CLIENT, "Doc", docs["own"], {"secret": {"word": "new"}})
    assert get(MASTER, "Doc", docs["own"])["secret"] == {"word": "new"}
