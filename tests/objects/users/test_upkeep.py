"""Sessions and mailed tokens that have expired are cleared away, and no others."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from tests.people import log_in, sign_up


def test_expired_sessions_go_and_others_stay(client):
    from objects.tasks import remove_expired
    from objects.users.models import Session

    ann = sign_up("ann")
    log_in("ann")
    current_id = ann.get("/sessions/me").json["objectId"]
    Session.objects.exclude(object_id=current_id).update(
        expires_at=timezone.now() - timedelta(days=1)
    )
    remove_expired()
    assert [session.object_id for session in Session.objects.all()] == [current_id]
    remove_expired()
    assert ann.get("/users/me").status == 200


def test_more_than_fit_into_one_statement_go_too(client):
    from objects.users import expired
    from objects.users.models import Session

    ann = sign_up("ann")
    past = timezone.now() - timedelta(days=1)
    Session.objects.bulk_create(
        Session(
            object_id=f"old{number}",
            created_at=past,
            updated_at=past,
            user=ann.user_id,
            expires_at=past,
        )
        for number in range(2500)
    )
    assert expired.remove_expired() == 2500
    assert Session.objects.count() == 1


def test_sessions_stay_where_they_never_expire(client, settings):
    from objects.users import expired
    from objects.users.models import Session

    settings.SERVICE = {**settings.SERVICE, "EXPIRE_INACTIVE_SESSIONS": False}
    ann = sign_up("ann")
    Session.objects.update(expires_at=timezone.now() - timedelta(days=1))
    assert expired.remove_expired() == 0
    assert ann.get("/users/me").status == 200


def test_expired_tokens_go_and_others_stay(client):
    from objects.users import expired
    from objects.users.models import MailToken

    ann = sign_up("ann", email="ann@example.org")
    now = timezone.now()
    for number, expires in enumerate((now - timedelta(hours=1), now + timedelta(hours=1), None)):
        MailToken.objects.create(
            token_hash=bytes([number]) * 32,
            user_id=ann.user_id,
            purpose="reset",
            email="ann@example.org",
            created_at=now,
            expires_at=expires,
        )
    assert expired.remove_expired() == 1
    assert MailToken.objects.count() == 2
