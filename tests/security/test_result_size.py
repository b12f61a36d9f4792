"""What requests read is bounded: objects, responses, and the memory of a process for results."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from backend.kernel.errors import RateLimited
from backend.kernel.limits.result_memory import largest_fitting
from backend.kernel.memory_pool import (
    MEBIBYTE,
    Pool,
    ResultMemory,
    ResultTooLarge,
    TooManyLargeResults,
)
from backend.kernel.principal import MASTER
from backend.kernel.request_context import Current, as_current
from functions import Request, function
from functions.runtime.registry import registry as functions
from objects import service
from objects.core.names import check_class_name
from objects.core.query.tree import Everything, FindOptions
from objects.database.statements import fetch
from objects.definitions import registry
from tests.rest import Api

pytestmark = [
    pytest.mark.usefixtures("emptied"),
    pytest.mark.django_db(transaction=True),
]

LIMIT = 100_000
TOO_LARGE = (400, 102)
BIG = check_class_name("Big")


@pytest.fixture
def limited(settings: Any) -> None:
    settings.SERVICE = {**settings.SERVICE, "MAX_RESPONSE_SIZE": LIMIT}


@pytest.fixture
def own_registrations() -> Iterator[None]:
    with functions.temporarily():
        yield


@pytest.fixture
def big(master: Api) -> list[str]:
    """20 objects of 10,000 characters: twice the limit."""
    return [master.make("Big", n=n, text="x" * 10_000) for n in range(20)]


# -- Requests ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("limited", "big")
class TestAFind:
    @pytest.mark.parametrize("caller", ["client", "master"])
    def test_of_too_much_is_refused(self, caller: str, request: pytest.FixtureRequest) -> None:
        api: Api = request.getfixturevalue(caller)
        assert api.get("/classes/Big").error == TOO_LARGE

    def test_of_a_class_that_another_process_has_changed_counts_once(self, client: Api) -> None:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE objects_class SET version = version + 1000 WHERE name = 'Big'")
        assert len(client.results("Big", limit=6)) == 6

    def test_of_less_is_answered(self, client: Api) -> None:
        assert len(client.get("/classes/Big", limit=9).json["results"]) == 9

    def test_that_was_refused_leaves_the_connection_usable(self, client: Api) -> None:
        before = fetch("SELECT pg_backend_pid()", (), prepare=False)
        for _ in range(3):
            assert client.get("/classes/Big").error == TOO_LARGE
            assert len(client.get("/classes/Big", limit=1).json["results"]) == 1
        assert fetch("SELECT pg_backend_pid()", (), prepare=False) == before

    def test_counts_access_lists_too(self, master: Api) -> None:
        readers = {f"{n:010}": {"read": True} for n in range(1000)}
        for _ in range(10):
            master.make("Listed", ACL=readers)
        assert master.get("/classes/Listed").error == TOO_LARGE

    def test_names_the_limit(self, client: Api, settings: Any) -> None:
        settings.SERVICE = {**settings.SERVICE, "MAX_RESPONSE_SIZE": MEBIBYTE}
        for _ in range(2):
            client.make("Big", text="x" * 600_000)
        reply = client.get("/classes/Big")
        assert reply.json["error"] == (
            "The results have more than 1 MiB: ask for fewer objects at a time."
        )


@pytest.mark.usefixtures("limited")
class TestAnInclude:
    @pytest.fixture
    def pointers(self, master: Api) -> str:
        target = master.make("Big", text="x" * 10_000)
        pointer = {"__type": "Pointer", "className": "Big", "objectId": target}
        for n in range(20):
            master.make("Small", n=n, to=pointer, many=[pointer] * 20)
        return target

    @pytest.mark.usefixtures("pointers")
    def test_of_one_object_by_many_pointers_counts_each(self, client: Api) -> None:
        assert client.get("/classes/Small", include="to").error == TOO_LARGE
        assert len(client.get("/classes/Small", include="to", limit=8).json["results"]) == 8

    @pytest.mark.usefixtures("pointers")
    def test_in_arrays_counts_each(self, client: Api) -> None:
        assert client.get("/classes/Small", include="many", limit=1).error == TOO_LARGE

    def test_of_different_objects_counts_each_once(self, master: Api, client: Api) -> None:
        for _ in range(8):
            target = master.make("Big", text="x" * 10_000)
            master.make("Small", to={"__type": "Pointer", "className": "Big", "objectId": target})
        assert len(client.get("/classes/Small", include="to").json["results"]) == 8


@pytest.mark.usefixtures("limited", "big")
class TestABatch:
    def test_has_one_limit_for_all_items(self, client: Api) -> None:
        item = {"method": "GET", "path": "/api/classes/Big?limit=4"}
        reply = client.post("/batch", {"requests": [item] * 5})
        assert [next(iter(result)) for result in reply.json] == ["success"] * 2 + ["error"] * 3
        assert {result["error"]["code"] for result in reply.json[2:]} == {102}

    def test_still_writes_after_the_limit(self, client: Api, master: Api) -> None:
        master.make("Small", n=0)
        items = [
            {"method": "GET", "path": "/api/classes/Big"},
            {"method": "POST", "path": "/api/classes/Small", "body": {"n": 1}},
        ]
        reply = client.post("/batch", {"requests": items})
        assert [next(iter(result)) for result in reply.json] == ["error", "success"]
        assert len(client.get("/classes/Small").json["results"]) == 2

    def test_in_a_transaction_fails_as_a_whole(self, client: Api, master: Api) -> None:
        master.make("Small", n=0)
        items = [
            {"method": "POST", "path": "/api/classes/Small", "body": {"n": 1}},
            {"method": "GET", "path": "/api/classes/Big"},
        ]
        reply = client.post("/batch", {"requests": items, "transaction": True})
        assert reply.error == TOO_LARGE
        assert len(client.get("/classes/Small").json["results"]) == 1


@pytest.mark.usefixtures("limited", "big")
class TestOtherReads:
    def test_an_aggregation_is_refused(self, master: Api) -> None:
        assert master.get("/aggregate/Big", pipeline=[{"$match": {}}]).error == TOO_LARGE

    def test_a_query_of_objects_that_are_decoded_is_refused(self, client: Api) -> None:
        assert client.get("/classes/Big", keys="text").error == TOO_LARGE

    def test_in_a_transaction_leaves_it_usable(self) -> None:
        with transaction.atomic():
            with pytest.raises(ResultTooLarge):
                service.find(MASTER, BIG, FindOptions(where=Everything(), limit=20))
            assert fetch("SELECT 1", (), prepare=False) == [("1",)]

    @pytest.mark.usefixtures("own_registrations")
    def test_each_query_of_a_function_counts_by_itself(self, client: Api) -> None:
        @function()
        def pages(request: Request) -> int:
            return sum(len(request.objects("Big").limit(5).skip(n).find()) for n in (0, 5, 10, 15))

        assert client.post("/functions/pages", {}).json == {"result": 20}

    @pytest.mark.usefixtures("own_registrations")
    def test_a_query_of_a_function_that_reads_too_much_is_refused(self, client: Api) -> None:
        @function()
        def all_at_once(request: Request) -> int:
            return len(request.objects("Big").find())

        assert client.post("/functions/all_at_once", {}).json["code"] == 102

    @pytest.mark.usefixtures("own_registrations")
    def test_each_takes_smaller_pages(self, client: Api) -> None:
        @function()
        def walk(request: Request) -> list[int]:
            return sorted(item["n"] for item in request.objects("Big").each())

        assert client.post("/functions/walk", {}).json == {"result": list(range(20))}


# -- Objects -------------------------------------------------------------------------------------


class TestAnObject:
    @pytest.mark.slow
    def test_does_not_grow_beyond_the_limit(self, master: Api) -> None:
        object_id = master.make("Growing", parts=[])
        part = {"parts": {"__op": "Add", "objects": ["x" * 3_000_000]}}
        replies = [master.put(f"/classes/Growing/{object_id}", part) for _ in range(6)]
        assert [reply.status for reply in replies] == [200] * 5 + [413]
        assert replies[-1].error == (413, 116)
        assert len(master.get(f"/classes/Growing/{object_id}").json["parts"]) == 5

    def test_does_not_grow_beyond_the_limit_by_dotted_keys(self, master: Api) -> None:
        object_id = master.make("Growing", map={})
        replies = [
            master.put(f"/classes/Growing/{object_id}", {f"map.k{n}": "x" * 3_000_000})
            for n in range(6)
        ]
        assert replies[-1].error == (413, 116)

    @pytest.mark.slow
    def test_is_measured_as_it_is_sent(self, master: Api) -> None:
        # 1e308 takes 12 bytes in the database, and 309 in a response.
        raw = b'{"numbers":[%b]}' % b",".join([b"1e308"] * 60_000)
        assert master.call("POST", "/classes/Growing", raw=raw).error == (413, 116)

    def test_of_a_class_of_users_has_the_limit_too(self, master: Api) -> None:
        raw = json.dumps({"username": "a", "password": "b", "text": "x" * 17_000_000}).encode()
        assert master.call("POST", "/users", raw=raw).error == (413, 116)

    def test_of_a_class_that_exists_has_the_limit(self, master: Api) -> None:
        master.make("Growing", n=1)
        table = registry.find(check_class_name("Growing"))
        assert table is not None
        constraint = (
            "SELECT convalidated FROM pg_constraint"
            " WHERE conrelid = %s::text::regclass AND conname = 'object_size'"
        )
        assert fetch(constraint, (table.relation,), prepare=False) == [("t",)]


# -- The memory of a process -----------------------------------------------------------------------


class TestThePool:
    def test_refuses_what_goes_beyond_it(self) -> None:
        pool = Pool(30 * MEBIBYTE)
        for address in ("a", "b"):
            ResultMemory(100 * MEBIBYTE, pool, address).add(5 * MEBIBYTE)
        with pytest.raises(TooManyLargeResults) as refused:
            ResultMemory(100 * MEBIBYTE, pool, "c").add(4 * MEBIBYTE)
        assert refused.value.headers == {"Retry-After": "1"}
        assert refused.value.status == 503

    def test_gives_one_address_half_of_it(self) -> None:
        pool = Pool(30 * MEBIBYTE)
        ResultMemory(100 * MEBIBYTE, pool, "a").add(5 * MEBIBYTE)
        with pytest.raises(TooManyLargeResults):
            ResultMemory(100 * MEBIBYTE, pool, "a").add(4 * MEBIBYTE)
        ResultMemory(100 * MEBIBYTE, pool, "b").add(4 * MEBIBYTE)

    def test_always_has_room_for_small_results(self) -> None:
        pool = Pool(0)
        for _ in range(10):
            ResultMemory(100 * MEBIBYTE, pool, "a").add(MEBIBYTE)

    def test_has_everything_back_in_the_end(self) -> None:
        pool = Pool(30 * MEBIBYTE)
        for _ in range(10):
            memory = ResultMemory(100 * MEBIBYTE, pool, "a")
            memory.add(3 * MEBIBYTE)
            memory.add(2 * MEBIBYTE)
            memory.release()
            memory.release()

    def test_counts_the_objects_that_text_is_decoded_to(self) -> None:
        text = "[" + ",".join(["{}"] * 2_000_000) + "]"
        memory = ResultMemory(100 * MEBIBYTE)
        memory.add(len(text))
        memory.add_objects([text])
        with pytest.raises(ResultTooLarge, match=" MiB in memory:"):
            memory.add_objects([text])

    def test_counts_texts_as_python_keeps_them(self) -> None:
        plain, wide = ResultMemory(MEBIBYTE), ResultMemory(MEBIBYTE)
        plain.add_texts(["x" * 1000])
        wide.add_texts(["x" * 999 + "\U0001f600"])
        assert plain.size == wide.size == 1000
        # And two copies for the response.
        assert 3000 < plain.memory < 3100
        assert 6000 < wide.memory < 6100

    def test_has_what_a_request_took_when_that_is_over(self, client: Api, master: Api) -> None:
        for _ in range(3):
            master.make("Big", text="x" * 1_000_000)
        for _ in range(100):
            reply = client.get("/classes/Big")
            assert reply.status == 200


class TestSmallerPages:
    def test_are_tried_until_one_fits(self) -> None:
        def read(limit: int) -> str:
            if limit > 10:
                raise ResultTooLarge(1)
            return f"{limit}"

        assert largest_fitting(read, 100) == ("6", 6)

    def test_end_with_one_object(self) -> None:
        tried = []

        def read(limit: int) -> str:
            tried.append(limit)
            raise ResultTooLarge(1)

        with pytest.raises(ResultTooLarge):
            largest_fitting(read, 5)
        assert tried == [5, 2, 1]

    def test_are_not_tried_for_other_errors(self) -> None:
        def read(limit: int) -> str:
            raise RateLimited("no")

        with pytest.raises(RateLimited):
            largest_fitting(read, 5)


class TestOutsideOfRequests:
    @pytest.mark.usefixtures("limited", "big")
    def test_each_query_counts_by_itself(self) -> None:
        options = FindOptions(where=Everything(), limit=6)
        with as_current(Current()):
            for _ in range(5):
                assert len(service.find(MASTER, BIG, options).results) == 6


class TestDecoding:
    @pytest.mark.slow
    def test_of_many_containers_starts_no_searches_for_garbage(self, master: Api) -> None:
        for _ in range(4):
            master.make("Lists", items=[[] for _ in range(50_000)])
        options = FindOptions(where=Everything(), keys=frozenset({("items",)}), limit=4)
        searches = []
        gc.callbacks.append(lambda phase, info: searches.append(phase))
        try:
            results = service.find(MASTER, check_class_name("Lists"), options)
        finally:
            gc.callbacks.pop()
        assert len(results.objects()) == 4
        # 200,000 lists would start hundreds.
        assert len(searches) < 50
