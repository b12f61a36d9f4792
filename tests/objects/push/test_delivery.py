"""From a push to its targets and back to its status."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.test import override_settings
from django.utils import timezone

from objects import doctor
from objects.database import hold
from objects.definitions.models import Maintenance
from objects.push import delivery, expansion, statuses
from objects.push.adapters import setup
from objects.push.adapters.base import SENT, Outcome, failed, gone, later
from objects.push.models import Push, PushTarget
from tests.held_instance import begin_hold
from tests.objects.push.pushing import (
    api,
    install,
    pass_time,
    push,
    send,
    status,
    targets,
    work,
)
from tests.objects.push.recorder import Recorder, WorkerKilled, adapters
from tests.other_process import database_url
from tests.rest import MASTER, Api

pytestmark = pytest.mark.django_db


def test_all_installations_with_a_token_get_it(recorder: Recorder) -> None:
    ids = install(3)
    install(1, deviceToken=None)
    ios = install(1, deviceType="ios")
    stored = work(push(data={"alert": "Hello", "extra": [1]}))
    assert sorted(message.installation for message in recorder.messages) == sorted(ids + ios)
    assert recorder.messages[0].data == {"alert": "Hello", "extra": [1]}
    assert stored["status"] == "succeeded"
    assert (stored["numSent"], stored["sentPerType"]) == (4, {"android": 3, "ios": 1})
    assert "count" not in stored
    assert "numFailed" not in stored


def test_channels_choose_installations(recorder: Recorder) -> None:
    news = install(1, channels=["news", "sport"])
    install(1, channels=["sport"])
    install(1)
    assert work(push_channels("news"))["numSent"] == 1
    assert [message.installation for message in recorder.messages] == news


def push_channels(*channels: str) -> str:
    reply = api.post("/push", {"channels": [*channels], "data": {"alert": "x"}})
    return str(reply.headers["X-Svc-Push-Status-Id"])


def test_more_than_a_page_and_a_chunk(recorder: Recorder, monkeypatch: Any) -> None:
    monkeypatch.setattr(expansion, "PAGE", 4)
    install(11)
    push_id = push()
    assert expansion.expand(push_id)
    statuses.publish(push_id)
    running = status(push_id)
    assert (running["status"], running["count"]) == ("running", 1)
    assert work(push_id)["numSent"] == 11
    assert len({message.installation for message in recorder.messages}) == 11


def test_no_installation_is_a_success(recorder: Recorder) -> None:
    stored = work(push())
    assert (stored["status"], stored["numSent"]) == ("succeeded", 0)


def test_a_query_that_cannot_be_answered_fails_the_push(recorder: Recorder) -> None:
    install(1)
    stored = work(push(where={"channels": {"$in": {"$in": ["a"]}}}))
    assert stored["status"] == "failed"
    assert set(stored["errorMessage"]) == {"code", "message"}
    assert recorder.messages == []


def test_an_increment_counts_up_each_installation(recorder: Recorder) -> None:
    first, second = install(1, badge=5) + install(1)
    work(push(data={"badge": "Increment", "alert": "x"}))
    badges = {message.installation: message.data["badge"] for message in recorder.messages}
    assert badges == {first: 6, second: 1}
    work(push(data={"badge": {"__op": "Increment", "amount": 3}}))
    stored = {row["objectId"]: row["badge"] for row in api.results("_Installation")}
    assert stored == {first: 9, second: 4}


def test_a_number_sets_the_badge(recorder: Recorder) -> None:
    install(1, badge=5)
    install(1, badge=7, deviceToken=None)
    work(push(data={"badge": 2}))
    assert sorted(row["badge"] for row in api.results("_Installation")) == [2, 7]
    assert recorder.messages[0].data["badge"] == 2
    work(push(data={"badge": 0}))
    assert sorted(row["badge"] for row in api.results("_Installation")) == [2, 7]
    assert recorder.messages[1].data["badge"] == 0


def test_a_badge_counts_once_when_a_page_is_read_again(recorder: Recorder) -> None:
    install(1)
    push_id = push(data={"badge": "Increment"})
    work(push_id)
    expansion.expand(push_id)
    assert api.results("_Installation")[0]["badge"] == 1
    assert len(recorder.messages) == 1


def test_texts_in_the_language_of_the_device(recorder: Recorder) -> None:
    french = install(1, localeIdentifier="fr-CA")[0]
    german = install(1, localeIdentifier="de")[0]
    english = install(1)[0]
    data = {"alert": "Hello", "alert-fr": "Bonjour", "title-de": "Titel", "title": "Title"}
    work(push(data=data))
    assert {message.installation: message.data for message in recorder.messages} == {
        french: {"alert": "Bonjour", "title": "Title"},
        german: {"alert": "Hello", "title": "Titel"},
        english: {"alert": "Hello", "title": "Title"},
    }


def test_failures_are_counted_by_type(recorder: Recorder) -> None:
    install(2)
    install(1, deviceType="ios")
    recorder.outcomes = {"token-0": failed("bad"), "token-2": failed("bad")}
    stored = work(push())
    assert (stored["status"], stored["numSent"], stored["numFailed"]) == ("succeeded", 1, 2)
    assert stored["sentPerType"] == {"android": 1}
    assert stored["failedPerType"] == {"android": 1, "ios": 1}


def test_a_type_without_an_adapter_fails(settings: Any) -> None:
    install(1)
    install(1, deviceType="web")
    service = {**settings.SERVICE, "PUSH_ADAPTERS": {"android": "log"}}
    with override_settings(SERVICE=service):
        push_id = push()
        stored = work(push_id)
    assert (stored["numSent"], stored["failedPerType"]) == (1, {"web": 1})
    errors = {target.device_type: target.error for target in targets(push_id)}
    assert errors == {"android": "", "web": "no adapter for this type of device"}


def test_the_push_type_decides_before_the_device_type(settings: Any) -> None:
    install(1, deviceType="ios", pushType="fcm")
    service = {**settings.SERVICE, "PUSH_ADAPTERS": {"fcm": "log", "ios": "apns"}}
    with override_settings(SERVICE=service):
        assert work(push())["sentPerType"] == {"ios": 1}


def test_what_may_work_later_is_tried_again(recorder: Recorder) -> None:
    install(2)
    recorder.outcomes = {"token-0": later("busy")}
    push_id = push()
    stored = work(push_id)
    assert (stored["status"], stored["numSent"], stored["count"]) == ("running", 1, 1)
    assert work(push_id)["numSent"] == 1, "it isn't due yet"
    recorder.outcomes = {}
    pass_time(10)
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("succeeded", 2)
    assert sorted(target.attempts for target in targets(push_id)) == [1, 2]


def test_a_service_may_ask_for_a_longer_pause(recorder: Recorder) -> None:
    install(1)
    recorder.outcomes = {"token-0": later("busy", 600)}
    push_id = push()
    work(push_id)
    recorder.outcomes = {}
    pass_time(590)
    assert work(push_id)["numSent"] == 0
    pass_time(20)
    assert work(push_id)["numSent"] == 1


def test_a_target_is_given_up_after_the_last_attempt(recorder: Recorder) -> None:
    install(1)
    recorder.outcomes = {"token-0": later("busy")}
    push_id = push()
    for _ in range(delivery.ATTEMPTS):
        stored = work(push_id)
        pass_time(10_000)
    assert (stored["status"], stored["numFailed"]) == ("succeeded", 1)
    assert len(recorder.messages) == delivery.ATTEMPTS
    assert (targets(push_id)[0].state, targets(push_id)[0].error) == ("failed", "busy")


def test_an_adapter_that_raises_is_an_attempt(recorder: Recorder) -> None:
    install(1)
    recorder.error = RuntimeError("a bug")
    push_id = push()
    assert work(push_id)["status"] == "running"
    recorder.error = None
    pass_time(10)
    assert work(push_id)["numSent"] == 1


@pytest.mark.django_db(transaction=True)
def test_targets_of_a_service_are_sent_while_another_one_does_not_answer(settings: Any) -> None:
    slow, quick = Recorder(), Recorder()
    install(1, deviceType="ios")
    install(1, deviceType="android")
    service = {**settings.SERVICE, "PUSH_ADAPTERS": {"ios": "apns", "android": "fcm"}}
    with adapters(apns=slow, fcm=quick), override_settings(SERVICE=service):
        push_id = push()
        expansion.expand(push_id)
        sent: list[object] = []

        def act() -> None:
            delivery.send(push_id, "fcm")
            sent.append(status(push_id)["sentPerType"])

        slow.meanwhile = act
        delivery.send(push_id, "apns")
        assert sent == [{"android": 1}]
        assert status(push_id)["sentPerType"] == {"ios": 1, "android": 1}


@pytest.mark.parametrize("kinds", [("ios", "android", "web"), ("ios", "*"), ("*",), ()])
def test_each_target_belongs_to_one_service(kinds: tuple[str, ...], settings: Any) -> None:
    adapters_of_kinds = dict(zip(kinds, ("apns", "fcm", "log"), strict=False))
    install(1, deviceType="ios")
    install(1, deviceType="android")
    install(1, deviceType="web")
    install(1, deviceType="android", pushType="*")
    push_id = push()
    expansion.expand(push_id)
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_ADAPTERS": adapters_of_kinds}):
        of_services = [
            target.installation
            for name in setup.services()
            for target in PushTarget.objects.filter(setup.is_of(name))
        ]
    assert sorted(of_services) == sorted(target.installation for target in targets(push_id))


def test_a_page_that_cannot_be_read_fails_the_push_after_those_before(
    recorder: Recorder, monkeypatch: Any
) -> None:
    monkeypatch.setattr(expansion, "PAGE", 2)
    install(3)
    push_id = push(where={"deviceToken": {"$exists": True}})
    assert expansion.expand(push_id)
    # The second page has a query that can't be answered.
    wrong = Push.objects.get(pk=push_id).request.replace('{"$exists":true}', '{"$wrong":1}')
    Push.objects.filter(pk=push_id).update(request=wrong)
    expansion.expand(push_id)
    statuses.publish(push_id)
    assert (status(push_id)["status"], status(push_id)["count"]) == ("running", 1)
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("failed", 2)
    assert set(stored["errorMessage"]) == {"code", "message"}
    assert "count" not in stored
    assert len(recorder.messages) == 2
    pass_time(1200)
    assert [finding.level for finding in doctor.push_notifications()] == ["ok"]


def test_expired_targets_are_not_sent(recorder: Recorder) -> None:
    install(1)
    stored = work(push(expiration_time="2020-01-01T00:00:00Z"))
    assert (stored["numSent"], stored["numFailed"]) == (0, 1)
    assert recorder.messages == []
    work(push(expiration_time=4_000_000_000))
    assert recorder.messages[0].expires_at == 4_000_000_000


def test_unregistered_tokens_are_removed(recorder: Recorder) -> None:
    first, second = install(2)
    recorder.outcomes = {"token-0": gone("unregistered"), "token-1": failed("bad")}
    push_id = push()
    stored = work(push_id)
    assert stored["failedPerType"] == {"android": 2}
    assert "deviceToken" not in api.get(f"/installations/{first}").json
    assert api.get(f"/installations/{second}").json["deviceToken"] == "token-1"
    assert {target.state for target in targets(push_id)} == {"gone", "failed"}


def test_a_new_token_is_not_removed(recorder: Recorder) -> None:
    first = install(1)[0]
    recorder.outcomes = {"token-0": gone("unregistered")}
    push_id = push()
    expansion.expand(push_id)
    api.put(f"/installations/{first}", {"deviceToken": "new"})
    assert work(push_id)["numFailed"] == 1
    assert recorder.tokens == ["token-0"]
    assert api.get(f"/installations/{first}").json["deviceToken"] == "new"


def test_removing_tokens_can_be_switched_off(recorder: Recorder, settings: Any) -> None:
    first = install(1)[0]
    recorder.outcomes = {"token-0": gone("unregistered")}
    with override_settings(SERVICE={**settings.SERVICE, "PUSH_REMOVE_TOKENS": False}):
        work(push())
    assert api.get(f"/installations/{first}").json["deviceToken"] == "token-0"


def kill_a_worker(push_id: str, recorder: Recorder) -> None:
    """Have a worker killed while it sends a chunk."""
    recorder.error = WorkerKilled()
    with pytest.raises(WorkerKilled):
        send(push_id)
    recorder.error = None


def test_a_lost_worker_loses_no_target(recorder: Recorder) -> None:
    install(2)
    push_id = push()
    expansion.expand(push_id)
    kill_a_worker(push_id, recorder)
    assert work(push_id)["numSent"] == 0
    assert len(recorder.messages) == 2
    pass_time(delivery.LEASE.total_seconds() + 1)
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("succeeded", 2)
    assert len(recorder.messages) == 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("outcome", [SENT, failed("late")])
def test_an_outcome_counts_once(recorder: Recorder, outcome: Outcome) -> None:
    install(1)
    push_id = push()
    expansion.expand(push_id)

    def send_too() -> None:
        pass_time(delivery.LEASE.total_seconds() + 1)
        send(push_id)
        recorder.outcomes = {"token-0": outcome}

    recorder.meanwhile = send_too
    send(push_id)
    stored = status(push_id)
    assert (stored["numSent"], "numFailed" in stored) == (1, False)
    assert len(recorder.messages) == 2


def test_workers_that_die_each_time_end_with_a_failure(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    expansion.expand(push_id)
    for _ in range(delivery.ATTEMPTS):
        kill_a_worker(push_id, recorder)
        pass_time(delivery.LEASE.total_seconds() + 1)
    assert work(push_id)["numFailed"] == 1
    assert len(recorder.messages) == delivery.ATTEMPTS
    assert targets(push_id)[0].error == "the last attempt wasn't finished"


def test_a_changed_status_does_not_change_the_delivery(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    api.put(f"/classes/_PushStatus/{push_id}", {"status": "failed", "numSent": 99, "query": "{}"})
    stored = work(push_id)
    assert (stored["status"], stored["numSent"]) == ("succeeded", 1)


def test_tokens_are_not_in_names_of_counts(recorder: Recorder) -> None:
    install(1, deviceType='"; drop')
    assert work(push())["sentPerType"] == {"other": 1}


def test_setup_knows_the_built_in_adapters() -> None:
    assert setup.adapter_of("anything") == "log"


def test_few_tasks_send_a_push_at_the_same_time(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    expansion.expand(push_id)
    held = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
    names = [f"push:{push_id}:log:{number}" for number in range(delivery.SENDERS)]
    with psycopg.connect(database_url(), autocommit=True) as others:
        for name in names:
            others.execute(held, [name])
        assert not send(push_id)
        assert recorder.messages == []
        others.execute("SELECT pg_advisory_unlock_all()")
        send(push_id)
    assert len(recorder.messages) == 1


def test_nothing_is_sent_in_maintenance_mode(recorder: Recorder) -> None:
    install(1)
    push_id = push()
    expansion.expand(push_id)
    Maintenance.objects.create(id=1, message="wait", since=timezone.now(), chain_paused=False)
    assert not send(push_id)
    assert recorder.messages == []
    assert api.post("/push", {"where": {}}).json["code"] == 119
    Maintenance.objects.all().delete()
    assert work(push_id)["numSent"] == 1


def test_a_repeated_request_sends_once() -> None:
    caller = Api({**MASTER, "X-Parse-Request-Id": "a-request-of-a-push"})
    first = caller.post("/push", {"where": {}, "data": {"alert": "x"}})
    again = caller.post("/push", {"where": {}, "data": {"alert": "x"}})
    assert first.status == again.status == 200
    assert again.headers["X-Svc-Push-Status-Id"] == first.headers["X-Svc-Push-Status-Id"]
    assert Push.objects.count() == 1


def test_a_held_instance_sends_its_pushes_when_it_is_resumed(recorder: Recorder) -> None:
    install(2)
    push_id = push()
    begin_hold()
    work(push_id)
    assert (recorder.messages, {target.attempts for target in targets(push_id)}) == ([], {0})
    hold.release()
    assert work(push_id)["numSent"] == len(recorder.messages) == 2
