"""Every request gets a proper answer: never a 500, and every failure says why."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rest import CLIENT, MASTER, Api

pytestmark = pytest.mark.django_db
settings.register_profile(
    "requests",
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
requests = settings(settings.get_profile("requests"))

FIELDS = ["score", "name", "tags", "info", "owner", "spot", "when", "flag", "friends", "fresh"]
KEYS = st.sampled_from(
    [
        *FIELDS, "objectId", "createdAt", "ACL", "info.x", "tags.0", "info.x.y", "$or", "$and",
        "$nor", "$text", "$relatedTo", "__type", "__op", "className", "iso", "amount", "objects",
        "latitude", "longitude", "where", "key", "object", "query", "*", "read", "ops",
    ]
)  # fmt: skip
OPERATORS = st.sampled_from(
    [
        "$gt", "$lt", "$gte", "$lte", "$ne", "$eq", "$in", "$nin", "$exists", "$all", "$regex",
        "$options", "$containedBy", "$inQuery", "$notInQuery", "$select", "$dontSelect",
        "$nearSphere", "$maxDistance", "$within", "$box", "$geoWithin", "$polygon",
        "$centerSphere", "$geoIntersects", "$point", "$text", "$search", "$term",
        "$relativeTime", "$unknown",
    ]
)  # fmt: skip
WORDS = st.sampled_from(
    [
        "Date", "Pointer", "GeoPoint", "Bytes", "File", "Polygon", "Relation", "Object",
        "Increment", "Add", "AddUnique", "Remove", "Delete", "AddRelation", "RemoveRelation",
        "Batch", "SetOnInsert", "Game", "2020-01-01T00:00:00.000Z", "aaaaaaaaaa", "1 day ago",
    ]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    WORDS,
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(KEYS, OPERATORS, st.text(max_size=5)), inner, max_size=4),
    ),
    max_leaves=12,
)
TYPED = st.one_of(
    st.fixed_dictionaries({"__type": WORDS}, optional={"iso": SCALARS, "objectId": SCALARS}),
    st.fixed_dictionaries(
        {"__type": st.just("Pointer"), "className": WORDS, "objectId": st.just("aaaaaaaaaa")}
    ),
    st.fixed_dictionaries(
        {
            "__type": st.just("GeoPoint"),
            "latitude": st.floats(-100, 100),
            "longitude": st.floats(-200, 200),
        }
    ),
    st.fixed_dictionaries({"__op": WORDS}, optional={"amount": VALUES, "objects": VALUES}),
)
BODIES = st.dictionaries(st.one_of(KEYS, st.text(max_size=6)), st.one_of(VALUES, TYPED), max_size=5)
CONSTRAINTS = st.one_of(
    VALUES, TYPED, st.dictionaries(OPERATORS, st.one_of(VALUES, TYPED), min_size=1, max_size=3)
)
WHERES = st.recursive(
    st.dictionaries(KEYS, CONSTRAINTS, max_size=3),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"$or": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries(
            {
                "owner": st.fixed_dictionaries(
                    {
                        "$inQuery": st.fixed_dictionaries(
                            {"className": st.just("Game"), "where": inner}
                        )
                    }
                )
            }
        ),
    ),
    max_leaves=4,
)


def text_of(value):
    """JSON that keeps lone surrogates as the escapes that a client would send."""
    return json.dumps(value)


def check(reply):
    assert reply.status < 500, reply.json
    if reply.status >= 400:
        assert set(reply.json) == {"code", "error"}
        assert isinstance(reply.json["code"], int)
        assert isinstance(reply.json["error"], str)
        assert "SELECT" not in reply.json["error"]


@pytest.fixture
def game(master):
    return master.make(
        "Game",
        score=1,
        name="chess",
        tags=[1, "a", {"x": 1}],
        info={"x": {"y": 1}},
        owner={"__type": "Pointer", "className": "Game", "objectId": "aaaaaaaaaa"},
        spot={"__type": "GeoPoint", "latitude": 1, "longitude": 2},
        when={"__type": "Date", "iso": "2020-01-01T00:00:00.000Z"},
        flag=True,
        friends={"__type": "Relation", "className": "Game"},
    )


@requests
@given(body=BODIES)
def test_any_body_is_stored_or_refused(game, body):
    raw = text_of(body).encode()
    for api, method, path in (
        (Api(MASTER), "POST", "/classes/Game"),
        (Api(CLIENT), "PUT", f"/classes/Game/{game}"),
    ):
        check(api.call(method, path, raw=raw))


@requests
@given(where=WHERES, order=st.one_of(st.none(), KEYS), api=st.sampled_from([MASTER, CLIENT]))
def test_any_where_finds_or_is_refused(game, where, order, api):
    params = {"where": text_of(where), "limit": "5"} | ({} if order is None else {"order": order})
    check(Api(api).call("GET", f"/classes/Game?{urlencode(params)}"))
    counted = {"_method": "GET", "where": where, "count": 1, "limit": 0}
    check(Api(api).call("POST", "/classes/Game", raw=text_of(counted).encode()))


@pytest.mark.slow
@requests
@given(schema=st.dictionaries(
    st.sampled_from(["fields", "indexes", "classLevelPermissions", "className", "odd"]),
    st.one_of(VALUES, BODIES, st.dictionaries(KEYS, BODIES, max_size=3)),
    max_size=3,
))  # fmt: skip
def test_any_schema_is_taken_or_refused(game, schema):
    check(Api(MASTER).call("PUT", "/schemas/Game", raw=text_of(schema).encode()))


STAGES = st.sampled_from(
    ["$match", "$group", "$project", "$sort", "$limit", "$skip", "$unwind", "$count", "$sample",
     "$addFields", "$lookup", "$odd"]
)  # fmt: skip
EXPRESSIONS = st.recursive(
    st.one_of(SCALARS, st.sampled_from([f"${field}" for field in FIELDS] + ["$info.x", "$$ROOT"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["_id", "$sum", "$avg", "$max", "$add", "$subtract", "$divide", "$concat", "$year",
                 "$cond", "$ifNull", "$size", "$eq", "$gt", "path", "from", "as", "localField",
                 "foreignField", "size", *FIELDS]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)  # fmt: skip


@requests
@given(pipeline=st.lists(st.dictionaries(STAGES, EXPRESSIONS, min_size=1, max_size=1), max_size=4))
def test_any_pipeline_answers_or_is_refused(game, pipeline):
    check(Api(MASTER).get("/aggregate/Game", pipeline=text_of(pipeline)))


@requests
@given(
    raw=st.one_of(
        st.binary(max_size=40), st.text(max_size=40).map(lambda t: t.encode("utf-8", "replace"))
    )
)
def test_any_bytes_are_no_fault_of_ours(game, raw):
    for method, path in (
        ("POST", "/classes/Game"),
        ("PUT", f"/classes/Game/{game}"),
        ("POST", "/batch"),
        ("PUT", "/schemas/Game"),
    ):
        check(Api(MASTER).call(method, path, raw=raw))


PATHS = st.sampled_from(["/api/classes/Game", "/api/schemas", "/api/classes/Game/aaaaaaaaaa"])


@requests
@given(items=st.lists(st.fixed_dictionaries({}, optional={
    "method": st.one_of(st.sampled_from(["GET", "POST", "PUT", "DELETE"]), SCALARS),
    "path": st.one_of(PATHS, SCALARS),
    "body": st.one_of(BODIES, VALUES),
}), max_size=4), transaction=st.one_of(st.booleans(), SCALARS))  # fmt: skip
def test_any_batch_is_run_or_refused(game, items, transaction):
    body = {"requests": items, "transaction": transaction}
    reply = Api(CLIENT).call("POST", "/batch", raw=text_of(body).encode())
    check(reply)
    if reply.status == 200:
        for item in reply.json:
            assert set(item) in ({"success"}, {"error"})
            if "error" in item:
                assert item["error"]["code"] != 1
