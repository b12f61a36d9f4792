"""Settings of backups from the environment."""

from __future__ import annotations

import pytest

from backend.settings.areas.files import Backups
from backend.settings.environment import BadSetting

KEY = "AGE-SECRET-KEY-1XU27J05NFF05CUNUJFQQXXJ4Y67ZXUTETUS3DLW3TQFZ5YGLR6PQX7Y7X4"
SECRET = "secret-of-the-bucket"


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"BACKUP_TO": "backups"}, "BACKUP_TO must be an absolute path, or s3://BUCKET/PREFIX"),
        ({"BACKUP_TO": "ftp://host/x"}, "BACKUP_TO must be an absolute path"),
        ({"BACKUP_TO": "s3://"}, "BACKUP_TO must be s3://BUCKET"),
        ({"BACKUP_TO": "s3://bucket/../x"}, "BACKUP_TO must be s3://BUCKET"),
        ({"BACKUP_TO": "s3://bucket/x"}, "BACKUP_KEY isn't set: backups in a bucket are encrypted"),
        ({"BACKUP_SCHEDULE": "0 3 * * *"}, "BACKUP_TO isn't set: BACKUP_SCHEDULE needs it"),
        ({"BACKUP_SCHEDULE": "daily"}, "BACKUP_SCHEDULE must be a crontab line"),
        ({"BACKUP_SCHEDULE": "3600"}, "BACKUP_SCHEDULE must be a crontab line"),
        ({"BACKUP_SCHEDULE": "0 3 * * * Mars"}, "BACKUP_SCHEDULE must be a crontab line"),
        ({"BACKUP_SCHEDULE": "0 3 30 2 *"}, "BACKUP_SCHEDULE must be a crontab line"),
        ({"BACKUP_KEEP": "7"}, "BACKUP_KEEP must be numbers of hours"),
        ({"BACKUP_KEEP": "0d"}, "BACKUP_KEEP must be numbers of hours"),
        ({"BACKUP_KEEP": "7d 8d"}, "each unit once, not '8d'"),
        ({"BACKUP_VERIFY": "no"}, "BACKUP_VERIFY must be one of restore, checksums"),
        ({"BACKUP_KEY": KEY[:-1]}, "BACKUP_KEY isn't a complete age identity"),
        ({"BACKUP_KEY": f"{KEY[:-1]}b"}, "BACKUP_KEY isn't a complete age identity"),
        ({"BACKUP_KEY": SECRET}, "BACKUP_KEY must be an age identity, AGE-SECRET-KEY-1…"),
        ({"BACKUP_KEY": "age1abc"}, "this is the public part"),
        ({"BACKUP_S3_ACCESS_KEY": "k"}, "BACKUP_S3_SECRET_KEY isn't set"),
        ({"BACKUP_S3_ENDPOINT": f"x:{SECRET}"}, "BACKUP_S3_ENDPOINT must be a URL"),
    ],
)
def test_a_bad_value_is_a_sentence_that_names_it_and_shows_no_secret(
    variables: dict[str, str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting) as error:
        Backups.read()
    assert problem in str(error.value)
    assert SECRET not in str(error.value)
    assert KEY[20:-1] not in str(error.value)


def test_the_bucket_of_files_gives_what_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FILE_S3_ENDPOINT", "https://s3.example.org")
    monkeypatch.setenv("FILE_S3_ACCESS_KEY", "of-files")
    monkeypatch.setenv("FILE_S3_SECRET_KEY", SECRET)
    values = Backups.read()
    assert values["BACKUP_S3_ENDPOINT"] == "https://s3.example.org"
    assert values["BACKUP_S3_ACCESS_KEY"] == "of-files"
    monkeypatch.setenv("BACKUP_S3_ACCESS_KEY", "own")
    monkeypatch.setenv("BACKUP_S3_SECRET_KEY", "own secret")
    assert Backups.read()["BACKUP_S3_ACCESS_KEY"] == "own"


def test_what_is_kept_is_read_by_units(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Backups.BACKUP_KEEP.read() == (("d", 7), ("w", 4), ("m", 6))
    monkeypatch.setenv("BACKUP_KEEP", "24h 14D")
    assert Backups.BACKUP_KEEP.read() == (("h", 24), ("d", 14))
