"""POST /batch."""

from __future__ import annotations

import pytest

from tests.rest import CLIENT, MASTER, Api


def request(method, path, body=None):
    item = {"method": method, "path": f"/api{path}"}
    return item if body is None else {**item, "body": body}


def create(**fields):
    return request("POST", "/classes/Game", fields)


def run(api, *items, **options):
    return api.post("/batch", {"requests": list(items), **options})


@pytest.fixture
def game(master):
    return master.make("Game", score=1)


def test_answers_each_request_in_order(client, game):
    reply = run(
        client,
        create(score=2),
        request("GET", f"/classes/Game/{game}"),
        request("PUT", f"/classes/Game/{game}", {"score": {"__op": "Increment", "amount": 5}}),
        request("DELETE", f"/classes/Game/{game}"),
    )
    assert reply.status == 200
    made, read, changed, removed = (item["success"] for item in reply.json)
    assert set(made) == {"objectId", "createdAt"}
    assert read["score"] == 1
    assert changed["score"] == 6
    assert removed == {}


def test_requests_run_one_after_the_other(client, game):
    reply = run(
        client,
        request("PUT", f"/classes/Game/{game}", {"score": 9}),
        request("GET", f"/classes/Game/{game}"),
        create(fresh=1),
        create(fresh=2),
        request("GET", "/classes/Game", {"where": {"fresh": {"$exists": True}}, "order": "fresh"}),
    )
    assert reply.json[1]["success"]["score"] == 9
    assert [obj["fresh"] for obj in reply.json[4]["success"]["results"]] == [1, 2]


def test_an_error_of_one_request_is_its_own(client, game):
    reply = run(
        client,
        create(score="text"),
        request("GET", "/classes/Game/aaaaaaaaaa"),
        create(score=3),
        request("POST", "/classes/Nothing", {"a": 1}),
        request("POST", "/schemas/Game"),
    )
    assert reply.status == 200
    assert [item.get("error", {}).get("code") for item in reply.json] == [111, 101, None, 119, 119]
    assert all(set(item["error"]) == {"code", "error"} for item in reply.json if "error" in item)
    assert len(client.results("Game")) == 2


def test_a_query_takes_its_parameters_from_the_path_or_from_the_body(client, game):
    reply = run(
        client,
        request("GET", "/classes/Game?where=%7B%22score%22%3A1%7D&limit=1&count=1"),
        request("GET", "/classes/Game", {"where": {"score": 2}}),
        request("GET", "/classes/Game?limit=0", {"where": {"score": 1}, "count": 1}),
        request("GET", "/classes/Game?odd=1"),
    )
    assert len(reply.json[0]["success"]["results"]) == 1
    assert reply.json[0]["success"]["count"] == 1
    assert reply.json[1]["success"] == {"results": []}
    assert reply.json[2]["success"] == {"results": [], "count": 1}
    assert reply.json[3]["error"]["code"] == 102


def test_methods_may_be_written_small(client, game):
    reply = run(client, request("get", f"/classes/Game/{game}"))
    assert reply.json[0]["success"]["score"] == 1


def test_an_empty_batch_is_an_empty_answer(client):
    assert run(client).json == []


def test_the_credentials_of_the_batch_are_those_of_its_requests(client, game):
    body = {
        "_ApplicationId": "test-app",
        "_MasterKey": "test-master-key",
        "requests": [request("GET", "/schemas/Game"), create(_MasterKey="x")],
    }
    reply = Api().post("/batch", body)
    assert reply.json[0]["success"]["className"] == "Game"
    assert reply.json[1]["error"]["code"] == 105


def test_a_request_can_not_bring_credentials_of_its_own(client, game):
    for name in ("_MasterKey", "_ApplicationId", "_SessionToken", "_method"):
        reply = run(client, request("GET", "/schemas", {name: "test-master-key"}))
        assert reply.json[0]["error"]["code"] == 119
        reply = run(client, request("POST", f"/classes/Game/{game}", {name: "DELETE"}))
        assert "error" in reply.json[0]
    assert client.get(f"/classes/Game/{game}").status == 200


def test_a_batch_needs_the_keys_that_its_requests_need(application, game):
    assert run(application, create(score=1)).error == (403, 262)
    assert run(Api({}), create(score=1)).error == (403, 260)


def test_the_read_only_master_key_reads_and_writes_nothing(reader, master, game):
    reply = run(
        reader,
        request("GET", "/schemas/Game"),
        create(score=5),
        request("DELETE", f"/classes/Game/{game}"),
        request("DELETE", "/purge/Game"),
        request("PUT", "/schemas/Game", {"fields": {"x": {"type": "String"}}}),
    )
    assert "success" in reply.json[0]
    assert [item["error"]["code"] for item in reply.json[1:]] == [119] * 4
    assert len(master.results("Game")) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"requests": None},
        {"requests": "x"},
        {"requests": {}},
        {"requests": [1]},
        {"requests": [None]},
        {"requests": [{}]},
        {"requests": [{"method": "POST"}]},
        {"requests": [{"method": "PATCH", "path": "/api/classes/Game"}]},
        {"requests": [{"method": 1, "path": "/api/classes/Game"}]},
        {"requests": [{"method": "POST", "path": 1}]},
        {"requests": [{"method": "POST", "path": "/classes/Game"}]},
        {"requests": [{"method": "POST", "path": "/apiclasses/Game"}]},
        {"requests": [{"method": "POST", "path": "/api/nowhere"}]},
        {"requests": [{"method": "POST", "path": "/api/classes/Game/../../schemas"}]},
        {"requests": [{"method": "GET", "path": "//api/classes/Game"}]},
        {"requests": [{"method": "GET", "path": "/admin/"}]},
        {"requests": [{"method": "GET", "path": "/api/health"}]},
        {"requests": [{"method": "POST", "path": "/api/classes/Game", "body": [1]}]},
        {"requests": [{"method": "POST", "path": "/api/classes/Game", "body": "x"}]},
        {"requests": [], "transaction": "yes"},
    ],
)
def test_a_malformed_batch_is_refused_as_a_whole(client, game, body):
    body = {**body, "requests": [create(score=7), *body["requests"]]} if _has_list(body) else body
    assert client.post("/batch", body).error == (400, 107)
    assert len(client.results("Game")) == 1


def _has_list(body):
    return isinstance(body.get("requests"), list)


def test_a_batch_inside_of_a_batch_is_refused(client, game):
    reply = run(client, create(), request("POST", "/batch", {"requests": [create()]}))
    assert reply.error == (400, 107)
    assert len(client.results("Game")) == 1


def test_the_number_of_requests_is_limited(client, game):
    reply = run(client, *[create()] * 101)
    assert reply.error == (400, 107)
    assert reply.json["error"] == (
        "Batch request contains 101 sub-requests, which exceeds the limit of 100."
    )
    assert len(run(client, *[create()] * 100).json) == 100


def test_the_master_key_may_send_more(master, reader, game):
    assert len(run(master, *[create()] * 101).json) == 101
    reads = [{"method": "GET", "path": "/api/classes/Game", "body": {"limit": 0}}] * 101
    assert len(run(reader, *reads).json) == 101
    assert run(master, *[create()] * 10_001).error == (400, 107)


def test_items_that_can_not_be_run_are_named(client, game):
    path = "/api/classes/Game"
    for item, message in (
        (1, "batch request path must be a string (requests.0: expected an object)"),
        ({"method": "POST"}, "batch request path must be a string (requests.0.path)"),
        ({"path": path}, f"cannot route undefined {path} (requests.0.method"),
        ({"path": path, "method": "PATCH"}, f"cannot route PATCH {path} (requests.0.method"),
        ({"path": "/api/batch", "method": "POST"}, "nested batch requests are not allowed"),
        ({"path": "/elsewhere", "method": "POST"}, "cannot route batch path /elsewhere"),
    ):
        reply = run(client, item)
        assert reply.error == (400, 107)
        assert reply.json["error"].startswith(message)


def test_a_transaction_must_be_true_or_false(client, game):
    assert run(client, create(), transaction=1).error == (400, 107)
    assert run(client, create(), transaction=False).status == 200


# -- transaction: true ----------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
class TestTransaction:
    @pytest.fixture(autouse=True)
    def _schema(self, transactional_db):
        master = Api(MASTER)
        fields = {"score": {"type": "Number"}, "name": {"type": "String", "unique": True}}
        master.post("/schemas/Game", {"fields": fields})

    def test_all_requests_succeed(self):
        reply = run(Api(CLIENT), create(score=1), create(score=2), transaction=True)
        assert [set(item) for item in reply.json] == [{"success"}] * 2
        assert len(Api(CLIENT).results("Game")) == 2

    def test_one_failure_undoes_all(self):
        client = Api(CLIENT)
        saved = client.make("Game", score=1, name="taken")
        for bad, code in (
            (create(score="text"), 111),
            (create(name="taken"), 137),
            (request("PUT", "/classes/Game/aaaaaaaaaa", {"score": 1}), 101),
            (request("DELETE", "/classes/Game/aaaaaaaaaa"), 101),
            (request("POST", "/classes/Nothing", {}), 119),
            (request("GET", "/classes/Game?odd=1"), 102),
        ):
            reply = run(
                client,
                create(score=2),
                request("PUT", f"/classes/Game/{saved}", {"score": 9}),
                create(fresh=1),
                bad,
                create(score=3),
                transaction=True,
            )
            assert reply.json["code"] == code
            assert set(reply.json) == {"code", "error"}
            (only,) = client.results("Game")
            assert (only["objectId"], only["score"]) == (saved, 1)
            assert "fresh" not in Api(MASTER).get("/schemas/Game").json["fields"]

    def test_a_class_made_in_a_failed_transaction_is_gone(self):
        master = Api(MASTER)
        make = request("POST", "/classes/Fresh", {"a": 1})
        reply = run(master, make, create(score="text"), transaction=True)
        assert reply.error == (400, 111)
        assert master.get("/classes/Fresh").json == {"results": []}
        assert Api(CLIENT).get("/classes/Fresh").error == (400, 119)
        assert master.get("/schemas/Fresh").error == (400, 103)
        assert master.post("/classes/Fresh", {"a": "another type"}).status == 201

    def test_a_request_sees_what_the_ones_before_it_have_done(self):
        reply = run(
            Api(CLIENT),
            create(score=1, name="a"),
            request("GET", "/classes/Game", {"where": {"name": "a"}}),
            transaction=True,
        )
        assert len(reply.json[1]["success"]["results"]) == 1

    def test_schemas_change_with_the_rest_or_not_at_all(self):
        master = Api(MASTER)
        change = request("PUT", "/schemas/Game", {"fields": {"level": {"type": "Number"}}})
        assert run(master, change, create(level="x"), transaction=True).error == (400, 111)
        assert "level" not in master.get("/schemas/Game").json["fields"]
        assert run(master, change, create(level=1), transaction=True).status == 200
        assert "level" in master.get("/schemas/Game").json["fields"]

    def test_an_index_is_built_in_a_transaction_too(self):
        master = Api(MASTER)
        change = request("PUT", "/schemas/Game", {"indexes": {"by_score": {"score": 1}}})
        assert run(master, create(score=1), change, transaction=True).status == 200
        assert "by_score" in master.get("/schemas/Game").json["indexes"]

    def test_nothing_is_left_open_after_a_failure(self):
        client = Api(CLIENT)
        run(client, create(score="text"), transaction=True)
        assert client.post("/classes/Game", {"score": 4}).status == 201
        assert len(client.results("Game")) == 1
