"""``POST /jobs/NAME`` and ``POST /jobs``: a run is queued, and who may ask for one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions import JobRequest, job
from tests.rest import Api

ID = "X-Svc-Job-Status-Id"


@pytest.fixture
def count() -> None:
    @job()
    def count(request: JobRequest, upto: int, step: int = 1) -> None:
        """Count."""


def status(master: Api, status_id: str) -> dict[str, Any]:
    reply = master.get(f"/classes/_JobStatus/{status_id}")
    assert reply.status == 200, reply.json
    body: dict[str, Any] = reply.json
    return body


@pytest.mark.usefixtures("count")
def test_the_answer_names_the_run_which_waits_for_a_worker(master: Api) -> None:
    reply = master.post("/jobs/count", {"upto": 3})
    assert (reply.status, reply.json) == (200, {})
    assert reply.headers["X-Parse-Job-Status-Id"] == reply.headers[ID]
    run = status(master, reply.headers[ID])
    assert run["jobName"] == "count"
    assert run["source"] == "api"
    assert run["status"] == "queued"
    assert run["params"] == {"upto": 3}
    assert run["ACL"] == {}
    assert "finishedAt" not in run


@pytest.mark.usefixtures("count")
def test_the_name_may_stand_in_the_body(master: Api) -> None:
    reply = master.post("/jobs", {"jobName": "count", "upto": 3})
    assert status(master, reply.headers[ID])["params"] == {"upto": 3}


@pytest.mark.usefixtures("count")
def test_parse_dashboard_sends_parameters_inside(master: Api) -> None:
    sent = {"description": "Executing.", "input": {"upto": 5}, "jobName": "count", "when": 0}
    reply = master.post("/jobs", sent)
    assert status(master, reply.headers[ID])["params"] == {"upto": 5}


@pytest.mark.usefixtures("count")
def test_browsers_may_read_the_header(master: Api) -> None:
    reply = master.call(
        "POST", "/jobs/count", {"upto": 1}, headers={"Origin": "https://dashboard.example"}
    )
    exposed = reply.headers["Access-Control-Expose-Headers"].lower()
    assert "x-parse-job-status-id" in exposed
    assert ID.lower() in exposed


@pytest.mark.parametrize("path", ["/jobs/nobody", "/jobs/__init__", "/jobs/toString"])
def test_an_unknown_job_is_141(master: Api, path: str) -> None:
    reply = master.post(path)
    assert reply.error == (400, 141)
    assert reply.json["error"] == "Invalid job."


def test_a_name_that_is_no_text_is_refused(master: Api) -> None:
    assert master.post("/jobs", {"jobName": {"$ne": 1}}).error == (400, 162)
    assert master.post("/jobs", {}).error == (400, 162)


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize(
    ("params", "named"), [({}, "upto"), ({"upto": "x"}, "upto"), ({"upto": 1, "step": []}, "step")]
)
def test_parameters_are_checked_before_anything_is_queued(
    master: Api, params: dict[str, Any], named: str
) -> None:
    reply = master.post("/jobs/count", params)
    assert reply.error == (400, 141)
    assert named in reply.json["error"]
    assert master.results("_JobStatus") == []


@pytest.mark.usefixtures("count")
def test_what_can_not_be_stored_is_refused(master: Api) -> None:
    reply = master.call("POST", "/jobs/count", raw=b'{"upto": 1, "note": "a\\u0000"}')
    assert reply.status == 400
    assert "note" in reply.json["error"]
    deep = json.loads("[" * 300 + "]" * 300)
    assert master.post("/jobs/count", {"upto": 1, "note": deep}).status == 400


@pytest.mark.usefixtures("count")
@pytest.mark.parametrize("path", ["/jobs/count", "/jobs"])
class TestOthers:
    body = {"jobName": "count", "upto": 1}

    def test_a_client_starts_none(self, client: Api, path: str) -> None:
        assert client.post(path, self.body).error == (403, 119)

    def test_nor_does_the_application_id(self, application: Api, path: str) -> None:
        assert application.post(path, self.body).error == (403, 119)

    def test_nor_does_the_read_only_master_key(self, reader: Api, master: Api, path: str) -> None:
        """GHSA-vc89-5g3r-cmhh."""
        assert reader.post(path, self.body).error == (400, 119)
        batch = {"requests": [{"method": "POST", "path": f"/api{path}", "body": self.body}]}
        assert reader.post("/batch", batch).json[0]["error"]["code"] == 119
        assert master.results("_JobStatus") == []


@pytest.mark.usefixtures("count")
def test_a_second_run_is_refused_while_one_waits_or_runs(master: Api) -> None:
    from functions.jobs import records

    first = master.post("/jobs/count", {"upto": 1}).headers[ID]
    reply = master.post("/jobs/count", {"upto": 2})
    assert reply.error == (400, 141)
    assert reply.json["error"] == "The job count is already queued."
    run = records.claim(first)
    assert run is not None
    assert master.post("/jobs/count", {"upto": 2}).json["error"].endswith("already running.")
    assert records.finish(run, "succeeded", None, None)
    assert master.post("/jobs/count", {"upto": 2}).status == 200


def test_overlap_allows_several(master: Api) -> None:
    @job(overlap=True)
    def many(request: JobRequest) -> None: ...

    ids = {master.post("/jobs/many").headers[ID] for _ in range(3)}
    assert len(ids) == 3


@pytest.mark.usefixtures("count")
def test_a_request_that_is_sent_again_starts_one_run(master: Api) -> None:
    def send() -> Any:
        return master.call(
            "POST", "/jobs/count", {"upto": 1}, headers={"X-Svc-Request-Id": "once-more"}
        )

    first, second = send(), send()
    assert first.headers[ID] == second.headers[ID]
    assert len(master.results("_JobStatus")) == 1


@pytest.mark.usefixtures("count")
def test_runs_are_written_by_the_service_alone(master: Api, client: Api, reader: Api) -> None:
    made = master.post("/jobs/count", {"upto": 1}).headers[ID]
    path = f"/classes/_JobStatus/{made}"
    for api, method, where, body in (
        (master, "POST", "/classes/_JobStatus", {"jobName": "x"}),
        (master, "PUT", path, {"status": "succeeded"}),
        (master, "DELETE", path, None),
        (master, "DELETE", "/purge/_JobStatus", None),
        (client, "GET", path, None),
        (client, "GET", "/classes/_JobStatus", None),
        (client, "PUT", path, {"status": "succeeded"}),
    ):
        assert api.call(method, where, body).json["code"] == 119, (method, where)
    assert reader.get(path).json["status"] == "queued"
    assert master.results("_JobStatus", where={"status": "queued"}, order="-createdAt")


def test_jobs_start_in_maintenance_mode(master: Api, count: None) -> None:
    from objects.database.statements import fetch

    fetch(
        "INSERT INTO objects_maintenance (id, message, since, chain_paused)"
        " VALUES (1, 'closed', now(), false)",
        (),
        prepare=False,
    )
    assert master.post("/classes/Note", {"a": 1}).error == (400, 119)
    assert master.post("/jobs/count", {"upto": 1}).status == 200
